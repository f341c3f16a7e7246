"""Cutting a log on purpose: a replica drops what its leader does not have.

A power cut at any moment leaves the log as it was, or cut somewhere behind the place asked for, and never
damaged. The steps, each durable before the next:

    1. all of the log is in its own files
    2. the commit log is told that what it has of the partition counts for nothing (`CommitLog.void`)
    3. there is a recovery point at or before the cut, and none behind it        (`let_go_points`)
    4. the files are cut: opening the log with an end does that                  (`recover(end_limit=…)`)

Without 2 a start would put the cut tail back, or call it damage that it cannot. Without 1 that could lose
what was confirmed. Without 3 a recovery point would vouch for what was cut.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from goqueue.log.clean_mark import lower_clean_mark
from goqueue.log.recovery import find_bases
from goqueue.log.snapshot import (
    Snapshot,
    load_snapshots,
    nothing_before,
    put_snapshot,
    remove_snapshots_after,
)
from goqueue.model.ports import Disk


def let_go_points(
    disk: Disk,
    folder: str,
    end_offset: int,
    *,
    start_offset: int,
    gaps: Sequence[tuple[int, int]],
    topic_id: UUID,
) -> None:
    """Forget the recovery points behind an offset. One at or before it is there then. Waits for the disk.

    `start_offset`, `gaps`: the log's now, which an older recovery point does not know.
    """
    bases = find_bases(disk, folder)
    known = [point for point in load_snapshots(disk, folder) if point.end_offset <= end_offset]
    point = next((point for point in known if point.segment_base in bases), None)
    gaps = [gap for gap in gaps if gap[1] <= end_offset]
    if point is None:
        put_snapshot(
            disk, folder, nothing_before(bases[0], start_offset=start_offset, topic_id=topic_id, gaps=gaps)
        )
    elif not _tells(point, start_offset, gaps):
        put_snapshot(disk, folder, replace(point, start_offset=start_offset, gaps=gaps))
    lower_clean_mark(disk, folder, end_offset)
    remove_snapshots_after(disk, folder, end_offset)
    disk.sync_folder(folder)


def _tells(point: Snapshot, start_offset: int, gaps: Sequence[tuple[int, int]]) -> bool:
    return point.start_offset == start_offset and [*point.gaps] == [*gaps]
