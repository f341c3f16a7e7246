"""Look-ups over the segments of a partition that are no reads: by time, and where to split it.

They begin where the sparse indexes point and read batches from there only as far as they must. Nothing here
knows where batches come from: `read_one` gives the one that holds an offset, or says that it is not in
memory.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from goqueue.log.reading import Chunk
from goqueue.log.segment import Segment
from goqueue.model.errors import InvalidRecord
from goqueue.records.batch import open_batch
from goqueue.records.layout import read_header

ReadOne = Callable[[int], Chunk]
"""The batch that holds an offset."""


class TimeLookUp:
    """Finds messages by time in one partition, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def find(
        self, segments: Sequence[Segment], timestamp_ms: int, *, from_offset: int, read_one: ReadOne
    ) -> Chunk | None:
        """The first batch, from an offset on, that has a message of that time or later; or None."""
        for segment in segments:
            if segment.end_offset <= from_offset or segment.max_timestamp_ms < timestamp_ms:
                continue
            self.count += 1
            offset = max(segment.offset_before_time(timestamp_ms), from_offset)
            while offset < segment.end_offset:
                batch = read_one(offset)
                if _max_timestamp_ms(batch) >= timestamp_ms:
                    return batch
                offset = batch.end_offset
        return None


def newest_time(segments: Sequence[Segment], *, start_offset: int, end_offset: int, read_one: ReadOne) -> int:
    """The largest timestamp of the messages between two offsets; -1 when there are none."""
    newest = -1
    for segment in segments:
        if segment.base_offset >= end_offset:
            break
        if start_offset <= segment.base_offset and segment.end_offset <= end_offset:
            newest = max(newest, segment.max_timestamp_ms)
        else:
            newest = max(newest, _newest_of(segment, start_offset, end_offset, read_one))
    return newest


def _newest_of(segment: Segment, start_offset: int, end_offset: int, read_one: ReadOne) -> int:
    """The same of a part of a segment: its largest may be among what was deleted, or is not shown yet."""
    newest, offset = segment.newest_before(end_offset)
    if start_offset > segment.base_offset:
        newest, offset = -1, start_offset
    while offset < min(segment.end_offset, end_offset):
        batch = read_one(offset)
        max_timestamp_ms = _max_timestamp_ms(batch)
        if offset == start_offset:
            # The start may lie within a batch, whose header tells of what was deleted, too.
            with suppress(InvalidRecord):  # what nobody can open is as late as its header says
                messages = open_batch(batch.batches[0], batch.lanes[0])
                late_ms = (m.timestamp_ms for m in messages if m.offset >= offset)
                max_timestamp_ms = max(late_ms, default=-1)
        newest = max(newest, max_timestamp_ms)
        offset = batch.end_offset
    return newest


def split(
    segments: Sequence[Segment],
    from_offset: int,
    until_offset: int,
    *,
    piece_bytes: int,
    forget_indexes: Callable[[Segment], None],
) -> list[int]:
    """Offsets between the two at which batches begin, about so many bytes apart. Waits for the disk.

    They come from the sparse indexes alone: nothing of the log itself is read. Those of a segment are
    forgotten before the next ones are loaded.
    """
    cuts: list[int] = []
    room_bytes = piece_bytes
    for segment in segments:
        if segment.end_offset <= from_offset or segment.base_offset >= until_offset:
            continue
        position = 0
        if segment.base_offset < from_offset:
            position = segment.position_at_or_before(from_offset)[1]
        while (place := segment.frame_behind(position + room_bytes)) is not None:
            if place[0] >= until_offset:
                return cuts
            if place[0] > (cuts[-1] if cuts else from_offset):
                cuts.append(place[0])
            position, room_bytes = place[1], piece_bytes
        # A piece goes on into the next segment: what is left of this one is taken off its size.
        room_bytes = max(room_bytes - (segment.size - position), 0)
        forget_indexes(segment)
    return cuts


def _max_timestamp_ms(batch: Chunk) -> int:
    return read_header(batch.batches[0]).max_timestamp_ms
