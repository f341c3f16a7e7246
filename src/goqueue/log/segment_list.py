"""The segments of a partition in order: which is written to, and what of them the disk may not know yet.

All but the last are sealed; the last is the active one. The list is replaced, never changed in place: a
thread that reads keeps the list it began with, and with it the files. A step that the disk refuses changes
nothing.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

from goqueue.log.active_segment import ActiveSegment
from goqueue.log.file_shelf import FileShelf
from goqueue.log.recovery import Recovered
from goqueue.log.sealed_segment import SealedSegment
from goqueue.log.segment import Segment
from goqueue.model.ports import Disk, File

_base_offset = attrgetter("base_offset")


class SegmentList:
    """Begins, seals and gives up segments."""

    def __init__(self, disk: Disk, folder: str, recovered: Recovered, shelf: FileShelf) -> None:
        self._disk = disk
        self._folder = folder
        self._shelf = shelf
        self.all = recovered.segments
        self.active = recovered.active
        """The last of them; None: there is none yet."""
        self._unsynced = recovered.unsynced
        self.sealed: list[SealedSegment] = recovered.sealed
        """Sealed since the last recovery point, which does not vouch for their indexes."""
        self.removed: list[SealedSegment] = []
        """Given up; their files go when a recovery point says so."""
        # What a process that was killed has created may not be durable yet.
        self.folder_changed = True
        self.begun_count = 0
        self.removed_count = 0
        for segment in recovered.closed:
            if segment not in self._unsynced:
                segment.retire(shelf)

    @property
    def closed(self) -> list[SealedSegment]:
        """Those that nothing is written to any more."""
        return [segment for segment in self.all if isinstance(segment, SealedSegment)]

    @property
    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self.all]

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Offsets that are lost between segments: first and end of each run."""
        ends = ((before.end_offset, behind.base_offset) for before, behind in pairwise(self.all))
        return [(first, end) for first, end in ends if first < end]

    @property
    def is_any_unsynced(self) -> bool:
        return bool(self._unsynced)

    def holding(self, offset: int) -> Segment:
        """The segment that holds an offset, or the last one before it."""
        segments = self.all
        return segments[bisect_right(segments, offset, key=_base_offset) - 1]

    def behind_gap(self, offset: int) -> int:
        """The same offset, or where messages go on when it is one that is lost."""
        segments = self.all
        for segment in segments:
            if offset < segment.end_offset or segment is segments[-1]:
                return max(offset, segment.base_offset)
        return offset

    def begin(self, base_offset: int) -> ActiveSegment:
        """Begin another segment behind those there are, and seal the one that was written to."""
        return self._begin(base_offset, self.all)

    def stand_for_lost(self, end_offset: int) -> None:
        """Let the log end at an offset that it does not reach. Nothing is changed on the disk."""
        segments = self.all
        if self.active is not None:
            segments = [*segments[:-1], self.active.seal(saves_indexes=False)]
        self.active = ActiveSegment.without_file(self._disk, self._folder, end_offset)
        self.all = [*segments, self.active]

    def go_on_at(self, end_offset: int) -> None:
        """Be ready to write at an offset that is not before the end, whatever is missing before it."""
        segments, active = self.all, self.active
        if active is not None and not active.is_on_disk():
            segments = segments[:-1]
        if not segments or segments[-1].end_offset < end_offset:
            self._begin(end_offset, segments)
        elif active is not None:
            active.cut()

    def drop_before(self, offset: int) -> list[SealedSegment]:
        """Give up the segments that end before an offset; those that went."""
        count = max(bisect_right(self.all, offset, key=_base_offset) - 1, 0)
        dropped = [segment for segment in self.all[:count] if isinstance(segment, SealedSegment)]
        if dropped:
            self.removed += dropped
            self.removed_count += count
            self.all = self.all[count:]
        return dropped

    def replace(self, old: Sequence[SealedSegment], new: SealedSegment) -> None:
        """Let one segment stand for neighbours that are all there."""
        at = self.all.index(old[0])
        assert self.all[at : at + len(old)] == [*old], "what is replaced are neighbours"
        new.retire(self._shelf)
        self.all = [*self.all[:at], new, *self.all[at + len(old) :]]
        self.sealed = [segment for segment in self.sealed if segment not in old]
        self._unsynced = [segment for segment in self._unsynced if segment not in old]

    def take_unsynced(self) -> list[File]:
        """The files of sealed segments that want an fsync; the caller sees to it. They may be closed then."""
        sealed = [segment for segment in self._unsynced if isinstance(segment, SealedSegment)]
        files = [segment.file for segment in sealed]
        for segment in sealed:
            segment.retire(self._shelf)
        self._unsynced = []
        return files

    def close(self) -> None:
        for segment in self.all:
            segment.close()

    def _begin(self, base_offset: int, segments: list[SealedSegment | ActiveSegment]) -> ActiveSegment:
        fresh = ActiveSegment.begun(self._disk, self._folder, base_offset)
        if segments:
            last = segments[-1]
            sealed = last.seal() if isinstance(last, ActiveSegment) else last
            self._unsynced = [segment for segment in self._unsynced if segment is not last]
            self._unsynced.append(sealed)
            self.sealed.append(sealed)
            segments = [*segments[:-1], sealed]
        self.active = fresh
        self.all = [*segments, fresh]
        self.begun_count += 1
        self.folder_changed = True
        return fresh
