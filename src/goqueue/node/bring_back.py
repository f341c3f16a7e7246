"""`python -m goqueue.node.bring_back`: look at whole backups in a folder, check one, or bring it back.

`goqueue-admin backup verify|recover` is the way for people: it runs this. Each line that it prints is JSON.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from goqueue.broker.backup.whole.bringing_back import bring_back, check
from goqueue.broker.backup.whole.catalogue import Catalogue
from goqueue.broker.backup.whole.disk_objects import DiskObjects
from goqueue.broker.storage.data_folder import is_used
from goqueue.model.errors import BackupNotFound, Corrupt
from goqueue.model.whole_backups import Manifest
from goqueue.node.disk import FolderDisk
from goqueue.node.lock import FolderInUse, FolderLock
from goqueue.node.sealing import EncryptionConfig, key_ring, read_keys

_WELL, _DAMAGED, _WRONG, _NOT_FOUND = 0, 1, 2, 3
_TELL_EVERY_BYTES = 64 * 1024 * 1024


class Progress(msgspec.Struct):
    """How far it is."""

    done_bytes: int
    total_bytes: int


class Ended(msgspec.Struct):
    """What came of it, the last line."""

    backup_id: str
    taken_ms: int
    partitions: int
    size_bytes: int
    problems: list[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """0: it is whole, and brought back if asked for; 1: it is not; 2: wrongly asked; 3: it is not there."""
    parser = argparse.ArgumentParser(prog="goqueue-bring-back", description=__doc__)
    parser.add_argument("folder", type=Path, help="where whole backups are")
    parser.add_argument("backup_id", help="which one; `latest`: the newest")
    parser.add_argument("--before", default="", help="with `latest`: the newest whose id is not above this")
    parser.add_argument("--into", type=Path, help="the data folder to make; else the backup is only checked")
    given = parser.parse_args(arguments)
    try:
        catalogue = Catalogue(DiskObjects(FolderDisk(given.folder)), key_ring(_encryption()))
        manifest = catalogue.manifest(_chosen(catalogue, given.backup_id, given.before))
        return _work(catalogue, manifest, given.into)
    except BackupNotFound as error:
        return _refused(error, _NOT_FOUND)
    except (FolderInUse, Corrupt, OSError) as error:
        return _refused(error, _DAMAGED)
    except ValueError as error:
        return _refused(error, _WRONG)


def _work(catalogue: Catalogue, manifest: Manifest, into: Path | None) -> int:
    progress = _Told(manifest.size_bytes)
    problems = []
    if into is None:
        problems = check(catalogue, manifest, progress.more)
    else:
        disk = FolderDisk(into)
        if is_used(disk) or disk.list("logs"):
            raise ValueError(f"{into} holds something already: bring it back into an empty folder")
        with FolderLock(into):
            bring_back(catalogue, manifest, disk, progress.more)
    _print(
        Ended(manifest.backup_id, manifest.taken_ms, len(manifest.partitions), manifest.size_bytes, problems)
    )
    return _DAMAGED if problems else _WELL


class _Told:
    """Says how far it is, not too often."""

    def __init__(self, total_bytes: int) -> None:
        self._total_bytes = total_bytes
        self._done_bytes = 0
        self._next_bytes = _TELL_EVERY_BYTES

    def more(self, size: int) -> None:
        self._done_bytes += size
        if self._done_bytes >= self._next_bytes:
            self._next_bytes = self._done_bytes + _TELL_EVERY_BYTES
            _print(Progress(self._done_bytes, self._total_bytes))


def _chosen(catalogue: Catalogue, backup_id: str, before: str) -> str:
    if backup_id != "latest":
        return backup_id
    for known in catalogue.ids():
        if not before or known <= before:
            return known
    raise BackupNotFound(f"latest before {before}" if before else "latest")


def _encryption() -> EncryptionConfig:
    """As the broker has it, from the environment."""
    file = os.environ.get("GOQUEUE_ENCRYPTION_KEY_FILE", "")
    keys = read_keys(os.environ.get("GOQUEUE_ENCRYPTION_KEYS", ""))
    return EncryptionConfig(keys, Path(file) if file else None)


def _print(line: Progress | Ended) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


def _refused(error: Exception, code: int) -> int:
    print(error, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
