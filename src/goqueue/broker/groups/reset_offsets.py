"""reset_offsets: set from outside where a group reads on."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from goqueue.broker.broker import Broker
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.tenants.quotas import admit_group_owner, admit_new_group
from goqueue.model.commands import FindOffset, Spot
from goqueue.model.errors import GroupNotFound, OffsetOutOfRange, ShuttingDown
from goqueue.model.group_commands import ResetOffsets
from goqueue.model.groups import OffsetReset, OffsetRow, TopicOffsets
from goqueue.model.ids import TopicName, TopicPartition, places_of
from goqueue.model.transactions import Isolation

_ASKED_AT_ONCE = 64


async def reset_offsets(broker: Broker, command: ResetOffsets) -> list[OffsetReset]:
    """Move the offsets of a group, all or none; returns when the disk has it. A dry run only tells.

    A group that does not exist yet begins by this when topics are named: so its first reader knows where.
    """
    if not broker.is_open:
        raise ShuttingDown
    if broker.tenants.accounts:
        admit_group_owner(broker, command.group)
        admit_new_group(broker, command.group)
    journal = broker.coordinator.journals.find(command.group)
    if journal is None or journal.groups.get(command.group) is None:
        raise GroupNotFound(command.group)
    targets = command.offsets or await _found(broker, command)
    _check(targets, await _ranges(broker, targets))
    # From here to the write nothing is awaited: what was checked still holds.
    resets = [
        OffsetReset(*target, _committed(broker, command.group, target), offset)
        for target, offset in sorted(targets.items())
    ]
    event = journal.groups.reset_offsets(
        command.group,
        _by_topic(broker, resets),
        is_forced=command.is_forced,
        now_ms=broker.clock.wall_ms(),
    )
    if not command.is_dry_run and resets:
        await journal.submit(event)
        broker.queue.wake(command.group)
    return resets


async def _found(broker: Broker, command: ResetOffsets) -> dict[TopicPartition, int]:
    """The offset that the command's spot or time means in each partition of its topics."""
    sources = [
        one for topic in _topics(broker, command) for one in _sources(broker, topic, command.partition)
    ]
    # Taken before the look-up: what arrives meanwhile is behind it and is not passed over.
    ends = {source: end for source, (_, end) in (await _ranges(broker, sources)).items()}
    offsets = await _found_at(broker, sources, command.spot)
    return {source: ends[source] if offset < 0 else offset for source, offset in offsets.items()}


async def _ranges(
    broker: Broker, sources: Collection[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """Where partitions begin and end. On one node nothing is awaited between the look and the return."""
    if broker.forwarding is None:
        partitions = [broker.readable(source) for source in sources]
        await commit_written(partitions)
        return {one.source: (one.log.start_offset, one.commit_mark) for one in partitions}
    starts = await _found_at(broker, sources, Spot.EARLIEST)
    ends = await _found_at(broker, sources, Spot.LATEST)
    return {source: (starts[source], ends[source]) for source in sources}


async def _found_at(
    broker: Broker, sources: Iterable[TopicPartition], spot: Spot | int
) -> dict[TopicPartition, int]:
    """What a spot or a time means in partitions, told by whoever leads each; -1: there is no such message."""
    found: dict[TopicPartition, int] = {}
    rest = iter(sources)
    while some := list(islice(rest, _ASKED_AT_ONCE)):
        # As Kafka's tools do: what open transactions have written counts, whoever reads.
        commands = [FindOffset(source=one, spot=spot, isolation=Isolation.UNCOMMITTED) for one in some]
        told = await asyncio.gather(*(broker.at_home(find_offset, command) for command in commands))
        found |= {source: each.offset for source, each in zip(some, told, strict=True)}
    return found


def _sources(broker: Broker, topic: str, number: int | None) -> Iterable[TopicPartition]:
    if number is None:
        return places_of(TopicName(topic), range(len(broker.topic(topic).partitions)))
    source = TopicPartition(TopicName(topic), number)
    broker.readable(source)
    return [source]


def _topics(broker: Broker, command: ResetOffsets) -> Sequence[str]:
    if command.topics is not None:
        return command.topics
    record = broker.coordinator.journals.record(command.group)
    known = () if record is None else record.offsets.topics()
    return [topic for topic, topic_id, *_ in known if _is_alive(broker, topic, topic_id)]


def _is_alive(broker: Broker, topic: TopicName, topic_id: object) -> bool:
    known = broker.metadata.topics.get(topic)
    return known is not None and known.topic_id == topic_id


def _check(targets: Mapping[TopicPartition, int], ranges: Mapping[TopicPartition, tuple[int, int]]) -> None:
    """Refuse offsets that are nowhere in the log: a reader would be thrown to one of its ends."""
    for target, offset in targets.items():
        start_offset, end_offset = ranges[target]
        if not start_offset <= offset <= end_offset:
            raise OffsetOutOfRange(offset, start_offset=start_offset, end_offset=end_offset)


def _committed(broker: Broker, group: str, target: TopicPartition) -> int:
    record = broker.coordinator.journals.record(group)
    known = broker.metadata.topics.get(target.topic)
    if record is None or known is None:
        return -1
    row = record.offsets.of(target.topic, known.topic_id).get(target.partition)
    return -1 if row is None else row[1]


def _by_topic(broker: Broker, resets: Sequence[OffsetReset]) -> list[TopicOffsets]:
    rows: dict[TopicName, list[OffsetRow]] = {}
    for topic, partition, _, new_offset in resets:
        rows.setdefault(topic, []).append((partition, new_offset, -1, ""))
    topics = broker.metadata.topics
    return [TopicOffsets(topic, topics[topic].topic_id, tuple(given)) for topic, given in rows.items()]
