"""A sealed segment: nothing is written to it any more, so it can be read, checked, moved or removed alone.

Its end, its size and its bytes stay as they are for as long as it lives. Its indexes are loaded for a look-up
and forgotten, its file is opened when it is needed and closed when others need theirs more: most sealed
segments are never read again. This is all that readers, retention, the scrub and whoever keeps old segments
elsewhere need.
"""

from goqueue.log.aborted_index import aborted_index_path
from goqueue.log.file_shelf import FileShelf
from goqueue.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    NS_PER_MS,
    TIME_INDEX_SUFFIX,
    Segment,
    segment_path,
)
from goqueue.log.sparse_index import SparseIndex
from goqueue.model.ports import Disk, File


class SealedSegment(Segment):
    """A segment that only looks back."""

    def __init__(self, disk: Disk, folder: str, base_offset: int, *, end_offset: int, size: int) -> None:
        super().__init__(disk, folder, base_offset, end_offset=end_offset, size=size)
        self._shelf: FileShelf | None = None
        self._is_pinned = False

    def take_over(
        self, file: File | None, max_timestamp_ms: int, indexes: tuple[SparseIndex, SparseIndex] | None
    ) -> None:
        """Go on with what was at hand while it was written; None for indexes: all of them is in their files.

        The file must be the same one until it is synced: the error of a write that failed behind our back
        is told only to those who had it open then.
        """
        self._file = file
        self._max_timestamp_ms = max_timestamp_ms
        if indexes is not None:
            self._offsets, self._times = indexes

    def retire(self, shelf: FileShelf) -> None:
        """All of it is on the disk, or a flush has the file in hand: from now on the shelf may close it."""
        self._shelf = shelf
        if self._file is not None:
            shelf.put(self)

    def let_go(self) -> None:
        """Open the file again when it is needed. It is closed when those who read from it are done."""
        if not self._is_pinned:
            self._file = None

    def forget_indexes(self) -> None:
        """Give their memory back; what could not be saved stays."""
        if not self._is_pinned:
            self._offsets.forget()
            self._times.forget()

    def pin(self) -> None:
        """Have all at hand that readers need: another file is about to take its name. Waits for the disk."""
        self._is_pinned = True
        self._offsets.load()
        self._times.load()
        assert self.file is not None, "its file stays open"

    def unpin(self) -> None:
        """Its name stays its own."""
        self._is_pinned = False

    def open_indexes(self) -> list[File]:
        """The index files, for an fsync; the caller closes them."""
        suffixes = (INDEX_SUFFIX, TIME_INDEX_SUFFIX)
        return [self.disk.open_existing(segment_path(self.folder, self.base_offset, s)) for s in suffixes]

    def is_indexed(self) -> bool:
        """Whether its indexes can be those of its log; only their ends are looked at."""
        offsets, times = self._offsets.ends(), self._times.ends()
        if offsets is None or times is None:
            return self.size == 0 and offsets is times
        (first, last), last_time = offsets, times[1]
        self._max_timestamp_ms = last_time[0] // NS_PER_MS
        return (
            first == (self.base_offset, 0)
            and self.base_offset <= last[0] < self.end_offset
            and last[1] < self.size
            and last_time[1] < self.end_offset
        )

    def last_indexed(self) -> tuple[int, int]:
        """Offset and position of the last indexed frame; the segment's start when there is none."""
        ends = self._offsets.ends()
        return ends[1] if ends is not None else (self.base_offset, 0)

    def note_reindexed(self) -> None:
        """Its index files were written anew: what is known from the old ones goes."""
        self.forget_indexes()
        self._max_timestamp_ms = None

    def end_at(self, end_offset: int, size: int) -> None:
        """Recovery has found how far it goes, before anybody reads it: its file may have lost its end."""
        self.end_offset = end_offset
        self.size = size

    def remove(self) -> None:
        """Delete its files. Those who read from it go on undisturbed."""
        remove_segment(self.disk, self.folder, self.base_offset)

    def _opened(self) -> None:
        if self._shelf is not None:
            self._shelf.put(self)


def remove_segment(disk: Disk, folder: str, base_offset: int) -> None:
    """Delete a segment's files, the log last: as long as that is there, its indexes can be made again."""
    for suffix in (TIME_INDEX_SUFFIX, INDEX_SUFFIX, LOG_SUFFIX):
        disk.remove(segment_path(folder, base_offset, suffix))
    disk.remove(aborted_index_path(folder, base_offset))
