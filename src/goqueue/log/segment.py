"""A segment: one stretch of a partition's log in one file, with its two sparse indexes; here as it is read.

What a file holds up to `size` are whole frames with offsets that follow each other without a gap from
`base_offset` to `end_offset`. The next segment begins there, or behind offsets whose loss was accepted. Only
the last segment of a partition is written to (`active_segment.py`); the others never change again and can be
given up one by one (`sealed_segment.py`). Readers need not know which of the two they have.
"""

from goqueue.log.sparse_index import SparseIndex
from goqueue.model.ports import Disk, File

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
NS_PER_MS = 1_000_000
"""Times stand in the time index in nanoseconds."""


def segment_path(folder: str, base_offset: int, suffix: str = LOG_SUFFIX) -> str:
    """Where a segment's log, or the index with that suffix, lies."""
    return f"{folder}/{base_offset:020d}{suffix}"


class Segment:
    """Where frames lie, by offset and by time."""

    def __init__(self, disk: Disk, folder: str, base_offset: int, *, end_offset: int, size: int) -> None:
        self.disk = disk
        self.folder = folder
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.size = size
        self._file: File | None = None
        self._offsets = SparseIndex(disk, segment_path(folder, base_offset, INDEX_SUFFIX))
        self._times = SparseIndex(disk, segment_path(folder, base_offset, TIME_INDEX_SUFFIX))
        self._max_timestamp_ms: int | None = None
        self.layout = object()
        """Where its frames lie: another one when they lie elsewhere, under the same name."""

    @property
    def file(self) -> File:
        """The log file, opened when first needed."""
        file = self._file
        if file is None:
            file = self._file = self.disk.open_existing(segment_path(self.folder, self.base_offset))
            self._opened()
        return file

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp in the segment; -1 when it is empty."""
        if self._max_timestamp_ms is None:
            last = self._times.last()
            self._max_timestamp_ms = last[0] // NS_PER_MS if last else -1
        return self._max_timestamp_ms

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
        before = self._times.below(timestamp_ms * NS_PER_MS)
        return before[1] if before else self.base_offset

    def newest_before(self, offset: int) -> tuple[int, int]:
        """The largest timestamp up to some message before an offset, and where that is; -1: unknown."""
        known = self._times.below_value(offset)
        return (known[0] // NS_PER_MS, known[1]) if known else (-1, self.base_offset)

    def save_indexes(self) -> bool:
        """Write both indexes to their files; whether that could be done."""
        return self._offsets.save() and self._times.save()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> None:
        """The file was opened for a reader."""
