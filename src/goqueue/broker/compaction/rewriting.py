"""The two passes of a round over sealed segments, step by step. Each step runs in a thread, and is short.

The first pass shows the round what is new, the second writes segments anew by what it says. All reads are
checked, frame by frame: a partition in which something is bad is left alone.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from goqueue.core.compaction.round import Batch, CompactionRound, dropped_abort
from goqueue.log.draft import Draft
from goqueue.log.sealed_segment import SealedSegment
from goqueue.model.errors import InvalidRecord
from goqueue.records.frame import FRAME_BYTES, Frame, scan_frames
from goqueue.records.layout import read_header

_PIECE_RECORDS = 4_500
"""About so many messages are looked at in a step, so that it takes two milliseconds or so."""
_PIECE_BYTES_MIN, _PIECE_BYTES_MAX = 64 * 1024, 512 * 1024
_FRAMES_MAX = 300
"""The same where batches are tiny."""
_NO_STOP = 2**63 - 1


class Uncleanable(Exception):
    """Something in a partition cannot be read."""


class Step(NamedTuple):
    """What a step has done."""

    size_bytes: int
    is_last: bool


class _Piece(NamedTuple):
    data: memoryview
    frames: Sequence[Frame]
    batches: Sequence[Batch]
    size: int


class Noting:
    """The first pass: over segments from the first that may hold something new."""

    def __init__(self, round_: CompactionRound, segments: Sequence[SealedSegment], clean_end: int) -> None:
        self._round = round_
        self._clean_end = clean_end
        self._pieces = (piece for segment in segments for piece in _pieces(segment))
        self._waiting: _Piece | None = None
        """What the round makes room for."""

    def step(self) -> Step:
        """Waits for the disk; raises OSError and Uncleanable."""
        piece = self._waiting or next(self._pieces, None)
        if piece is None:
            return Step(0, is_last=True)
        new = [batch for batch in piece.batches if batch[0].base_offset >= self._clean_end]
        if not self._round.make_room(new):
            self._waiting = piece
            return Step(0, is_last=False)
        self._waiting = None
        try:
            has_room = self._round.note(new)
        except InvalidRecord as error:
            raise Uncleanable(str(error)) from error
        return Step(piece.size, is_last=not has_room)


class Judging:
    """The second pass, of which nothing is written: the round tells what would stay."""

    def __init__(self, round_: CompactionRound, segments: Sequence[SealedSegment]) -> None:
        self._round = round_
        self._pieces = (piece for segment in segments for piece in _pieces(segment))

    def step(self) -> Step:
        """Waits for the disk; raises OSError and Uncleanable."""
        piece = next(self._pieces, None)
        if piece is None:
            return Step(0, is_last=True)
        try:
            self._round.judge(piece.batches)
        except InvalidRecord as error:
            raise Uncleanable(str(error)) from error
        return Step(piece.size, is_last=False)


class Rewriting:
    """The second pass over neighbours that become one segment."""

    def __init__(self, round_: CompactionRound, segments: Sequence[SealedSegment]) -> None:
        first = segments[0]
        self._round = round_
        self.segments = segments
        self.draft = Draft(first.disk, first.folder, first.base_offset)
        self._left = [*segments]
        self._pieces: Iterator[_Piece] = iter(())
        self.is_changed = len(segments) > 1
        """Whether the new segment is another than the old one."""
        self.dropped_aborts: set[tuple[int, int]] = set()
        """Producer and offset of the abort markers that went."""

    def step(self) -> Step:
        """Waits for the disk; raises OSError and Uncleanable."""
        piece = next(self._pieces, None)
        if piece is None:
            self.draft.border()
            if not self._left:
                return Step(self.draft.drain(), is_last=True)
            self._pieces = _pieces(self._left.pop(0))
            return Step(0, is_last=False)
        try:
            verdicts = self._round.judge(piece.batches)
        except InvalidRecord as error:
            raise Uncleanable(str(error)) from error
        for frame, (header, body), verdict in zip(piece.frames, piece.batches, verdicts, strict=True):
            if verdict is body:
                start = frame.body_start - FRAME_BYTES
                offsets = range(frame.base_offset, frame.end_offset)
                self.draft.copy(
                    piece.data[start : frame.body_end],
                    offsets=offsets,
                    max_timestamp_ms=frame.max_timestamp_ms,
                )
                continue
            if verdict is not None:
                self.draft.put(verdict, lane=frame.lane)
                self.is_changed = True
                continue
            self.draft.skip(frame.end_offset, frame.leader_epoch)
            self.is_changed |= header.record_count > 0 or header.producer_id >= 0
            if (dropped := dropped_abort(header, body)) is not None:
                self.dropped_aborts.add(dropped)
        return Step(piece.size + self.draft.drain(), is_last=False)


def _pieces(segment: SealedSegment) -> Iterator[_Piece]:
    """The frames of a segment, each checked in full."""
    position, wanted = 0, _PIECE_BYTES_MIN
    offset = segment.base_offset
    while position < segment.size:
        data = memoryview(segment.file.read(position, min(wanted, segment.size - position)))
        scan = scan_frames(data, stop_offset=_NO_STOP, count_max=_FRAMES_MAX)
        if scan.problem:
            raise Uncleanable(f"behind offset {offset}: {scan.problem}")
        if not scan.frames:
            if scan.wanted_bytes <= len(data) or position + scan.wanted_bytes > segment.size:
                raise Uncleanable(f"behind offset {offset}: the file ends too early")
            wanted = scan.wanted_bytes
            continue
        batches: list[Batch] = []
        for frame in scan.frames:
            if frame.base_offset != offset:
                raise Uncleanable(f"offset {frame.base_offset} stands where {offset} is due")
            body = data[frame.body_start : frame.body_end]
            batches.append((read_header(body), body))
            offset = frame.end_offset
        yield _Piece(data, scan.frames, batches, scan.consumed_bytes)
        position += scan.consumed_bytes
        # What comes is mostly as what was.
        records = max(sum(header.record_count for header, _ in batches), 1)
        alike_bytes = scan.consumed_bytes * _PIECE_RECORDS // records
        wanted = min(max(alike_bytes, _PIECE_BYTES_MIN), _PIECE_BYTES_MAX)
    if offset != segment.end_offset:
        raise Uncleanable(f"a segment ends at offset {offset} where {segment.end_offset} is due")
