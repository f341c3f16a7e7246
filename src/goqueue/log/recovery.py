"""Opening a partition: find the last point known to be good, check every frame behind it, cut a torn tail.

What was fsynced lies before the recovery point or walks through whole. What follows the first bad
frame was never acknowledged with acks=all, because one fsync covers everything before it: it goes,
and so do the segments behind it. Before the recovery point nothing is ever cut: a frame that has
gone bad there stays, and reading it says so. Bytes that a recovery point vouches for and that are not
there at all are damage (`log/damage.py`): then nothing is changed on the disk.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from uuid import UUID

from goqueue.log.aborted_index import ABORTED_INDEX_SUFFIX, AbortedIndex
from goqueue.log.active_segment import ActiveSegment
from goqueue.log.damage import Damage, of_another
from goqueue.log.draft import DRAFT_SUFFIX
from goqueue.log.reindex import note_found, noting, reindex
from goqueue.log.sealed_segment import SealedSegment, remove_segment
from goqueue.log.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, segment_path
from goqueue.log.snapshot import (
    Snapshot,
    load_snapshots,
    owner_of,
    remove_snapshots_after,
    vouched_offset,
)
from goqueue.log.walk import TOO_SHORT, walk_frames
from goqueue.model.ports import Disk
from goqueue.records.frame import FRAME_BYTES, Frame
from goqueue.records.layout import BatchHeader, read_header

OnBatch = Callable[[BatchHeader, memoryview, int], None]
"""Called with a batch's header, the batch, and its lane."""
NO_LIMIT = 2**63 - 1
_DRAFT = re.compile(rf"[0-9]{{20}}.*{re.escape(DRAFT_SUFFIX)}")
"""What compaction was writing when the process ended."""
_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_INDEX_SUFFIX)
_NAME = re.compile(rf"[0-9]{{20}}({'|'.join(map(re.escape, _SUFFIXES))})")
"""What else lies in a folder is not ours: it stays, and changes nothing."""


@dataclass(slots=True)
class Recovered:
    """What a partition's folder holds, and what had to be done to it."""

    is_new: bool
    """There was nothing in the folder that tells of this partition."""
    closed: list[SealedSegment] = field(default_factory=list)
    active: ActiveSegment | None = None
    """The last segment, to be written to; None: there is none at all."""
    start_offset: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    safe_offset: int = 0
    """Everything before it was on the disk already; the rest wants an fsync."""
    touched: set[int] = field(default_factory=set)
    """The base offsets of segments that were walked further than that, or cut."""
    sealed: list[SealedSegment] = field(default_factory=list)
    """Closed segments whose indexes were written by this recovery: no recovery point vouches for them yet."""
    checked_bytes: int = 0
    cut_bytes: int = 0
    cut_reason: str = ""
    rebuilt_indexes: int = 0
    is_aborted_index_lost: bool = False
    """What was aborted before the recovery point must be told by the batches."""
    point_offset: int = 0
    """The end offset of the recovery point that was taken."""
    is_start_lowered: bool = False
    """The log was cut before its start, which the recovery points still name."""
    damage: Damage | None = None
    owner: UUID | None = None
    """Whose the folder is, as far as it tells."""

    @property
    def segments(self) -> list[SealedSegment | ActiveSegment]:
        """All there are, in order."""
        return [*self.closed] if self.active is None else [*self.closed, self.active]

    @property
    def unsynced(self) -> list[SealedSegment | ActiveSegment]:
        """Those that may not be on the disk as they are now."""
        return [segment for segment in self.segments if segment.base_offset in self.touched]


def recover(
    disk: Disk,
    folder: str,
    *,
    restore_producers: Callable[[object], None],
    on_batch: OnBatch,
    aborted: AbortedIndex,
    topic_id: UUID | None = None,
    vouched_end: int | None = None,
    end_limit: int = NO_LIMIT,
) -> Recovered:
    """Open a partition's folder. Hands over the producers' state and then each batch behind it.

    `topic_id`: whose it must be, if it tells; None: it is taken from whomever.

    `vouched_end`: up to there the commit log vouches for it, which has been put into the files already.

    After a failed fsync `end_limit` is where the disk's last word was: what lies behind it may look
    good in memory and yet be lost, so it is cut off. It is also how a log is cut (`log/cutting.py`). What
    was written in one step goes together, so it may end before the limit.
    """
    names = disk.list(folder)
    snapshots = load_snapshots(disk, folder, names)
    owner = owner_of(snapshots)
    if owner is not None and topic_id not in (None, owner):
        return Recovered(is_new=False, owner=owner, damage=of_another(owner))
    found = _find_logs(disk, folder, names)
    bases = list(found)
    vouched_ends = [end for end in (vouched_offset(disk, folder, names), vouched_end) if end is not None]
    vouched_end = max(vouched_ends, default=None)
    snapshot = _newest_fitting(snapshots, found)
    recovered = Recovered(is_new=not bases and vouched_end is None, owner=owner)
    if snapshot is not None:
        restore_producers(snapshot.producers)
        recovered.epochs = list(snapshot.epochs)
        recovered.safe_offset = recovered.point_offset = snapshot.end_offset
        recovered.is_aborted_index_lost = not aborted.load(
            bases,
            start_offset=snapshot.start_offset,
            end_offset=snapshot.end_offset,
            vouched=snapshot.aborted,
        )
    elif bases:
        recovered.safe_offset = bases[0]
    if snapshots:
        recovered.start_offset = snapshots[0].start_offset
    elif bases:
        recovered.start_offset = bases[0]
    accepted = {end: first for known in snapshots for first, end in known.gaps}
    problem = ""
    for base, follower in zip_longest(bases, bases[1:]):
        if snapshot is not None and base < snapshot.segment_base:
            _open_sealed(disk, folder, base, found[base], follower, recovered, accepted)
            continue
        segment = _open_active(disk, folder, base, snapshot)
        problem = _check_tail(segment, recovered, on_batch, end_limit)
        if not problem and follower in (None, segment.end_offset):
            _keep(segment, recovered, is_last=follower is None)
            continue
        if vouched_end is None or segment.end_offset < vouched_end:
            # Before the recovery point, or without any, which no crash explains: this may be damage to data
            # that was acknowledged long ago. Keep everything; what is missing is told below.
            if follower is None:
                recovered.active = segment
            else:
                segment.close()
                _open_sealed(disk, folder, base, found[base], follower, recovered, accepted)
            continue
        recovered.active = segment
        behind = [later for later in bases if later > base]
        recovered.cut_bytes += sum(found[later] for later in behind)
        _cut(segment, recovered, behind, problem or f"offset {segment.end_offset} is missing")
        problem = ""
        break
    _tell_losses(disk, folder, recovered, vouched_end, accepted, problem)
    if end_limit != NO_LIMIT and recovered.damage is None and recovered.active is not None:
        # A sync that failed may have left an earlier cut undone on the disk, though the OS shows it done.
        recovered.active.cut(is_forced=True)
        recovered.active.file.sync()
    return recovered


def _tell_losses(
    disk: Disk,
    folder: str,
    recovered: Recovered,
    vouched_end: int | None,
    accepted: Mapping[int, int],
    problem: str,
) -> None:
    """Compare what was found with what was vouched for. Where the end is lost, the log ends where it did."""
    segments = recovered.segments
    end_offset = segments[-1].end_offset if segments else recovered.start_offset
    lost = []
    if segments and recovered.start_offset < segments[0].base_offset:
        lost.append((recovered.start_offset, segments[0].base_offset))
    for segment, follower in pairwise(segments):
        gap = (segment.end_offset, follower.base_offset)
        # What lies before the start was given up: a log that was begun anew behind it had a gap there.
        if gap[0] < gap[1] and gap[1] > recovered.start_offset and accepted.get(gap[1]) != gap[0]:
            lost.append(gap)
    if vouched_end is not None and end_offset < vouched_end:
        lost.append((end_offset, vouched_end))
        if recovered.active is not None:
            recovered.closed.append(recovered.active.seal(saves_indexes=False))
        recovered.active = ActiveSegment.without_file(disk, folder, vouched_end)
    if lost:
        recovered.damage = Damage("bytes that a recovery point vouches for are gone", tuple(lost))
    elif problem and vouched_end is None:
        recovered.damage = Damage(f"all recovery points are gone, and behind offset {end_offset} {problem}")
    if recovered.damage is not None:
        recovered.touched, recovered.sealed = set(), []
    if recovered.active is None:
        recovered.safe_offset = recovered.start_offset
        return
    if recovered.damage is not None:
        recovered.safe_offset = recovered.active.end_offset
    if recovered.start_offset > recovered.active.end_offset:
        recovered.start_offset = recovered.active.end_offset
        recovered.is_start_lowered = True


def find_bases(disk: Disk, folder: str) -> list[int]:
    """The base offsets of the segments in a folder, rising."""
    return _bases(disk.list(folder))


def _bases(names: Iterable[str]) -> list[int]:
    segments = [name for name in names if _NAME.fullmatch(name)]
    return sorted(int(name.removesuffix(LOG_SUFFIX)) for name in segments if name.endswith(LOG_SUFFIX))


def _find_logs(disk: Disk, folder: str, names: Iterable[str]) -> dict[int, int]:
    """The segments in a folder, rising: base offset and size of each. What has no log any more goes."""
    bases = _bases(names)
    known = set(bases)
    for name in names:
        is_orphan = _NAME.fullmatch(name) and int(name.partition(".")[0]) not in known
        if is_orphan or _DRAFT.fullmatch(name):
            disk.remove(f"{folder}/{name}")
    sizes: dict[int, int] = {}
    for base in bases:
        file = disk.open_existing(segment_path(folder, base))
        sizes[base] = file.size()
        file.close()
    return sizes


def _newest_fitting(snapshots: list[Snapshot], found: Mapping[int, int]) -> Snapshot | None:
    """A recovery point fits when the bytes it vouches for are there."""
    for snapshot in snapshots:
        size = found.get(snapshot.segment_base)
        if size is None:
            if snapshot.position == 0 and not found:
                return snapshot
        elif size >= snapshot.position:
            return snapshot
    return None


def _open_sealed(
    disk: Disk,
    folder: str,
    base_offset: int,
    size: int,
    follower_base: int,
    recovered: Recovered,
    accepted: Mapping[int, int],
) -> None:
    """Take a segment before the recovery point as it is; only an index that cannot be its own is rebuilt."""
    segment = SealedSegment(disk, folder, base_offset, end_offset=follower_base, size=size)
    if not segment.is_indexed():
        reindex(segment)
        recovered.sealed.append(segment)
        recovered.rebuilt_indexes += 1
    _find_end(segment, accepted.get(follower_base, follower_base))
    segment.close()
    recovered.closed.append(segment)


def _open_active(disk: Disk, folder: str, base_offset: int, snapshot: Snapshot | None) -> ActiveSegment:
    """A segment that has to be walked: from its start, or from where the recovery point saw it."""
    segment = ActiveSegment(disk, folder, base_offset)
    if snapshot is not None and base_offset == snapshot.segment_base:
        _restore_safe_part(segment, snapshot)
    else:
        segment.begin_indexes()
    return segment


def _keep(segment: ActiveSegment, recovered: Recovered, *, is_last: bool) -> None:
    """A walk came through to its end, where the next segment begins if there is one."""
    if is_last:
        recovered.active = segment
        return
    sealed = segment.seal()
    recovered.closed.append(sealed)
    recovered.sealed.append(sealed)


def _find_end(segment: SealedSegment, due_offset: int) -> None:
    """See whether a sealed segment goes up to an offset, from its last indexed frame on; if not, up to where.

    Bytes that have gone bad are another matter: they are there, and reading them says so. Where a loss was
    accepted, frames of an append that is not whole may follow: they are among what was lost.
    """
    offset, position = segment.last_indexed()
    if offset > due_offset:
        offset, position = segment.position_at_or_before(due_offset)
    if offset >= due_offset:
        segment.end_at(offset, position)
        return

    def follow(_piece: memoryview, frame: Frame, frame_position: int) -> bool:
        nonlocal offset, position
        offset = frame.end_offset
        position = frame_position + FRAME_BYTES + frame.body_end - frame.body_start
        return offset >= due_offset

    problem = walk_frames(
        segment.file, position=position, end_position=segment.size, offset=offset, on_frame=follow
    )
    if offset >= due_offset or not problem or problem in TOO_SHORT:
        segment.end_at(offset, position)


def _restore_safe_part(segment: ActiveSegment, snapshot: Snapshot) -> None:
    """Bring a segment to where the recovery point saw it, with its indexes."""
    last = segment.trust_indexes(snapshot.indexes)
    if last is None:
        segment.begin_indexes()
    offset, position = last or (segment.base_offset, 0)
    segment.rewind(offset, position)
    # A frame here may have gone bad: it stays, and the walk goes on behind it.
    walk_frames(
        segment.file,
        position=position,
        end_position=snapshot.position,
        offset=offset,
        on_frame=noting(segment),
        pass_damage=True,
    )
    segment.rewind(snapshot.end_offset, snapshot.position, max_timestamp_ms=snapshot.max_timestamp_ms)


def _check_tail(segment: ActiveSegment, recovered: Recovered, on_batch: OnBatch, end_limit: int) -> str:
    """Walk from where the segment is known to be good to its end; says what is wrong, if anything.

    Frames that were written in one step count together or not at all.
    """
    size, start = segment.file.size(), segment.size
    step: list[tuple[Frame, int, memoryview]] = []

    def follow(piece: memoryview, frame: Frame, position: int) -> bool:
        if frame.end_offset > end_limit:
            return True
        step.append((frame, position, piece[frame.body_start : frame.body_end]))
        if not frame.continues:
            for part, part_position, body in step:
                if not recovered.epochs or part.leader_epoch > recovered.epochs[-1][0]:
                    recovered.epochs.append((part.leader_epoch, part.base_offset))
                note_found(segment, part, part_position)
                on_batch(read_header(body), body, part.lane)
            step.clear()
        return False

    problem = walk_frames(
        segment.file,
        position=start,
        end_position=size,
        offset=segment.end_offset,
        on_frame=follow,
        # Before the limit the disk has confirmed everything: a bad frame there is damage and no torn tail.
        pass_damage=end_limit != NO_LIMIT,
    )
    if not problem and segment.size < size:
        what = "an append is incomplete" if step else "the disk failed"
        problem = f"{what} behind offset {segment.end_offset}"
    recovered.checked_bytes += segment.size - start
    if segment.size > start or problem:
        recovered.touched.add(segment.base_offset)
    return problem


def _cut(last: ActiveSegment, recovered: Recovered, behind: list[int], problem: str) -> None:
    """Drop everything behind the last good frame of what is now the last segment, later segments first."""
    recovered.cut_reason = problem
    for base_offset in reversed(behind):
        remove_segment(last.disk, last.folder, base_offset)
    last.disk.sync_folder(last.folder)
    recovered.cut_bytes += last.cut()
    last.file.sync()
    remove_snapshots_after(last.disk, last.folder, last.end_offset)
