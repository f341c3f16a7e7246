"""Reindexing: a sealed segment's indexes are written anew, from a walk over what is good in its log.

The walk notes into another view of the same files, so that readers of the segment see its size and end
unchanged meanwhile, and its old indexes until the new ones are there.
"""

from goqueue.log.active_segment import ActiveSegment
from goqueue.log.sealed_segment import SealedSegment
from goqueue.log.walk import OnFrame, walk_frames
from goqueue.records.frame import FRAME_BYTES, Frame


def reindex(segment: SealedSegment) -> None:
    """Make both indexes anew. Waits for the disk, for as long as it takes to read the segment."""
    view = ActiveSegment(segment.disk, segment.folder, segment.base_offset)
    view.begin_indexes()
    walk_frames(
        view.file,
        position=0,
        end_position=segment.size,
        offset=view.base_offset,
        on_frame=noting(view),
        pass_damage=True,
    )
    view.seal()
    view.close()
    segment.note_reindexed()


def noting(segment: ActiveSegment) -> OnFrame:
    """For a walk: each frame it meets is taken into account."""

    def note(_piece: memoryview, frame: Frame, position: int) -> bool:
        note_found(segment, frame, position)
        return False

    return note


def note_found(segment: ActiveSegment, frame: Frame, position: int) -> None:
    """Take one frame that a walk has found into account."""
    segment.note_frame(
        position,
        frame.body_end - frame.body_start + FRAME_BYTES,
        offsets=range(frame.base_offset, frame.end_offset),
        max_timestamp_ms=frame.max_timestamp_ms,
    )
