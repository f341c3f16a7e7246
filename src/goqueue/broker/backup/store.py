"""Where backups are kept: `backups/{id}/metadata.json`, a folder each, outside the logs.

Where the node has a key they are sealed: `metadata.sealed` then. What is plain can be read all the same.

An id is the second of its making in UTC, `2026-01-31-120000`; a second one of the same second ends in `-2`.
Files are written whole, so a folder without its file is one that a crash has left: it does not count, and
is cleared away with the next backup. The disk is asked each time, so that a folder which somebody copies
here counts at once. Methods wait for the disk: call them from threads.
"""

import asyncio
import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from goqueue.model.backups import Backup, BackupListing
from goqueue.model.errors import BackupExists, BackupNotFound, Corrupt, Invalid
from goqueue.model.ports import SEALED, Disk, Sealer

BACKUPS_FOLDER = "backups"
_PLAIN_FILE, _SEALED_FILE = "metadata.json", "metadata.sealed"
_PURPOSE = "backup"
_ID = re.compile(r"\d{4}-\d\d-\d\d-\d{6}(-\d{1,6})?", re.ASCII)
_ID_FORMAT = "%Y-%m-%d-%H%M%S"
_decoder = msgspec.json.Decoder(Backup)
"""Made here, before there are threads: see `event_codec`."""
_READABLE = re.compile(r"1\.\d+", re.ASCII)


class KeptBackup(NamedTuple):
    """A backup and the name that it is asked for by."""

    backup_id: str
    backup: Backup


class BackupStore:
    def __init__(self, disk: Disk, sealer: Sealer | None = None) -> None:
        self._disk = disk
        self._sealer = sealer
        self.lock = asyncio.Lock()
        """Held while backups are made, brought back or taken away."""

    def listings(self) -> list[BackupListing]:
        """All that can be read, the newest first."""
        found = [self._parsed(backup_id) for backup_id in self._ids()]
        kept = [_listing(each) for each in found if isinstance(each, KeptBackup)]
        return sorted(kept, key=age, reverse=True)

    def get(self, backup_id: str) -> KeptBackup:
        """One of them; Corrupt when its file cannot be read any more."""
        found = self._parsed(backup_id) if _ID.fullmatch(backup_id) else None
        if found is None:
            raise BackupNotFound(backup_id)
        if isinstance(found, Corrupt):
            raise found
        return found

    def add(self, backup: Backup, elsewhere: Collection[str] = ()) -> str:
        """Keep a new one; returns its id, which is none of those that other nodes keep."""
        second = backup.timestamp.astimezone(UTC).strftime(_ID_FORMAT)
        # The numbers go on where the first ones of the second are gone already: no id is given twice.
        known = {*self._ids(), *elsewhere}
        numbers = [int(name[len(second) + 1 :] or 1) for name in known if name.startswith(second)]
        backup_id = f"{second}-{max(numbers) + 1}" if numbers else second
        self._write(backup_id, msgspec.json.format(msgspec.json.encode(backup), indent=2))
        return backup_id

    def bring(self, backup_id: str, document: bytes) -> KeptBackup:
        """Keep one that was made elsewhere, byte by byte as it was; sealed here if it was not there."""
        if not _ID.fullmatch(backup_id):
            raise Invalid(f"{backup_id!r} is not the id of a backup, like 2026-01-31-120000")
        brought = self._decoded(backup_id, document)
        if isinstance(brought, Corrupt):
            raise Invalid(str(brought))
        if backup_id in self._ids():
            raise BackupExists(backup_id)
        self._write(backup_id, document)
        return brought

    def document(self, backup_id: str) -> bytes:
        """The file itself, to be taken elsewhere."""
        self.get(backup_id)
        document = self._read(backup_id)
        if document is None:
            raise BackupNotFound(backup_id)
        return document

    def remove(self, backup_id: str) -> None:
        """Remove one, also one that cannot be read any more."""
        if not _ID.fullmatch(backup_id) or backup_id not in self._ids():
            raise BackupNotFound(backup_id)
        # The file first: should the folder come back after a power failure, it does not count.
        for name in self._files(backup_id):
            self._disk.remove(f"{BACKUPS_FOLDER}/{backup_id}/{name}")
        self._disk.remove_tree(f"{BACKUPS_FOLDER}/{backup_id}")
        self._disk.sync_folder(BACKUPS_FOLDER)

    def thin(self, count_max: int, made: str) -> list[str]:
        """Keep the one just made and the newest besides, and clear away what counts no more; the ids gone.

        By its time that one need not be the newest: somebody may have set the clock back.
        """
        others = [each.backup_id for each in self.listings() if each.backup_id != made]
        old = others[max(count_max - 1, 0) :]
        for backup_id in old:
            self.remove(backup_id)
        known = set(self._ids())
        for name in self._disk.list(BACKUPS_FOLDER):
            if _ID.fullmatch(name) and name not in known:
                self._disk.remove_tree(f"{BACKUPS_FOLDER}/{name}")
        return old

    def _ids(self) -> list[str]:
        return [name for name in self._disk.list(BACKUPS_FOLDER) if _ID.fullmatch(name) and self._files(name)]

    def _files(self, backup_id: str) -> list[str]:
        there = self._disk.list(f"{BACKUPS_FOLDER}/{backup_id}")
        return [name for name in (_SEALED_FILE, _PLAIN_FILE) if name in there]

    def _parsed(self, backup_id: str) -> KeptBackup | Corrupt | None:
        document = self._read(backup_id)
        return None if document is None else self._decoded(backup_id, document)

    def _read(self, backup_id: str) -> bytes | None:
        for name in self._files(backup_id):
            return self._disk.read_whole(f"{BACKUPS_FOLDER}/{backup_id}/{name}")
        return None

    def _write(self, backup_id: str, document: bytes) -> None:
        if self._sealer is not None and not document.startswith(SEALED):
            document = self._sealer.seal(document, _PURPOSE)
        name = _SEALED_FILE if document.startswith(SEALED) else _PLAIN_FILE
        self._disk.make_folder(f"{BACKUPS_FOLDER}/{backup_id}")
        self._disk.replace(f"{BACKUPS_FOLDER}/{backup_id}/{name}", document)

    def _decoded(self, backup_id: str, document: bytes) -> KeptBackup | Corrupt:
        if not document.startswith(SEALED):
            return _understood(backup_id, document)
        if self._sealer is None:
            return Corrupt(f"backup {backup_id} is encrypted, and this node has no GOQUEUE_ENCRYPTION_KEYS")
        try:
            return _understood(backup_id, self._sealer.open(document, _PURPOSE))
        except Corrupt as error:
            return Corrupt(f"backup {backup_id} cannot be read: {error}")


def _understood(backup_id: str, document: bytes) -> KeptBackup | Corrupt:
    try:
        backup = _decoder.decode(document)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Corrupt(f"backup {backup_id} cannot be understood: {error}")
    if not _READABLE.fullmatch(backup.version):
        return Corrupt(f"backup {backup_id} is of version {backup.version}, which this broker does not know")
    return KeptBackup(backup_id, backup)


def _listing(kept: KeptBackup) -> BackupListing:
    backup = kept.backup
    return BackupListing(
        kept.backup_id,
        backup.timestamp,
        backup.broker_id,
        len(backup.topics),
        len(backup.consumer_groups),
        len(backup.schemas),
    )


def age(listing: BackupListing) -> tuple[datetime, str]:
    """By this the newest is found."""
    return listing.timestamp, listing.backup_id
