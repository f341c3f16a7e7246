"""Inspection: every frame of a partition's folder is read and checked, and nothing is changed.

What is good is told as runs of frames that lie one behind the other; what was vouched for and is not among
them is lost. A start looks only where it must; this looks everywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from goqueue.log.recovery import find_bases
from goqueue.log.segment import segment_path
from goqueue.log.snapshot import load_snapshots, vouched_offset
from goqueue.log.walk import walk_frames
from goqueue.model.ports import Disk
from goqueue.records.frame import FRAME_BYTES, Frame


class GoodRun(NamedTuple):
    """Frames without a gap, in offsets and in the file."""

    first_offset: int
    end_offset: int
    position: int
    end_position: int


@dataclass(slots=True)
class InspectedSegment:
    base_offset: int
    size_bytes: int
    runs: list[GoodRun] = field(default_factory=list)
    is_spoilt: bool = False
    """Bytes before the recovery point are bad: what is good among them must be taken out to be kept."""

    @property
    def bad_bytes(self) -> int:
        return self.size_bytes - sum(run.end_position - run.position for run in self.runs)


@dataclass(slots=True)
class Inspected:
    """What a partition's folder holds."""

    segments: list[InspectedSegment]
    is_absent: bool
    """There is nothing in the folder that tells of this partition."""
    start_offset: int
    end_offset: int
    """Where the log ends, or should."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    torn_bytes: int = 0
    """Behind the recovery point: a start cuts them off, as after any crash."""

    @property
    def bad_bytes(self) -> int:
        return sum(segment.bad_bytes for segment in self.segments if segment.is_spoilt)


def inspect(disk: Disk, folder: str) -> Inspected:
    """Read and check all that lies in a partition's folder. Waits for the disk, for as long as that takes."""
    snapshots = load_snapshots(disk, folder)
    vouched_end = vouched_offset(disk, folder)
    accepted = {end: first for snapshot in snapshots for first, end in snapshot.gaps}
    bases = find_bases(disk, folder)
    # A crash may bring back what was cut off a file once: where the next begins, or a loss before it was
    # accepted, this one ends.
    ends = [accepted.get(follower, follower) for follower in bases[1:]]
    segments = [_walk(disk, folder, base, end) for base, end in zip_longest(bases, ends)]
    is_absent = not segments and vouched_end is None
    first_base = segments[0].base_offset if segments else vouched_end or 0
    start_offset = snapshots[0].start_offset if snapshots else first_base
    found = Inspected(segments, is_absent, start_offset, start_offset)
    _find_losses(found, vouched_end, accepted)
    return found


def _walk(disk: Disk, folder: str, base_offset: int, end_offset: int | None) -> InspectedSegment:
    """Find what is good in a segment; in the last, which has no end yet, only whole appends."""
    file = disk.open_existing(segment_path(folder, base_offset))
    segment = InspectedSegment(base_offset, file.size())
    whole_count, whole_end = 0, GoodRun(base_offset, base_offset, 0, 0)

    def follow(_piece: memoryview, frame: Frame, position: int) -> bool:
        nonlocal whole_count, whole_end
        if end_offset is not None and frame.base_offset >= end_offset:
            return True
        end_position = position + FRAME_BYTES + frame.body_end - frame.body_start
        last = segment.runs[-1] if segment.runs else None
        if last is not None and (last.end_offset, last.end_position) == (frame.base_offset, position):
            segment.runs[-1] = last._replace(end_offset=frame.end_offset, end_position=end_position)
        elif frame.base_offset >= (base_offset if last is None else last.end_offset):
            segment.runs.append(GoodRun(frame.base_offset, frame.end_offset, position, end_position))
        if segment.runs and not frame.continues:
            whole_count, whole_end = len(segment.runs), segment.runs[-1]
        return False

    try:
        walk_frames(
            file,
            position=0,
            end_position=segment.size_bytes,
            offset=base_offset,
            on_frame=follow,
            pass_damage=True,
        )
    finally:
        file.close()
    if end_offset is None:
        segment.runs[max(whole_count - 1, 0) :] = [whole_end] if whole_count else []
    return segment


def _find_losses(found: Inspected, vouched_end: int | None, accepted: Mapping[int, int]) -> None:
    """Lay the runs one behind the other, up to where the log was once known to be good and further."""
    due_offset = found.start_offset
    is_torn = False
    for at, segment in enumerate(found.segments):
        is_last = at == len(found.segments) - 1
        limit = None if is_last else found.segments[at + 1].base_offset
        kept: list[GoodRun] = []
        for run in segment.runs:
            is_vouched = vouched_end is None or due_offset < vouched_end
            gap = (due_offset, run.first_offset)
            if is_torn or (gap[0] < gap[1] and not is_vouched):
                is_torn = True
                break
            if gap[0] < gap[1] and accepted.get(gap[1]) != gap[0]:
                found.lost.append(gap)
            due_offset = max(due_offset, run.end_offset)
            kept.append(run)
        segment.runs = kept
        if not segment.bad_bytes:
            continue
        is_tail = not kept or (len(kept) == 1 and kept[0].position == 0)
        end_offset = kept[-1].end_offset if kept else segment.base_offset
        if is_tail and limit is not None and end_offset == accepted.get(limit, limit):
            continue  # whatever lies behind the last frame, nobody reads it
        if is_tail and vouched_end is not None and due_offset >= vouched_end:
            found.torn_bytes += segment.bad_bytes
        else:
            segment.is_spoilt = True
    found.end_offset = due_offset
    if vouched_end is not None and due_offset < vouched_end:
        found.end_offset = vouched_end
        if accepted.get(vouched_end) != due_offset:
            found.lost.append((due_offset, vouched_end))
