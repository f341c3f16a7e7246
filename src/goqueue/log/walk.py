"""A walk over the frames of a segment file, in pieces, each frame checked in full."""

from collections.abc import Callable

from goqueue.model.ports import File
from goqueue.records.frame import FRAME_BYTES, Frame, scan_frames

PIECE_BYTES = 4 * 1024 * 1024
_NO_STOP = 2**63 - 1


def walk_frames(
    file: File,
    *,
    position: int,
    end_position: int,
    offset: int,
    on_frame: Callable[[memoryview, Frame, int], bool],
) -> str:
    """Call `on_frame(piece, frame, size)` for each good frame, until it answers True.

    Returns what is wrong with the first bad frame, or "" when every byte up to `end_position` is good.
    """
    piece_bytes = PIECE_BYTES
    while position < end_position:
        data = file.read(position, min(piece_bytes, end_position - position))
        piece = memoryview(data)
        scan = scan_frames(piece, stop_offset=_NO_STOP)
        for frame in scan.frames:
            if frame.base_offset != offset:
                return f"offset {frame.base_offset} stands where {offset} is due"
            if on_frame(piece, frame, frame.body_end - frame.body_start + FRAME_BYTES):
                return ""
            offset = frame.end_offset
        position += scan.consumed_bytes
        if scan.problem:
            return scan.problem
        if scan.wanted_bytes and position + scan.wanted_bytes > end_position:
            return "the file ends inside a frame"
        if len(data) < min(piece_bytes, end_position - position + scan.consumed_bytes):
            return "the file is shorter than it should be"
        piece_bytes = max(PIECE_BYTES, scan.wanted_bytes)
    return ""
