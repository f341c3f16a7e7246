"""Which whole backups there are: manifests among the objects, and what nobody refers to any more.

    {id}/manifest    the backup is whole
    {id}/partial     it was not finished; what it has copied already is used by the next one
    {id}/{number}    bytes of files

Methods wait for the disk: call them from threads.
"""

from collections.abc import Iterable
from contextlib import suppress

import msgspec
from crc32c import crc32c

from goqueue.model.errors import BackupNotFound, Corrupt
from goqueue.model.ports import SEALED, Objects, Sealer
from goqueue.model.whole_backups import VERSION, CopiedFile, Extent, Manifest

MANIFEST, PARTIAL = "manifest", "partial"
_decoder = msgspec.json.Decoder(Manifest)


class Catalogue:
    def __init__(self, objects: Objects, sealer: Sealer | None) -> None:
        self._objects = objects
        self._sealer = sealer

    def ids(self) -> list[str]:
        """Those that are whole, the newest first."""
        return sorted(self._ids(MANIFEST), reverse=True)

    def newest_id(self) -> str:
        """Also of one that was broken off; empty: there is none."""
        return max((*self._ids(MANIFEST), *self._ids(PARTIAL)), default="")

    def manifests(self) -> list[Manifest]:
        """The same, as far as they can be read."""
        found = []
        for backup_id in self.ids():
            with suppress(Corrupt, BackupNotFound):
                found.append(self.manifest(backup_id))
        return found

    def manifest(self, backup_id: str) -> Manifest:
        """Raises BackupNotFound, Corrupt."""
        document = self._get(f"{backup_id}/{MANIFEST}")
        if document is None:
            raise BackupNotFound(backup_id)
        return _understood(backup_id, document)

    def copied_before(self) -> dict[str, CopiedFile]:
        """By path, what the newest backup has, or one that was broken off since."""
        newest = self.newest_id()
        for name in (MANIFEST, PARTIAL):
            try:
                document = self._get(f"{newest}/{name}")
                files = _understood(newest, document).files if document is not None else ()
            except Corrupt:
                continue  # then all is copied anew
            if files:
                return {file.path: file for file in files}
        return {}

    def save(self, manifest: Manifest, *, is_whole: bool) -> None:
        document = msgspec.json.encode(manifest)
        self.put(f"{manifest.backup_id}/{MANIFEST if is_whole else PARTIAL}", document)
        if is_whole:
            self._objects.remove(f"{manifest.backup_id}/{PARTIAL}")

    def put(self, name: str, data: bytes) -> None:
        sealed = data if self._sealer is None else self._sealer.seal(data, _purpose(name))
        self._objects.put(name, sealed)

    def read(self, extent: Extent) -> bytes:
        """Bytes of a file. Raises Corrupt when they are not what was copied."""
        whole = self._get(extent.object_name)
        if whole is None:
            raise Corrupt(f"object {extent.object_name} is missing")
        data = whole[extent.at : extent.at + extent.size]
        if len(data) != extent.size or crc32c(data) != extent.checksum:
            raise Corrupt(f"object {extent.object_name} is not as it was written")
        return data

    def remove(self, backup_id: str) -> None:
        """The manifest first: what is left by a crash belongs to no backup, and goes with the next."""
        if backup_id not in self._ids(MANIFEST):
            raise BackupNotFound(backup_id)
        self._objects.remove(f"{backup_id}/{MANIFEST}")
        self.clear()

    def thin(self, count_max: int) -> list[str]:
        """Keep the newest; the ids of those that are gone."""
        old = self.ids()[count_max:]
        for backup_id in old:
            self._objects.remove(f"{backup_id}/{MANIFEST}")
        self.clear()
        return old

    def clear(self) -> None:
        """Remove objects that no backup refers to. Where one cannot be read nothing is removed."""
        known = [self.manifest(backup_id) for backup_id in self._ids(MANIFEST)]
        wanted = {extent.object_name for each in known for extent in _extents(each.files)}
        wanted.update(f"{each.backup_id}/{MANIFEST}" for each in known)
        for name in self._objects.names():
            if name not in wanted:
                self._objects.remove(name)

    def _ids(self, kind: str) -> list[str]:
        return [name.removesuffix(f"/{kind}") for name in self._objects.names() if name.endswith(f"/{kind}")]

    def _get(self, name: str) -> bytes | None:
        data = self._objects.get(name)
        if data is None or not data.startswith(SEALED):
            return data
        if self._sealer is None:
            raise Corrupt(f"{name} is encrypted, and there are no GOQUEUE_ENCRYPTION_KEYS")
        return self._sealer.open(data, _purpose(name))


def _extents(files: Iterable[CopiedFile]) -> Iterable[Extent]:
    return (extent for file in files for extent in file.extents)


def _purpose(name: str) -> str:
    return f"backup object {name}"


def _understood(backup_id: str, document: bytes) -> Manifest:
    try:
        manifest = _decoder.decode(document)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Corrupt(f"the manifest of backup {backup_id} cannot be understood: {error}") from error
    if manifest.version != VERSION:
        raise Corrupt(f"backup {backup_id} is of version {manifest.version}, which is not known here")
    return manifest
