"""`python -m goqueue.node.repair FOLDER`: look through a data folder that no broker works on, or repair it.

`goqueue-admin repair` is the way for people: it runs this, and shows what it prints, which is JSON.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from goqueue.broker.health.repair import REPAIR_FOLDER, repair
from goqueue.broker.storage.data_folder import is_used
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.lock import FolderInUse, FolderLock

_WELL, _DAMAGED, _WRONG, _NOT_FOUND = 0, 1, 2, 3
_MS_PER_S = 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    """0: all is well, or is so again; 1: something is damaged, or the folder is in use; 3: there is none."""
    parser = argparse.ArgumentParser(prog="goqueue-repair", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--apply", action="store_true", help="repair; else nothing is changed")
    parser.add_argument("--no-backup", action="store_true", help="do not keep what is replaced")
    given = parser.parse_args(arguments)
    if not given.folder.is_dir() or not is_used(FolderDisk(given.folder)):
        print(f"{given.folder} is no data folder: no broker has left anything in it", file=sys.stderr)
        return _NOT_FOUND
    clock = SystemClock()
    second = datetime.fromtimestamp(clock.wall_ms() // _MS_PER_S, UTC).strftime("%Y-%m-%d-%H%M%S")
    kept_in = None if given.no_backup or not given.apply else f"{REPAIR_FOLDER}/{second}"
    try:
        with FolderLock(given.folder):
            found = repair(FolderDisk(given.folder), clock, is_applied=given.apply, kept_in=kept_in)
    except (FolderInUse, OSError) as error:
        print(error, file=sys.stderr)
        return _DAMAGED
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    return _WELL if found.is_well else _DAMAGED


if __name__ == "__main__":
    sys.exit(main())
