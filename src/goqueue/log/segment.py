"""A segment: one stretch of a partition's log in one file, with its two sparse indexes.

Only the last segment of a partition is written to. What a file holds up to `size` are whole frames
with offsets that follow each other without a gap from `base_offset` to `end_offset`. The next segment begins
there, or behind offsets whose loss was accepted.
"""

from collections.abc import Sequence

from goqueue.log.aborted_index import aborted_index_path
from goqueue.log.file_shelf import FileShelf
from goqueue.log.sparse_index import Checksum, SparseIndex
from goqueue.model.ports import Buffer, Disk, File

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
INDEX_INTERVAL_BYTES = 4096
_NS_PER_MS = 1_000_000


class Segment:
    """Where frames lie. Checking and cutting them is the business of PartitionLog and recovery."""

    def __init__(self, disk: Disk, folder: str, base_offset: int) -> None:
        stem = f"{folder}/{base_offset:020d}"
        self._folder = folder
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.size = 0
        self._disk = disk
        self._paths = (stem + LOG_SUFFIX, stem + INDEX_SUFFIX, stem + TIME_INDEX_SUFFIX)
        self._file: File | None = None
        self._shelf: FileShelf | None = None
        self._offsets = SparseIndex(disk, self._paths[1])
        self._times = SparseIndex(disk, self._paths[2])
        self._indexed_position = -INDEX_INTERVAL_BYTES
        self._max_timestamp_ms: int | None = None

    @property
    def file(self) -> File:
        """The log file, opened when first needed: most sealed segments are never read again."""
        file = self._file
        if file is None:
            file = self._file = self._disk.open_existing(self._paths[0])
            if self._shelf is not None:
                self._shelf.put(self)
        return file

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp in the segment; -1 when it is empty."""
        if self._max_timestamp_ms is None:
            last = self._times.last()
            self._max_timestamp_ms = last[0] // _NS_PER_MS if last else -1
        return self._max_timestamp_ms

    def begin(self) -> None:
        """Start an empty segment, with its file there: its name is where the partition's offsets go on."""
        self.begin_indexes()
        self._max_timestamp_ms = -1
        self._file = self._disk.open(self._paths[0])
        assert self.file.size() == 0, f"{self._paths[0]} holds data where a new segment begins"

    def stand_for_lost(self) -> None:
        """Be the end of a log that has lost its own: without a file, and without anything in it."""
        self.begin_indexes()
        self.rewind(self.base_offset, 0, max_timestamp_ms=-1)

    def is_on_disk(self) -> bool:
        """Whether its file is there: of a damaged log the last one may stand for what is lost."""
        return self._paths[0].rpartition("/")[2] in self._disk.list(self._folder)

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
            self._times.add(self._max_timestamp_ms * _NS_PER_MS, offsets.start)
            self._indexed_position = position
        self.end_offset = offsets.stop
        self.size = position + frame_bytes

    def seal(self) -> None:
        """Nothing more will be written: save the indexes, with the largest timestamp as the last word."""
        last = self._times.last()
        if last and last[0] != self.max_timestamp_ms * _NS_PER_MS:
            self._times.add(self.max_timestamp_ms * _NS_PER_MS, self.end_offset - 1)
        if self.save_indexes():
            self.forget_indexes()

    def retire(self, shelf: FileShelf) -> None:
        """All of it is on the disk, or a flush has the file in hand: from now on the shelf may close it."""
        self._shelf = shelf
        if self._file is not None:
            shelf.put(self)

    def let_go(self) -> None:
        """Open the file again when it is needed. It is closed when those who read from it are done."""
        self._file = None

    def save_indexes(self) -> bool:
        """Write both indexes to their files; whether that could be done."""
        return self._offsets.save() and self._times.save()

    def forget_indexes(self) -> None:
        self._offsets.forget()
        self._times.forget()

    @property
    def has_index_at_hand(self) -> bool:
        """Whether an offset can be located without reading a file."""
        return self._offsets.is_loaded

    def position_at_or_before(self, offset: int) -> tuple[int, int]:
        """A frame's offset and position from which a walk reaches `offset`."""
        return self._offsets.floor(offset) or (self.base_offset, 0)

    def frame_behind(self, position: int) -> tuple[int, int] | None:
        """Offset and position of an indexed frame at or behind a position; None: there is none."""
        return self._offsets.first_at(position)

    def offset_before_time(self, timestamp_ms: int) -> int:
        """An offset up to which every message is older than `timestamp_ms`."""
        before = self._times.below(timestamp_ms * _NS_PER_MS)
        return before[1] if before else self.base_offset

    def newest_before(self, offset: int) -> tuple[int, int]:
        """The largest timestamp up to some message before an offset, and where that is; -1: unknown."""
        known = self._times.below_value(offset)
        return (known[0] // _NS_PER_MS, known[1]) if known else (-1, self.base_offset)

    def index_checksums(self) -> tuple[Checksum, Checksum]:
        return self._offsets.checksum(), self._times.checksum()

    def trust_indexes(self, vouched: tuple[Checksum, Checksum]) -> tuple[int, int] | None:
        """Keep the index entries that a recovery point vouches for; the last one, as (offset, position)."""
        if not (self._offsets.keep(vouched[0]) and self._times.keep(vouched[1])):
            return None
        last = self._offsets.last()
        if last is not None:
            self._indexed_position = last[1]
        return last

    def last_indexed(self) -> tuple[int, int]:
        """Offset and position of a sealed segment's last indexed frame; its start when there is none."""
        ends = self._offsets.ends()
        return ends[1] if ends is not None else (self.base_offset, 0)

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

    def open_indexes(self) -> list[File]:
        """The index files, for an fsync; the caller closes them."""
        return [self._disk.open_existing(path) for path in self._paths[1:]]

    def twin(self) -> "Segment":
        """Another view of the same files, with nothing noted yet."""
        return Segment(self._disk, self._folder, self.base_offset)

    def cut(self) -> int:
        """Cut the file behind the last good frame; returns how many bytes went."""
        surplus = self.file.size() - self.size
        if surplus > 0:
            self.file.truncate(self.size)
        return surplus

    def is_indexed(self) -> bool:
        """Whether a sealed segment's indexes can be those of its log; only their ends are looked at."""
        offsets, times = self._offsets.ends(), self._times.ends()
        if offsets is None or times is None:
            return self.size == 0 and offsets is times
        (first, last), last_time = offsets, times[1]
        self._max_timestamp_ms = last_time[0] // _NS_PER_MS
        return (
            first == (self.base_offset, 0)
            and self.base_offset <= last[0] < self.end_offset
            and last[1] < self.size
            and last_time[1] < self.end_offset
        )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove_files(self) -> None:
        for path in reversed(self._paths):
            self._disk.remove(path)
        self._disk.remove(aborted_index_path(self._folder, self.base_offset))
