"""Frames that another node has written: checked here as if a disk had told them, then stored unchanged.

What a replica takes lies in its file byte for byte as in the leader's. So all is checked before the first
byte is written: both checksums of each frame and its flags, offsets without a gap, epochs that do not fall,
and whole steps: frames that were written together are stored together, or none of them.
"""

from goqueue.model.errors import Corrupt
from goqueue.model.ids import TopicPartition
from goqueue.records.frame import Frame, has_own_flags, scan_frames

_NO_STOP = 2**63 - 1


def check_received(
    data: memoryview, source: TopicPartition, *, due_offset: int, last_epoch: int
) -> list[Frame]:
    """The frames in a piece from another replica. Raises Corrupt, and then none of it may be stored."""
    scan = scan_frames(data, stop_offset=_NO_STOP)
    problem = scan.problem
    offset, epoch = due_offset, last_epoch
    for frame in scan.frames:
        if frame.base_offset != offset:
            problem = f"offset {frame.base_offset} stands where {offset} is due"
            break
        if frame.leader_epoch < epoch:
            problem = f"epoch {frame.leader_epoch} follows {epoch}"
            break
        if not has_own_flags(data, frame.body_start, frame.body_end):
            problem = "the frame's flags are not those of its batch"
            break
        offset, epoch = frame.end_offset, frame.leader_epoch
    if not problem and (not scan.frames or scan.consumed_bytes < len(data)):
        problem = "it ends inside a frame"
    if not problem and scan.frames[-1].continues:
        problem = "it ends inside an append"
    if problem:
        raise Corrupt(
            f"what a replica of {source} was sent is bad at offset {offset}: {problem}",
            topic=source.topic,
            partition=source.partition,
            offset=offset,
        )
    return scan.frames
