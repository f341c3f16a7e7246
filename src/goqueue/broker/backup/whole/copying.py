"""Copying the files of a cut into objects, a step at a time, while the broker goes on.

Large files become objects of their own, a piece each; small ones share objects. What an earlier backup has
is not written again: not even read, where the file is the same one; else compared piece by piece.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from crc32c import crc32c

from goqueue.broker.backup.whole.catalogue import Catalogue
from goqueue.broker.storage.data_folder import DELAYS_FOLDER, STAGES_FOLDER
from goqueue.model.ports import Disk, File
from goqueue.model.settings import KiB, MiB
from goqueue.model.whole_backups import VERSION, CopiedFile, Extent, Manifest, PartitionCut

PIECE_BYTES = 16 * MiB
SMALL_BYTES = 256 * KiB
"""Smaller pieces than this share an object with others."""
SAVE_EVERY_BYTES = 256 * MiB
"""So much is copied again at most when a backup is broken off."""
_FOLDERS_BESIDE = (DELAYS_FOLDER, STAGES_FOLDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A moment: where every partition was."""

    backup_id: str
    taken_ms: int
    node_id: str
    cluster_id: str
    partitions: Sequence[PartitionCut]


@dataclass(slots=True)
class _Pack:
    """Small pieces that go into one object."""

    object_name: str
    data: bytearray = field(default_factory=bytearray)


class Copying:
    """One backup under way. `steps` is gone through in a thread, a step a call; its counts can be read."""

    def __init__(self, disk: Disk, catalogue: Catalogue, cut: Cut) -> None:
        self._disk = disk
        self._catalogue = catalogue
        self.cut = cut
        self._before: Mapping[str, CopiedFile] = {}
        self._files: list[CopiedFile] = []
        self._count = 0
        self._pack = self._new_pack()
        self._unsaved_bytes = 0
        self.done_bytes = 0
        self.new_bytes = 0
        self.total_bytes = 0
        self.manifest: Manifest | None = None
        """When all is done."""

    def steps(self) -> Iterator[int]:
        """Work; each step gives how many bytes were read for it."""
        self._before = self._catalogue.copied_before()
        paths = sorted(self._paths())
        self.total_bytes = sum(self._size(path) for path in paths)
        yield 0
        for path in paths:
            for step in self._copy(path):
                yield step
                if self._unsaved_bytes >= SAVE_EVERY_BYTES:
                    self._save_pack()
                    self._catalogue.save(self._told(), is_whole=False)
                    self._unsaved_bytes = 0
        self._save_pack()
        self.manifest = self._told()
        self._catalogue.save(self.manifest, is_whole=True)

    def _told(self) -> Manifest:
        cut = self.cut
        return Manifest(
            version=VERSION,
            backup_id=cut.backup_id,
            taken_ms=cut.taken_ms,
            node_id=cut.node_id,
            cluster_id=cut.cluster_id,
            partitions=cut.partitions,
            files=list(self._files),
            new_bytes=self.new_bytes,
        )

    def _paths(self) -> Iterator[str]:
        """All files that were there at the moment, and perhaps some that came since, which do no harm."""
        removed = self._disk.removed()
        for partition in self.cut.partitions:
            folder = partition.folder
            gone = {path.rpartition("/")[2] for path in removed if path.rpartition("/")[0] == folder}
            for name in {*self._disk.list(folder), *gone}:
                if _is_of(partition, name):
                    yield f"{folder}/{name}"
        for folder in _FOLDERS_BESIDE:
            yield from self._below(folder)
            yield from (path for path in removed if path.startswith(f"{folder}/"))

    def _below(self, folder: str) -> Iterator[str]:
        for name in self._disk.list(folder):
            path = f"{folder}/{name}"
            below = list(self._below(path))
            if below:
                yield from below
            else:
                yield path

    def _size(self, path: str) -> int:
        opened = self._opened(path)
        if opened is None:
            return 0
        file, _ = opened
        try:
            return file.size()
        finally:
            file.close()

    def _copy(self, path: str) -> Iterator[int]:
        opened = self._opened(path)
        if opened is None:
            return
        file, fingerprint = opened
        try:
            before = self._before.get(path)
            if before is not None and before.fingerprint == fingerprint:
                self.done_bytes += before.size
                self._files.append(before)
                return
            extents: list[Extent] = []
            size = file.size()  # what is written to it from now on came later than the moment
            for at in range(0, size, PIECE_BYTES):
                data = file.read(at, min(PIECE_BYTES, size - at))
                known = [] if before is None else before.extents[len(extents) : len(extents) + 1]
                extents.append(self._kept(data, *known))
                self.done_bytes += len(data)
                yield len(data)
            self._files.append(CopiedFile(path=path, fingerprint=fingerprint, extents=extents))
        finally:
            file.close()

    def _kept(self, data: bytes, known: Extent | None = None) -> Extent:
        """Where these bytes lie: where they lay before, or in a new object."""
        checksum = crc32c(data)
        if known is not None and (known.size, known.checksum) == (len(data), checksum):
            return known
        self.new_bytes += len(data)
        self._unsaved_bytes += len(data)
        if len(data) < SMALL_BYTES:
            if len(self._pack.data) + len(data) > PIECE_BYTES:
                self._save_pack()
            extent = Extent(self._pack.object_name, len(self._pack.data), len(data), checksum)
            self._pack.data += data
            return extent
        name = self._new_name()
        self._catalogue.put(name, data)
        return Extent(name, 0, len(data), checksum)

    def _save_pack(self) -> None:
        if self._pack.data:
            self._catalogue.put(self._pack.object_name, bytes(self._pack.data))
            self._pack = self._new_pack()

    def _new_pack(self) -> _Pack:
        return _Pack(self._new_name())

    def _new_name(self) -> str:
        self._count += 1
        return f"{self.cut.backup_id}/{self._count:06}"

    def _opened(self, path: str) -> tuple[File, str] | None:
        """The file that was at a path at the moment, and its fingerprint; None: it is not there any more.

        It may go at any time, and another may take its path: then it is among those that were removed.
        """
        kept = self._disk.removed().get(path)
        if kept is None:
            try:
                file, fingerprint = self._disk.open_existing(path), self._disk.fingerprint(path)
            except IsADirectoryError:
                return None  # an empty folder
            except FileNotFoundError:
                kept = self._disk.removed().get(path)
                if kept is None:
                    return None
            else:
                kept = self._disk.removed().get(path)
                if kept is None:
                    return file, fingerprint
                file.close()
        return self._disk.open_existing(kept), self._disk.fingerprint(kept)


def _is_of(partition: PartitionCut, name: str) -> bool:
    """Whether a file of its folder tells of what was there at the moment."""
    number = name.partition(".")[0]
    # Segments bear the offset that they begin with, recovery points the one that they vouch up to.
    return number.isdigit() and int(number) <= partition.end_offset
