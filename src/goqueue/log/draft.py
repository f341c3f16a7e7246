"""A segment written anew beside those it is to take the place of, and the swap.

A draft has the name of the first of them and a suffix that an opening takes for rubbish. It is on the disk,
with its indexes, before anything else is touched. Then one rename puts it in place: a power cut leaves the
old segment or the new one, and what a segment lacks of indexes is made again. Where a draft stands for
several, the others go behind it, the earlier first: as long as one of them is there, opening the log ends
the new one where that begins (frames never go across such a border), so the log is whole at each step.
"""

from collections.abc import Sequence
from contextlib import suppress
from errno import ENOSPC
from typing import NamedTuple

from goqueue.log.active_segment import ActiveSegment
from goqueue.log.sealed_segment import SealedSegment, remove_segment
from goqueue.log.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, segment_path
from goqueue.log.snapshot import load_snapshots, remove_snapshot
from goqueue.log.sparse_index import SparseIndex
from goqueue.model.messages import Lane
from goqueue.model.ports import Buffer, Disk
from goqueue.records.compacted import FILLER_OFFSETS_MAX, filler
from goqueue.records.frame import FRAME_BYTES, encode_frame
from goqueue.records.layout import read_header

DRAFT_SUFFIX = ".cleaned"
_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX)


class Swap(NamedTuple):
    """Neighbours, and the finished draft that is to take their place."""

    old: Sequence[SealedSegment]
    new: SealedSegment


class Draft(ActiveSegment):
    """A segment under another name. What is written to it follows without a gap, fillers included."""

    def __init__(self, disk: Disk, folder: str, base_offset: int) -> None:
        super().__init__(disk, folder, base_offset)
        remove_draft(disk, folder, base_offset)
        self._file = disk.open(_draft_path(folder, base_offset, LOG_SUFFIX))
        self._offsets = SparseIndex(disk, _draft_path(folder, base_offset, INDEX_SUFFIX))
        self._times = SparseIndex(disk, _draft_path(folder, base_offset, TIME_INDEX_SUFFIX))
        self.begin_indexes()
        self.rewind(base_offset, 0, max_timestamp_ms=-1)
        self._buffers: list[Buffer] = []
        self._hole: tuple[int, int] | None = None
        """Offsets that are gone behind the last frame: where they end, and in which epoch they were."""

    def copy(self, data: memoryview, *, offsets: range, max_timestamp_ms: int) -> None:
        """A frame as it lay in another segment."""
        self._fill()
        self._note(data, len(data), offsets, max_timestamp_ms)

    def put(self, body: memoryview, *, lane: int) -> None:
        """A batch that has been made anew."""
        self._fill()
        self._put(body, lane)

    def skip(self, end_offset: int, leader_epoch: int) -> None:
        """Up to an offset all is gone."""
        if self._hole is not None and self._hole[1] != leader_epoch:
            self._fill()  # where an epoch begins is told by the frames
        self._hole = end_offset, leader_epoch

    def border(self) -> None:
        """Another segment begins here: no frame goes across."""
        self._fill()

    def drain(self) -> int:
        """Write what has come together; how many bytes. Waits for the disk; raises OSError."""
        size = sum(map(len, self._buffers))
        if size:
            self.write(self._buffers)
            self._buffers = []
        return size

    def finish(self) -> SealedSegment:
        """The segment that it will be, all of it on the disk. Waits for it; raises OSError."""
        self._fill()
        self.drain()
        self.file.sync()
        sealed = self.seal()
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            path = _draft_path(self.folder, self.base_offset, suffix)
            if not self.save_indexes():
                raise OSError(ENOSPC, "the indexes of a segment do not fit on the disk")
            file = self.disk.open_existing(path)
            try:
                file.sync()
            finally:
                file.close()
        self.disk.sync_folder(self.folder)
        return sealed

    def _fill(self) -> None:
        if self._hole is not None:
            (end_offset, leader_epoch), self._hole = self._hole, None
            while self.end_offset < end_offset:
                until = min(self.end_offset + FILLER_OFFSETS_MAX, end_offset)
                self._put(filler(self.end_offset, until, leader_epoch=leader_epoch), Lane.NORMAL)

    def _put(self, body: memoryview, lane: int) -> None:
        header = read_header(body)
        frame = encode_frame(header, body, base_offset=header.base_offset, lane=lane)
        offsets = range(header.base_offset, header.end_offset)
        self._buffers.append(frame)
        self._note(body, FRAME_BYTES + len(body), offsets, header.max_timestamp_ms)

    def _note(self, data: memoryview, size: int, offsets: range, max_timestamp_ms: int) -> None:
        assert offsets.start == self.end_offset, "frames of a segment follow each other without a gap"
        self._buffers.append(data)
        self.note_frame(self.size, size, offsets=offsets, max_timestamp_ms=max_timestamp_ms)


def let_go_old_points(disk: Disk, folder: str, last_base: int) -> bool:
    """Forget recovery points that speak of places in segments up to one; False: none would be left.

    Waits for the disk; raises OSError.
    """
    points = load_snapshots(disk, folder)
    if not points or points[0].segment_base <= last_base:
        return False
    old = [point for point in points if point.segment_base <= last_base]
    for point in old:
        remove_snapshot(disk, folder, point.end_offset)
    if old:
        disk.sync_folder(folder)
    return True


def put_in_place(segment: SealedSegment) -> None:
    """Let a finished draft take the place of the segment of its name. After OSError nothing is changed."""
    disk, folder, base_offset = segment.disk, segment.folder, segment.base_offset
    # An index that is missing is made again; the old one would lead to wrong places.
    for suffix in (TIME_INDEX_SUFFIX, INDEX_SUFFIX):
        disk.remove(segment_path(folder, base_offset, suffix))
    disk.rename(_draft_path(folder, base_offset, LOG_SUFFIX), segment_path(folder, base_offset))
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        with suppress(OSError):
            disk.rename(_draft_path(folder, base_offset, suffix), segment_path(folder, base_offset, suffix))


def remove_replaced(disk: Disk, folder: str, replaced: Sequence[SealedSegment]) -> None:
    """Make a swap durable, and remove what it has made needless. Waits for the disk; raises OSError."""
    disk.sync_folder(folder)
    for segment in replaced:
        remove_segment(disk, folder, segment.base_offset)
        # One by one: without an earlier one a later one must not come back.
        disk.sync_folder(folder)


def remove_draft(disk: Disk, folder: str, base_offset: int) -> None:
    """A draft that is not wanted any more goes."""
    for suffix in _SUFFIXES:
        disk.remove(_draft_path(folder, base_offset, suffix))


def _draft_path(folder: str, base_offset: int, suffix: str) -> str:
    return segment_path(folder, base_offset, suffix) + DRAFT_SUFFIX
