"""The verbs on a group's offsets: commit, fetch, delete."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.tenants.quotas import admit_group_owner, admit_new_group
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.model.errors import (
    GoQueueError,
    GroupNotFound,
    Invalid,
    MetadataTooLarge,
    PartitionNotFound,
    ShuttingDown,
    TopicNotFound,
)
from goqueue.model.group_commands import CommitOffsets, DeleteOffsets, FetchOffsets, ListUnstable
from goqueue.model.groups import OffsetRow, TopicCommit, TopicOffsets
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.names import checked_group_name

Refusals = dict[TopicPartition, GoQueueError]
"""Partitions whose part of a request was refused; the rest of it holds."""


class CommitBegun(NamedTuple):
    """Offsets that hold from now on, but that a crash can take back until the disk has them."""

    refusals: Refusals
    committed: Awaitable[None] | None
    """None when nothing is left to wait for."""


async def commit_offsets(broker: Broker, command: CommitOffsets) -> Refusals:
    """Keep how far a group has read; returns when the disk has it."""
    begun = begin_commit(broker, command)
    if not isinstance(begun, CommitBegun):
        begun = await begun
    if begun.committed is not None:
        await begun.committed
    return begun.refusals


def begin_commit(broker: Broker, command: CommitOffsets) -> CommitBegun | Awaitable[CommitBegun]:
    """The same without the wait for the disk: done on return, but for the first of a group, whose journal may
    have to be opened."""
    group = command.who.group
    journal = broker.coordinator.journals.find(group) if group else None
    if journal is None:
        return _open_and_begin(broker, command)
    return _begin(broker, journal, command)


async def _open_and_begin(broker: Broker, command: CommitOffsets) -> CommitBegun:
    if not broker.is_open:
        raise ShuttingDown
    return _begin(broker, await broker.coordinator.journals.ensure(command.who.group), command)


def _begin(broker: Broker, journal: GroupJournal, command: CommitOffsets) -> CommitBegun:
    """One event, however many partitions."""
    if not broker.is_open:
        raise ShuttingDown
    who, commits = command
    if broker.tenants.accounts:
        admit_group_owner(broker, who.group)
        admit_new_group(broker, who.group)
    coordinator = broker.coordinator
    refusals: Refusals = {}
    topics = accepted_offsets(broker, commits, refusals)
    for refusal in refusals.values():
        broker.counters.commit_refused(who.group, refusal.code)
    committed: asyncio.Future[None] | None = None
    now_ns = coordinator.now_ns()
    try:
        event = journal.groups.commit_offsets(who, topics, now_ns=now_ns, now_ms=broker.clock.wall_ms())
        if topics:
            committed = journal.submit(event).committed()
            broker.queue.wake(who.group)
            _count(broker, who.group, topics, committed, begun_ns=now_ns)
    except GoQueueError as error:
        broker.counters.commit_refused(who.group, error.code)
        raise
    finally:
        # A request that was refused leaves no group behind that was not there before.
        coordinator.forget_if_void(journal, who.group)
    return CommitBegun(refusals, committed)


def accepted_offsets(
    broker: Broker, commits: Sequence[TopicCommit], refusals: Refusals
) -> list[TopicOffsets]:
    """The offsets of a request that can be kept; what is wrong with the others goes to the refusals.

    A client may name any offset. One that nobody can have read up to is kept as told, and marked: else it
    would look, after a restart, as if messages were missing.
    """
    topics: list[TopicOffsets] = []
    for commit in commits:
        if rows := _accepted(broker, commit, refusals):
            topic_id = broker.metadata.topics[commit.topic].topic_id
            partitions = broker.topics[commit.topic].partitions
            ahead = tuple([at for at, offset, _, _ in rows if offset > partitions[at].commit_mark])
            topics.append(TopicOffsets(commit.topic, topic_id, tuple(rows), ahead))
    return topics


def unstable_offsets(broker: Broker, command: ListUnstable) -> set[TopicPartition]:
    """Partitions whose offset an open transaction may change."""
    record = broker.coordinator.journals.record(command.group)
    if record is None:
        return set()
    return {
        TopicPartition(topic, row[0])
        for _, topics in record.pending
        for topic, _, rows, _ in topics
        for row in rows
    }


async def fetch_offsets(broker: Broker, command: FetchOffsets) -> list[TopicCommit]:
    """What was committed: for the partitions wanted (offset -1 where nothing was), or all there is.

    A member that says who it is must know its epoch, if the broker assigns to it. Waits for the disk if a
    commit is under way, so that nobody is told what a crash could take back.
    """
    if not broker.is_open:
        raise ShuttingDown
    if not command.group:
        checked_group_name(command.group)
    if broker.tenants.accounts:
        admit_group_owner(broker, command.group)
    journal = broker.coordinator.journals.find(command.group)
    record = None if journal is None else journal.groups.get(command.group)
    if command.who is not None and record is not None and isinstance(record.membership, AssignedGroup):
        record.membership.check_member_epoch(command.who)
    found: list[TopicCommit] = []
    if command.wanted is None:
        offsets = () if record is None else record.offsets.topics()
        for topic, topic_id, rows, _ in offsets:
            known = broker.metadata.topics.get(topic)
            if known is not None and known.topic_id == topic_id:
                found.append(TopicCommit(topic, rows))
    else:
        for topic, partitions in command.wanted:
            known = broker.metadata.topics.get(topic)
            rows_of = {} if record is None or known is None else record.offsets.of(topic, known.topic_id)
            found.append(TopicCommit(topic, [rows_of.get(p, (p, -1, -1, "")) for p in partitions]))
    if journal is not None:
        await journal.submit()
        if broker.rounds is not None:
            await broker.rounds.confirm(journal.partition)
    return found


async def delete_offsets(broker: Broker, command: DeleteOffsets) -> dict[TopicName, GoQueueError]:
    """Forget offsets of topics that no member is subscribed to; the topics for which it was refused."""
    if not broker.is_open:
        raise ShuttingDown
    if not command.group:
        checked_group_name(command.group)
    journal = broker.coordinator.journals.find(command.group)
    if journal is None or journal.groups.get(command.group) is None:
        raise GroupNotFound(command.group)
    refusals: dict[TopicName, GoQueueError] = {}
    events = []
    for topic, partitions in command.unwanted:
        try:
            events.append(journal.groups.delete_offsets(command.group, topic, partitions))
        except GoQueueError as error:
            refusals[topic] = error
    deleted = journal.submit(*events)
    broker.coordinator.forget_if_void(journal, command.group)
    await deleted
    return refusals


def _count(
    broker: Broker,
    group: str,
    topics: Sequence[TopicOffsets],
    committed: "asyncio.Future[None] | None",
    *,
    begun_ns: int,
) -> None:
    for topic in topics:
        broker.counters.group_topic(group, topic.topic).commits += 1

    def note_time(_: object) -> None:
        seconds = (broker.coordinator.now_ns() - begun_ns) / 1e9
        broker.counters.group(group).commit_seconds.observe(seconds)

    if committed is None:
        note_time(None)
    else:
        committed.add_done_callback(note_time)


def _accepted(broker: Broker, commit: TopicCommit, refusals: Refusals) -> Sequence[OffsetRow]:
    """The rows that can be kept. Hot: good rows are looked at by the column, which is three times as fast."""
    topic = broker.topics.get(commit.topic)
    count = 0 if topic is None else len(topic.partitions)
    rows = commit.rows
    if not rows:
        return rows
    partitions, offsets, _, texts = zip(*rows, strict=True)
    if min(partitions) >= 0 and max(partitions) < count and min(offsets) >= 0 and not any(texts):
        return rows
    bytes_max = broker.config.groups.metadata_bytes_max
    accepted = []
    for row in rows:
        target = TopicPartition(commit.topic, row[0])
        if topic is None:
            refusals[target] = TopicNotFound(commit.topic)
        elif not 0 <= row[0] < count:
            refusals[target] = PartitionNotFound(*target)
        elif row[1] < 0:
            refusals[target] = Invalid(f"{row[1]} is not an offset")
        elif len(row[3].encode()) > bytes_max:
            refusals[target] = MetadataTooLarge(
                f"metadata of {target} has {len(row[3].encode())} bytes; at most {bytes_max} are kept"
            )
        else:
            accepted.append(row)
    return accepted
