"""The verbs of delays: postpone, list, look, cancel, move, count.

A delayed message is named by its partition and its number until it is delivered. While it is part of an
open transaction nobody sees it.
"""

import asyncio
from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from goqueue.broker.broker import Broker
from goqueue.broker.delays.answering import answered
from goqueue.broker.delays.keeper import Change
from goqueue.broker.delays.records import HELD_MS, NEW, Cancelled, Record, Waiting
from goqueue.broker.delays.runs import SortedEntries, kept, walk
from goqueue.broker.delays.store import DelayStore
from goqueue.broker.delays.targets import Target
from goqueue.broker.slices import Slices
from goqueue.broker.storage.journal import Submitted
from goqueue.broker.tenants.quotas import check_due
from goqueue.broker.to_the_end import to_the_end
from goqueue.core.delays.entries import Entries, rows
from goqueue.core.delays.near import BEGINNING
from goqueue.log.partition_log import storage_error
from goqueue.model.delays import (
    CancelDelayed,
    CountDelayed,
    DelayedView,
    DelayStats,
    GetDelayed,
    ListDelayed,
    MoveDelayed,
    Postponed,
)
from goqueue.model.errors import DelayedNotFound, InvalidTimestamp
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.records.layout import TIMESTAMP_MS_MAX


def checked_due(due_ms: int) -> int:
    """A time that can be kept."""
    if abs(due_ms) > TIMESTAMP_MS_MAX:
        raise InvalidTimestamp(f"due time {due_ms} is too far from now: times are in milliseconds")
    return due_ms


def postpone(
    broker: Broker, topic: TopicName, messages: Sequence[tuple[int, Message]]
) -> tuple[list[Postponed], Submitted]:
    """Keep messages for partitions of a topic until they are due; whoever answers for them waits for that."""
    topic_id = broker.metadata.topic(topic).topic_id
    records: list[Record] = []
    due_times: list[int] = []
    for partition, message in messages:
        assert message.due_ms is not None, "a message without a due time is not postponed"
        due_times.append(message.due_ms)
        records.append(Waiting(NEW, message.due_ms, topic_id, partition, message))
    submitted = broker.delays.submit(*records)
    base_offset = submitted.base_offset
    telemetry = broker.telemetry
    telemetry.of(TopicPartition(topic, messages[0][0])).postponed(
        len(records), telemetry.delayed, base_offset, base_offset + len(records), broker.clock.wall_us()
    )
    postponed = [
        Postponed(partition, number, due_ms, message.lane)
        for number, (partition, message), due_ms in zip(
            range(base_offset, base_offset + len(records)), messages, due_times, strict=True
        )
    ]
    return postponed, submitted


async def list_delayed(broker: Broker, command: ListDelayed) -> list[DelayedView]:
    """The pending messages of a topic, the next one first; none for a topic that does not exist."""
    known = broker.metadata.topics.get(TopicName(command.topic))
    store = broker.delays.store
    wanted = [
        t for t in store.targets.all if known is not None and t.topic_id == known.topic_id and t.pending
    ]
    if not wanted or command.limit <= 0:
        return []
    while True:
        try:
            found = await broker.threads.run(_find, store, wanted, store.parts(), command.skip, command.limit)
            break
        except FileNotFoundError:
            continue  # runs were merged meanwhile: what is pending is in others now
        except OSError as error:
            raise storage_error(error, "list of delayed messages") from error
    slices = Slices(broker.clock)
    views = []
    for offset, waiting in found:
        if slices.is_over:
            await slices.pause()
        target = store.targets.at(waiting.topic_id, waiting.partition)
        if store.is_pending(target, waiting.due_ms, offset):
            views.append(_view(TopicName(command.topic), waiting))
    return views


async def get_delayed(broker: Broker, command: GetDelayed) -> DelayedView:
    """One pending message; without a partition the one of that number, wherever it goes."""
    _, waiting, _ = await _locate(broker, command.topic, command.number, command.partition)
    return _view(TopicName(command.topic), waiting)


async def cancel_delayed(broker: Broker, command: CancelDelayed) -> None:
    """Cancel a pending message: it is never delivered."""
    broker.admit(command.topic)
    offset, waiting, target = await _locate(broker, command.topic, command.number, command.partition)
    change = {offset: Change(target.index, waiting.due_ms)}
    changed = broker.delays.change(change, [Cancelled(command.number)])
    target.pending -= 1
    broker.telemetry.of(TopicPartition(TopicName(command.topic), command.partition)).cancelled(
        broker.telemetry.delayed, command.number, broker.clock.wall_us()
    )
    if changed is not None:
        await answered(broker, to_the_end(changed))


async def move_delayed(broker: Broker, command: MoveDelayed) -> DelayedView:
    """Give a pending message another due time. It keeps its number."""
    broker.admit(command.topic)
    offset, waiting, target = await _locate(broker, command.topic, command.number, command.partition)
    check_due(broker, command.topic, command.due_ms)
    moved = waiting._replace(due_ms=checked_due(command.due_ms))
    changed = broker.delays.change({offset: Change(target.index, waiting.due_ms)}, [moved])
    if changed is not None:
        await answered(broker, to_the_end(changed))
    return _view(TopicName(command.topic), moved)


def delay_stats(broker: Broker, command: CountDelayed) -> DelayStats:
    """How many messages wait, and have waited."""
    store = broker.delays.store
    pending: dict[TopicName, int] = {}
    held = 0
    for target in store.targets.all:
        name = broker.metadata.names.get(target.topic_id)
        if name is not None and target.pending:
            held_here = store.held.count(target.index)
            held += held_here
            if target.pending > held_here:
                pending[name] = pending.get(name, 0) + target.pending - held_here
    totals = store.totals
    return DelayStats(
        scheduled=totals.scheduled,
        delivered=totals.scheduled - totals.cancelled - totals.dropped - sum(pending.values()) - held,
        cancelled=totals.cancelled,
        dropped=totals.dropped,
        delay_ms_sum=totals.delay_ms_sum,
        pending_by_topic=pending,
        held=held,
        near=len(broker.delays.stock),
    )


async def _locate(
    broker: Broker, topic: str, number: int, partition: int | None
) -> tuple[int, Waiting, Target]:
    """Where a pending message lies, the message, and where it goes."""
    broker.topic(topic)
    keeper, missing = broker.delays, DelayedNotFound(topic, number)
    store = keeper.store
    while True:
        offset = store.moved.get(number, number)
        if (change := keeper.changing.get(offset)) is not None:
            await to_the_end(change[1])
            # Where the disk has it already, nothing was waited for: the keeper must get its turn to note it.
            await asyncio.sleep(0)
            continue
        partition_log = store.journal.partition.log
        if not partition_log.start_offset <= offset < partition_log.end_offset or offset in store.dead:
            raise missing
        try:
            found = await broker.threads.run(store.read, [offset])
        except OSError as error:
            raise storage_error(error, f"read of delayed message {number}") from error
        if offset not in keeper.changing and store.moved.get(number, number) == offset:
            break
    waiting = found.get(offset)
    if waiting is None or waiting.number != number or partition not in (None, waiting.partition):
        raise missing
    if waiting.holder is not None:
        raise missing  # who could cancel it would end half of a transaction
    target = store.targets.at(waiting.topic_id, waiting.partition)
    if not await keeper.landed(offset, target):
        return await _locate(broker, topic, number, partition)
    is_here = waiting.topic_id == broker.metadata.topic(topic).topic_id
    if not is_here or not store.is_pending(target, waiting.due_ms, offset):
        raise missing
    return offset, waiting, target


def _find(
    store: DelayStore, targets: Sequence[Target], parts: Sequence[SortedEntries], skip: int, limit: int
) -> list[tuple[int, Waiting]]:
    """Some of the pending messages of some targets, in order. Waits for the disk."""
    indexes = [target.index for target in targets]

    def is_wanted(entries: Entries) -> NDArray[np.bool_]:
        wanted = np.isin(entries["target"], indexes) & (entries["due"] < HELD_MS)
        wanted[wanted] = store.is_live(entries[wanted])
        return wanted

    pieces = kept(walk(parts, from_due_ms=BEGINNING), is_wanted)
    chosen = list(islice((row for piece in pieces for row in rows(piece)), skip, skip + limit))
    found = store.read(sorted(offset for _, offset, _ in chosen))
    return [(offset, found[offset]) for _, offset, _ in chosen if offset in found]


def _view(topic: TopicName, waiting: Waiting) -> DelayedView:
    return DelayedView(
        topic=topic,
        partition=waiting.partition,
        number=waiting.number,
        due_ms=waiting.due_ms,
        lane=waiting.message.lane,
    )
