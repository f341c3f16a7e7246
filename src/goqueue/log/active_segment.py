"""The active segment: the last one of a partition, and the only one that grows.

`size` and `end_offset` tell of whole frames that were written and noted; behind them the file may hold what a
failed write has left, until it is taken back or cut. Its indexes grow in memory. When it is full it hands
over to a `SealedSegment`; a thread that still reads from it finds everything as it was.
"""

from collections.abc import Sequence

from goqueue.log.sealed_segment import SealedSegment
from goqueue.log.segment import LOG_SUFFIX, NS_PER_MS, Segment, segment_path
from goqueue.log.sparse_index import Checksum
from goqueue.model.ports import Buffer, Disk
from goqueue.records.frame import FRAME_BYTES, Frame

INDEX_INTERVAL_BYTES = 4096


class ActiveSegment(Segment):
    """Where frames are written. Checking them is the business of PartitionLog and recovery."""

    def __init__(self, disk: Disk, folder: str, base_offset: int) -> None:
        super().__init__(disk, folder, base_offset, end_offset=base_offset, size=0)
        self._indexed_position = -INDEX_INTERVAL_BYTES

    @classmethod
    def begun(cls, disk: Disk, folder: str, base_offset: int) -> "ActiveSegment":
        """An empty segment, with its file there: its name is where the partition's offsets go on."""
        segment = cls.without_file(disk, folder, base_offset)
        path = segment_path(folder, base_offset)
        segment._file = disk.open(path)
        assert segment.file.size() == 0, f"{path} holds data where a new segment begins"
        return segment

    @classmethod
    def without_file(cls, disk: Disk, folder: str, base_offset: int) -> "ActiveSegment":
        """An empty segment that stands for the end of a log that has lost its own."""
        segment = cls(disk, folder, base_offset)
        segment.begin_indexes()
        segment.rewind(base_offset, 0, max_timestamp_ms=-1)
        return segment

    def is_on_disk(self) -> bool:
        """Whether its file is there: that of a damaged log may stand for what is lost."""
        return f"{self.base_offset:020d}{LOG_SUFFIX}" in self.disk.list(self.folder)

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Append bytes. After an OSError part of them may be there: see `take_back`."""
        self.file.append(buffers)

    def take_back(self) -> bool:
        """Cut off what a failed write left behind; False when even that fails."""
        try:
            self.file.truncate(self.size)
        except OSError:
            return False
        return True

    def note_frame(self, position: int, frame_bytes: int, *, offsets: range, max_timestamp_ms: int) -> None:
        """Take a frame that has just been written, or found by a walk, into account."""
        self._max_timestamp_ms = max(self.max_timestamp_ms, max_timestamp_ms)
        if position - self._indexed_position >= INDEX_INTERVAL_BYTES:
            self._offsets.add(offsets.start, position)
            self._times.add(self._max_timestamp_ms * NS_PER_MS, offsets.start)
            self._indexed_position = position
        self.end_offset = offsets.stop
        self.size = position + frame_bytes

    def note_frames(self, frames: Sequence[Frame], size: int) -> None:
        """The same for frames that were written behind each other, in so many bytes."""
        position, indexed_position, latest_ms = self.size, self._indexed_position, self.max_timestamp_ms
        for base_offset, _, _, max_timestamp_ms, _, start, end, _ in frames:
            if max_timestamp_ms > latest_ms:
                latest_ms = max_timestamp_ms
            if position - indexed_position >= INDEX_INTERVAL_BYTES:
                self._offsets.add(base_offset, position)
                self._times.add(latest_ms * NS_PER_MS, base_offset)
                indexed_position = position
            position += FRAME_BYTES + end - start
        self._max_timestamp_ms, self._indexed_position = latest_ms, indexed_position
        self.end_offset = frames[-1].end_offset
        self.size += size

    def cut(self, *, is_forced: bool = False) -> int:
        """Cut the file behind the last good frame; returns how many bytes went."""
        surplus = self.file.size() - self.size
        if surplus > 0 or is_forced:
            self.file.truncate(self.size)
        return surplus

    def seal(self, *, saves_indexes: bool = True) -> SealedSegment:
        """Nothing more will be written: the same segment for those who read, with its indexes saved.

        The largest timestamp is the last word of the time index. Indexes that could not be saved, or must not
        be because a damaged folder is left as it is, go on in memory.
        """
        last = self._times.last()
        if last and last[0] != self.max_timestamp_ms * NS_PER_MS:
            self._times.add(self.max_timestamp_ms * NS_PER_MS, self.end_offset - 1)
        is_saved = saves_indexes and self.save_indexes()
        sealed = SealedSegment(
            self.disk, self.folder, self.base_offset, end_offset=self.end_offset, size=self.size
        )
        sealed.layout = self.layout
        indexes = None if is_saved else (self._offsets, self._times)
        sealed.take_over(self._file, self.max_timestamp_ms, indexes)
        return sealed

    def index_checksums(self) -> tuple[Checksum, Checksum]:
        """What a recovery point vouches for."""
        return self._offsets.checksum(), self._times.checksum()

    def trust_indexes(self, vouched: tuple[Checksum, Checksum]) -> tuple[int, int] | None:
        """Keep the index entries that a recovery point vouches for; the last one, as (offset, position)."""
        if not (self._offsets.keep(vouched[0]) and self._times.keep(vouched[1])):
            return None
        last = self._offsets.last()
        if last is not None:
            self._indexed_position = last[1]
        return last

    def begin_indexes(self) -> None:
        """Drop all index entries: a walk from the segment's start makes them anew."""
        self._offsets.begin()
        self._times.begin()
        self._indexed_position = -INDEX_INTERVAL_BYTES

    def rewind(self, end_offset: int, size: int, *, max_timestamp_ms: int | None = None) -> None:
        """Go back to a known point; recovery walks on from there with `note_frame`."""
        self.end_offset = end_offset
        self.size = size
        self._max_timestamp_ms = max_timestamp_ms
