"""A disk that can be filled: a small file system in memory, mounted where one node keeps its data."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SIZE = "256m"


@contextmanager
def small_disk(folder: Path) -> Iterator[str]:
    """Mount one for as long as this lasts. Gives why it cannot be had; empty: there is one."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        reason = done.stderr.strip()
    except OSError as error:
        reason = str(error)
    try:
        yield reason
    finally:
        if not reason:
            subprocess.run(["umount", "-l", str(folder)], check=True)
