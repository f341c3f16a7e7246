"""A walk over the frames of a segment file, in pieces, each frame checked in full."""

from collections.abc import Callable

from goqueue.model.ports import File
from goqueue.records.frame import FRAME_BYTES, Frame, find_frame, scan_frames
from goqueue.records.layout import CRC_END

PIECE_BYTES = 4 * 1024 * 1024
_NO_STOP = 2**63 - 1
_HEAD_BYTES = FRAME_BYTES + CRC_END
_SHORT = "the file is shorter than it should be"
_TORN = "the file ends inside a frame"
TOO_SHORT = (_SHORT, _TORN)
"""What is wrong with a file of which something is missing at the end; all else are bad bytes."""

OnFrame = Callable[[memoryview, Frame, int], bool]
"""Called with a piece of the file, a frame in it and the frame's position in the file; True ends the walk."""


def walk_frames(
    file: File, *, position: int, end_position: int, offset: int, on_frame: OnFrame, pass_damage: bool = False
) -> str:
    """Visit each good frame in order. What is wrong with the first bad one, or "" when there is none.

    With `pass_damage` the walk goes on behind a bad frame, as far as another one can be found.
    """
    wanted = PIECE_BYTES
    while position < end_position:
        wanted = min(wanted, end_position - position)
        piece = memoryview(file.read(position, wanted))
        scan = scan_frames(piece, stop_offset=_NO_STOP)
        problem = scan.problem
        for frame in scan.frames:
            if frame.base_offset != offset and not pass_damage:
                return f"offset {frame.base_offset} stands where {offset} is due"
            if on_frame(piece, frame, position + frame.body_start - FRAME_BYTES):
                return ""
            offset = frame.end_offset
        position += scan.consumed_bytes
        if len(piece) < wanted:
            problem = problem or _SHORT
        elif scan.wanted_bytes and position + scan.wanted_bytes > end_position:
            problem = problem or _TORN
        wanted = max(PIECE_BYTES, scan.wanted_bytes)
        if problem:
            behind = next_frame(file, position + 1, end_position) if pass_damage else None
            if behind is None:
                return problem
            position = behind
    return ""


def next_frame(file: File, position: int, end_position: int) -> int | None:
    """Where the next frame begins whose head matches its checksum; None: there is none."""
    while end_position - position >= _HEAD_BYTES:
        piece = memoryview(file.read(position, min(PIECE_BYTES, end_position - position)))
        found = find_frame(piece, 0)
        if found is not None:
            return position + found[0]
        if len(piece) < _HEAD_BYTES:
            return None
        # A head may lie across the border of two pieces.
        position += len(piece) - _HEAD_BYTES + 1
    return None
