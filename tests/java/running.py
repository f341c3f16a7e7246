"""Programs in Java for tests: a source is run as it is, with the jars that the one pom.xml names.

Jars stay in Maven's own cache. Where there is no Java or no Maven, or the jars cannot be had, tests are
skipped with the reason.
"""

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
_MAVEN_S = 300
_PROGRAM_S = 90


def run_java(source: str, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a source below this folder to its end. `options` are for the machine, not for the program."""
    return _run([*options, str(FOLDER / source), *arguments])


def run_tool(tool: str, *arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools, by its class, on lines that it reads."""
    return _run([tool, *arguments], lines)


def _run(arguments: Sequence[str], lines: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", _class_path(), *arguments],
        input=lines,
        capture_output=True,
        text=True,
        timeout=_PROGRAM_S,
        check=False,
    )


@functools.cache
def _class_path() -> str:
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} on this machine")
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "class-path"
        made = subprocess.run(
            [
                *("mvn", "-q", "-B", "-f", FOLDER / "pom.xml"),
                *("dependency:build-classpath", f"-Dmdep.outputFile={told}"),
            ],
            capture_output=True,
            text=True,
            timeout=_MAVEN_S,
            check=False,
        )
        if made.returncode != 0:
            pytest.skip(f"Maven has not had the jars: {made.stdout[-300:]}")
        return told.read_text().strip()
