"""Reading frames of a segment: locate, read, check, take what fits.

Every byte that is handed out lies in a frame whose checksum was compared in this very read, at the offset
that is due there. Reads run on the loop when what they need is in memory, and in threads: nothing here waits
unless `read_bytes` may. What is remembered between reads only saves time: to lose it, or to find it changed
by another thread, costs a look-up.
"""

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from goqueue.log.reindex import reindex
from goqueue.log.sealed_segment import SealedSegment
from goqueue.log.segment import Segment
from goqueue.model.errors import Corrupt
from goqueue.model.ids import TopicPartition
from goqueue.model.ports import File
from goqueue.records.frame import FRAME_BYTES, Frame, find_behind, scan_frames

_HINTS_MAX = 64
_READ_AHEAD_BYTES = 4096
"""Read a little more than asked, so that the skipped frames before an offset do not cost a second read."""
_FRAMES_MAX = 2_000
"""A read ends behind so many frames, however small: to check them takes 5 ms, and the loop waits for it."""
_GROWTH = 4
"""So much more is read each time while a good frame behind a bad one is looked for."""


class Chunk(NamedTuple):
    """Batches read, whole and checked."""

    batches: list[memoryview]
    lanes: list[int]
    size: int
    end_offset: int


class NotCached(Exception):
    """What is wanted is not in memory: read again from a thread, which may wait for the disk."""


def from_memory(file: File, position: int, size: int) -> bytes | bytearray:
    """Read without waiting, or raise NotCached."""
    data = file.read_cached(position, size)
    if data is None:
        raise NotCached
    return data


def from_disk(file: File, position: int, size: int) -> bytes:
    """Read, waiting for the disk if need be."""
    return file.read(position, size)


ANY_SIZE = sys.maxsize
"""Of the first batch of a read: however large, it is brought."""
ReadBytes = Callable[[File, int, int], bytes | bytearray]


class FrameReader:
    """Reads the segments of one partition, and remembers where its readers go on."""

    def __init__(self, source: TopicPartition) -> None:
        self._source = source
        self._hints: dict[int, tuple[object, int]] = {}
        """Offset to a segment's layout and the position in it: it keeps that when it is sealed."""
        self._warm: SealedSegment | None = None
        """The one sealed segment whose indexes stay in memory."""
        self._reindexed: set[int] = set()
        self.look_ups = 0

    def read(
        self,
        segment: Segment,
        offset: int,
        max_bytes: int,
        *,
        end_offset: int,
        read_bytes: ReadBytes,
        framed: bool,
        first_bytes_max: int,
    ) -> Chunk:
        """Batches from the one that holds `offset` on, at least one, up to `max_bytes`.

        None when the first is larger than `first_bytes_max`.
        """
        try:
            return self._read(segment, offset, max_bytes, end_offset, read_bytes, framed, first_bytes_max)
        except Corrupt:
            # An index that lies looks like a corrupt log. Believe the worst only after building it anew. That
            # of the segment being written cannot lie: it is made in memory, or vouched for with a checksum.
            if not isinstance(segment, SealedSegment) or segment.base_offset in self._reindexed:
                raise
            if read_bytes is from_memory:
                raise NotCached from None
            self._reindexed.add(segment.base_offset)
            reindex(segment)
            self._hints.clear()
            return self._read(segment, offset, max_bytes, end_offset, read_bytes, framed, first_bytes_max)

    def forget(self, removed: Sequence[Segment] = ()) -> None:
        """Segments have come or gone: what was remembered of them may be wrong."""
        self._hints.clear()
        self._reindexed.difference_update(segment.base_offset for segment in removed)
        if self._warm is not None and self._warm in removed:
            self._warm = None

    def forget_indexes(self, segment: Segment) -> None:
        """A look-up that comes only once is over: give the memory back, unless readers use it too."""
        if isinstance(segment, SealedSegment) and segment is not self._warm:
            segment.forget_indexes()

    def corrupt(self, offset: int, problem: str, next_offset: int = -1) -> Corrupt:
        """The error that names the offset, and where messages go on if that is known."""
        topic, partition = self._source
        way_past = f"; messages go on at offset {next_offset}" if next_offset >= 0 else ""
        return Corrupt(
            f"{topic}/{partition} is corrupt at offset {offset}: {problem}{way_past}",
            topic=topic,
            partition=partition,
            offset=offset,
            next_offset=next_offset,
        )

    def _read(
        self,
        segment: Segment,
        offset: int,
        max_bytes: int,
        end_offset: int,
        read_bytes: ReadBytes,
        framed: bool,
        first_bytes_max: int,
    ) -> Chunk:
        # `expected` is the offset due at `position`; both go on together until the frame that holds `offset`
        # is found. The size is taken once: a thread may read while the segment grows.
        segment_bytes = segment.size
        # A crash may bring back what was cut off a file once: where the next begins, this one ends.
        stop_offset = min(end_offset, segment.end_offset)
        expected, position = self._locate(segment, offset, may_wait=read_bytes is not from_memory)
        want = max_bytes + _READ_AHEAD_BYTES
        while True:
            want = min(want, segment_bytes - position)
            data = memoryview(read_bytes(segment.file, position, want))
            scan = scan_frames(data, stop_offset=stop_offset, count_max=_FRAMES_MAX)
            chunk, next_position, expected = self._take(
                scan.frames, data, offset, max_bytes, first_bytes_max, expected
            )
            # Good frames are handed out even when a bad one follows: the next read begins there and tells.
            if chunk.batches:
                self._remember(chunk.end_offset, segment, position + next_position)
                return _with_frames(chunk, data, next_position) if framed else chunk
            is_too_large = chunk.end_offset <= offset and scan.frames and scan.frames[-1].end_offset > offset
            if is_too_large or scan.wanted_bytes - FRAME_BYTES > first_bytes_max:
                return Chunk([], [], 0, offset)
            if scan.problem:
                # The bad frame may lie before the offset asked for, which can still be good: the index leads
                # to a frame some way before it. So go on behind the bad one, unless that leads past the
                # offset, which then is lost with it, or back, where bytes only look like a frame.
                behind = find_behind(data, scan.consumed_bytes)
                if behind is None and position + want < segment_bytes:
                    # The bad frame may be longer than what was read. Read on from where it begins: that is
                    # where `expected` is due, now that the good frames before it are counted.
                    position += scan.consumed_bytes
                    want *= _GROWTH
                elif behind is None or not expected < behind[1] <= offset:
                    next_offset = stop_offset if behind is None else min(behind[1], stop_offset)
                    raise self.corrupt(expected, scan.problem, next_offset if next_offset > offset else -1)
                else:
                    position, expected = position + behind[0], behind[1]
                continue
            # No frame was bad and none was taken: all were before the offset, or not even one was read whole.
            if not scan.consumed_bytes and not scan.wanted_bytes:
                raise self.corrupt(expected, "a frame of a later offset stands here")
            position += scan.consumed_bytes
            if len(data) < want or position + scan.wanted_bytes > segment_bytes or position >= segment_bytes:
                raise self.corrupt(expected, "the file ends too early")
            # A frame larger than what was asked for is read whole: a reader always gets at least one batch.
            want = max(scan.wanted_bytes, max_bytes + _READ_AHEAD_BYTES)

    def _locate(self, segment: Segment, offset: int, *, may_wait: bool) -> tuple[int, int]:
        """(offset, position) of a frame at or before `offset`."""
        hint = self._hints.get(offset)
        if hint is not None and hint[0] is segment.layout:
            return offset, hint[1]
        if offset == segment.base_offset:
            return offset, 0
        if not may_wait and not segment.has_index_at_hand:
            raise NotCached
        if isinstance(segment, SealedSegment) and segment is not self._warm:
            if self._warm is not None:
                self._warm.forget_indexes()
            self._warm = segment
        self.look_ups += 1
        return segment.position_at_or_before(offset)

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        """Where the reader that goes on at `offset` will find it."""
        if len(self._hints) >= _HINTS_MAX:
            self._hints.pop(next(iter(self._hints), -1), None)
        self._hints[offset] = (segment.layout, position)

    def _take(
        self,
        frames: list[Frame],
        data: memoryview,
        offset: int,
        max_bytes: int,
        first_bytes_max: int,
        expected: int,
    ) -> tuple[Chunk, int, int]:
        """What of the scanned frames goes to the reader, where it ends, and the offset due behind it."""
        batches: list[memoryview] = []
        lanes: list[int] = []
        size, position = 0, 0
        for base_offset, frame_end_offset, lane, _, _, body_start, body_end, _ in frames:
            if base_offset != expected:
                if batches:
                    break
                raise self.corrupt(expected, f"offset {base_offset} stands where {expected} is due")
            if frame_end_offset > offset:
                body_bytes = body_end - body_start
                if size + body_bytes > max_bytes and (batches or body_bytes > first_bytes_max):
                    break
                batches.append(data[body_start:body_end])
                lanes.append(lane)
                size += body_bytes
            expected = frame_end_offset
            position = body_end
        return Chunk(batches, lanes, size, expected), position, expected


def _with_frames(chunk: Chunk, data: memoryview, end_position: int) -> Chunk:
    """The same batches with their frames: those lie between them, so it is one piece of the file."""
    size = chunk.size + FRAME_BYTES * len(chunk.batches)
    return Chunk([data[end_position - size : end_position]], [], size, chunk.end_offset)
