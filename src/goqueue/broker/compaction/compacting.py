"""Compacting a partition: is it due? Show a round what is new, write its segments anew, and swap them.

Reading and writing is done in threads, in short steps at a set rate. A segment is swapped with a recovery
point, by the flusher: so neither retention nor a cut comes between, and the loop waits for no disk. A round
that meets something else on its way (the partition was opened anew, retention has taken a segment, the disk
is full) is given up: what it has swapped by then is well as it is.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.compaction.rewriting import Judging, Noting, Rewriting, Step, Uncleanable
from goqueue.broker.slices import Slices
from goqueue.broker.storage.partition import Partition
from goqueue.core.compaction.due import CleanMark, Due, SegmentFacts, grouped, look
from goqueue.core.compaction.key_map import KEY_BYTES
from goqueue.core.compaction.round import Basis, CompactionRound
from goqueue.log.clean_mark import StoredMark, load_clean_mark, save_clean_mark
from goqueue.log.draft import Swap, let_go_old_points, remove_draft, remove_replaced
from goqueue.log.partition_log import PartitionLog
from goqueue.log.sealed_segment import SealedSegment
from goqueue.model.errors import GoQueueError
from goqueue.model.topics import PartitionCompacted

log = logging.getLogger(__name__)

_RECORDS_SHARE = 8
"""One part in so many of the memory is for marks of messages, a byte each; the rest is for keys."""
_PAUSE_FACTOR = 1
"""A pause is as long as the step before it took, at least: half a core is the most that is used."""
_SECRET_BITS = 256


class Looked(NamedTuple):
    """A partition as it was found."""

    log: PartitionLog
    mark: CleanMark
    due: Due
    end_offset: int
    """Segments that end here or before may be compacted."""


class _Unchanged(Exception):
    """A segment would be the same."""


class _GivenUp(Exception):
    """The log is another one by now."""


async def keep_compacting(broker: Broker) -> None:
    """Until the broker is closed: look at all partitions of compacted topics, again and again."""
    while broker.is_open and broker.config.compaction_bytes_per_s:
        await asyncio.sleep(broker.config.compaction_interval_ms / 1000)
        await compact_all(broker)


async def compact_all(broker: Broker) -> None:
    """One round over those that are due."""
    slices = Slices(broker.clock)
    for name, topic in [*broker.topics.items()]:
        await slices.pause()
        known = broker.metadata.topics.get(name)
        if known is None or not known.settings.is_compacted:
            continue
        for partition in topic.partitions:
            if partition.is_here:
                await _compact_due(broker, partition)


async def _compact_due(broker: Broker, partition: Partition) -> None:
    try:
        looked = await look_at(broker, partition)
        while looked is not None and looked.due.is_due:
            if await compact(broker, partition, looked) is None:
                break
            looked = await look_at(broker, partition)
    except (OSError, GoQueueError) as error:
        log.warning("compaction_skipped partition=%s reason=%s", partition.source, error)


async def look_at(broker: Broker, partition: Partition) -> Looked | None:
    """Whether a partition is due, and a segment that is written to for too long is sealed.

    None: it cannot be compacted. Raises what keeps it from work, and OSError.
    """
    found = partition.log
    if found.damage is not None or broker.compaction.why_not(partition.source, found) is not None:
        return None
    now_ms = broker.clock.wall_ms()
    settings = found.settings
    sealed_ms = await broker.threads.run(found.first_time, None)
    oldest_ms = now_ms - min(settings.segment_ms, settings.max_compaction_lag_ms)
    if sealed_ms is not None and sealed_ms <= oldest_ms and partition.log is found:
        found.roll()
    stored = await broker.threads.run(load_clean_mark, found.disk, found.folder)
    if partition.log is not found:
        return None
    segments = found.sealed_segments
    mark = CleanMark(min(stored.end_offset, found.end_offset), stored.horizon_ms)
    first_dirty = next((segment for segment in segments if segment.end_offset > mark.end_offset), None)
    dirty_since_ms = None
    if first_dirty is not None:
        dirty_since_ms = await broker.threads.run(found.first_time, first_dirty)
    facts = await broker.threads.run(_facts, segments)
    due = look(
        facts,
        settings,
        mark,
        end_offset=min(partition.commit_mark, partition.last_stable_offset),
        dirty_since_ms=dirty_since_ms,
        now_ms=now_ms,
    )
    end_offset = facts[due.segment_count - 1].end_offset if due.segment_count else found.start_offset
    return Looked(found, mark, due, end_offset)


def _facts(segments: Sequence[SealedSegment]) -> list[SegmentFacts]:
    return [
        SegmentFacts(segment.base_offset, segment.end_offset, segment.size, segment.max_timestamp_ms)
        for segment in segments
    ]


async def compact(
    broker: Broker, partition: Partition, looked: Looked, *, dry_run: bool = False
) -> PartitionCompacted | None:
    """One round over what may be compacted of a partition; None: it was given up.

    `dry_run`: nothing is written, and it only tells what would stay.
    """
    source = partition.source
    if source in broker.compaction.at_work:
        return None
    ended = broker.compaction.at_work[source] = asyncio.Event()
    used: list[object] = []
    try:
        return await _compact(broker, partition, looked, dry_run, used)
    except _GivenUp:
        return None
    except Uncleanable as problem:
        broker.compaction.uncleanable[source] = (looked.log, str(problem))
        log.error("partition_uncleanable partition=%s reason=%s", source, problem)
        return None
    finally:
        broker.compaction.keys_bytes = 0
        del broker.compaction.at_work[source]
        ended.set()
        # To close a file that has lost its name is to free all of its pages, a tenth of a second's work, and
        # a large map of keys has many too. Nobody else holds on to them by now: a thread lets them go.
        broker.threads.run(used.clear)


async def _compact(
    broker: Broker, partition: Partition, looked: Looked, dry_run: bool, used: list[object]
) -> PartitionCompacted:
    """`used`: is given what is not to be freed on the loop."""
    found, mark, due = looked.log, looked.mark, looked.due
    segments = [segment for segment in found.sealed_segments if segment.end_offset <= looked.end_offset]
    if not segments:
        return PartitionCompacted(0, 0, due.dirty_ratio)
    round_ = _begin_round(broker, partition, looked)
    used += (round_, *segments)
    if not dry_run:
        await _let_go_points(broker, partition, found, segments[-1].base_offset)
    dirty = [segment for segment in segments if segment.end_offset > mark.end_offset]
    await _step_through(broker, partition, found, Noting(round_, dirty, mark.end_offset).step, round_)
    judged = [segment for segment in segments if segment.base_offset < round_.end_offset]
    if dry_run:
        await _step_through(broker, partition, found, Judging(round_, judged).step, round_)
        return PartitionCompacted(round_.records_before, round_.records_after, due.dirty_ratio)
    facts = await broker.threads.run(_facts, judged)
    for group in grouped(facts, segment_bytes=found.settings.segment_bytes):
        await _rewrite(broker, partition, found, round_, judged[group.start : group.stop])
    stored = StoredMark(round_.end_offset, round_.horizon_ms)
    await broker.threads.run(save_clean_mark, found.disk, found.folder, stored)
    removed = round_.records_before - round_.records_after
    broker.compaction.rounds += 1
    broker.compaction.removed_records += removed
    log.info(
        "compacted partition=%s end_offset=%d records_before=%d records_after=%d",
        partition.source,
        round_.end_offset,
        round_.records_before,
        round_.records_after,
    )
    return PartitionCompacted(round_.records_before, round_.records_after, due.dirty_ratio)


async def _let_go_points(broker: Broker, partition: Partition, found: PartitionLog, last_base: int) -> None:
    """A recovery point that speaks of places in segments up to one would speak of wrong ones."""
    await partition.save_recovery_point()
    _require_same(partition, found)
    if not await broker.threads.run(let_go_old_points, found.disk, found.folder, last_base):
        raise _GivenUp


def _begin_round(broker: Broker, partition: Partition, looked: Looked) -> CompactionRound:
    memory_bytes = broker.config.compaction_memory_bytes
    records_max = memory_bytes // _RECORDS_SHARE
    keys_max = (memory_bytes - records_max) // KEY_BYTES
    new_max = max(looked.end_offset - looked.mark.end_offset, 1)
    chance = broker.chance
    basis = Basis(
        clean_end=looked.mark.end_offset,
        aborted=looked.log.aborted.all(),
        last_ends=partition.producers.last_ends(),
        now_ms=broker.clock.wall_ms(),
        delete_retention_ms=looked.log.settings.delete_retention_ms,
    )
    return CompactionRound(
        basis,
        keys_max=min(keys_max, new_max),
        records_max=min(records_max, new_max),
        factors=[chance.getrandbits(64) for _ in range(4)],
        secret=chance.getrandbits(_SECRET_BITS).to_bytes(_SECRET_BITS // 8, "big"),
    )


async def _rewrite(
    broker: Broker,
    partition: Partition,
    found: PartitionLog,
    round_: CompactionRound,
    segments: Sequence[SealedSegment],
) -> None:
    """Write segments anew as one, and swap them for it."""
    rewriting = await broker.threads.run(Rewriting, round_, segments)
    try:
        await _step_through(broker, partition, found, rewriting.step, round_)
        if not rewriting.is_changed:
            raise _Unchanged
        if rewriting.dropped_aborts and found.aborted.forget(rewriting.dropped_aborts):
            # Whoever is told of an aborted transaction looks out for its marker: the word goes first.
            await partition.save_recovery_point()
        new = await broker.threads.run(rewriting.draft.finish)
        await broker.threads.run(_pin, segments)
        _require_same(partition, found)
        found.plan_swap(Swap(segments, new))
        await partition.save_recovery_point()
        if partition.log is not found or new not in found.sealed_segments:
            raise _GivenUp
    except (OSError, GoQueueError, Uncleanable, _GivenUp, _Unchanged) as error:
        found.plan_swap(None)
        for segment in segments:
            segment.unpin()
        await broker.threads.run(_give_up, rewriting)
        if not isinstance(error, _Unchanged):
            raise
    else:
        await broker.threads.run(remove_replaced, found.disk, found.folder, segments[1:])
        broker.compaction.freed_bytes += sum(segment.size for segment in segments) - new.size


def _pin(segments: Sequence[SealedSegment]) -> None:
    for segment in segments:
        segment.pin()


def _give_up(rewriting: Rewriting) -> None:
    draft = rewriting.draft
    draft.close()
    remove_draft(draft.disk, draft.folder, draft.base_offset)


async def _step_through(
    broker: Broker,
    partition: Partition,
    found: PartitionLog,
    step: Callable[[], Step],
    round_: CompactionRound,
) -> None:
    """Do step after step in a thread, no faster than is set. Raises _GivenUp, OSError and Uncleanable."""
    while True:
        begun_ns = broker.clock.monotonic_ns()
        done = await broker.threads.run(step)
        _require_same(partition, found)
        broker.compaction.read_bytes += done.size_bytes
        broker.compaction.keys_bytes = round_.size_bytes
        if done.is_last:
            return
        took_s = (broker.clock.monotonic_ns() - begun_ns) / 1e9
        await asyncio.sleep(
            max(done.size_bytes / broker.config.compaction_bytes_per_s, _PAUSE_FACTOR * took_s)
        )


def _require_same(partition: Partition, found: PartitionLog) -> None:
    """Raises _GivenUp when the partition has been opened anew, or what keeps it from work."""
    if partition.log is not found:
        raise _GivenUp
