"""One step of a scrub: a piece of a sealed segment is read back and checked. Runs in a thread."""

from typing import NamedTuple

from goqueue.log.sealed_segment import SealedSegment
from goqueue.log.walk import next_frame
from goqueue.records.frame import scan_frames

PIECE_BYTES = 64 * 1024
"""So little that a log of tiny frames holds the interpreter for no more than a millisecond."""
_NO_STOP = 2**63 - 1


class Scrubbed(NamedTuple):
    position: int
    """Where to go on; the segment's size at its end."""
    size_bytes: int
    problem: str
    """What is wrong with the first frame that is bad; empty: nothing is."""


def scrub(segment: SealedSegment, position: int) -> Scrubbed:
    """Check the frames that begin in the next piece of a segment. Raises OSError when it cannot be read."""
    end_position = segment.size
    wanted = min(PIECE_BYTES, end_position - position)
    file = segment.file
    while True:
        data = memoryview(file.read(position, wanted))
        scan = scan_frames(data, stop_offset=_NO_STOP)
        problem = scan.problem
        if len(data) < wanted or (scan.wanted_bytes and position + scan.wanted_bytes > end_position):
            problem = problem or "the file is shorter than it should be"
        if problem or scan.consumed_bytes or not scan.wanted_bytes:
            break
        wanted = scan.wanted_bytes  # a frame that is larger than a piece
    if not problem:
        return Scrubbed(position + scan.consumed_bytes, scan.consumed_bytes, "")
    behind = next_frame(file, position + scan.consumed_bytes + 1, end_position)
    where = f"byte {position + scan.consumed_bytes}: {problem}"
    return Scrubbed(end_position if behind is None else behind, len(data), where)
