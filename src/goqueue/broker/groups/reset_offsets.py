"""reset_offsets: set from outside where a group reads on."""

from collections.abc import Mapping, Sequence

from goqueue.broker.broker import Broker
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.storage.readable import Readable
from goqueue.broker.tenants.quotas import admit_group_owner, admit_new_group
from goqueue.model.commands import FindOffset
from goqueue.model.errors import GroupNotFound, OffsetOutOfRange, ShuttingDown
from goqueue.model.group_commands import ResetOffsets
from goqueue.model.groups import OffsetReset, OffsetRow, TopicOffsets
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.transactions import Isolation


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
    await commit_written([broker.readable(target) for target in targets])
    _check(broker, targets)
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
    found: dict[TopicPartition, int] = {}
    topics = _topics(broker, command)
    partitions = [one for topic in topics for one in _partitions(broker, topic, command.partition)]
    await commit_written(partitions)
    for partition in partitions:
        # Taken before the look-up: what arrives meanwhile is behind it and is not passed over.
        end_offset = partition.commit_mark
        # As Kafka's tools do: what open transactions have written counts, whoever reads.
        spot, isolation = command.spot, Isolation.UNCOMMITTED
        offset = (
            await find_offset(broker, FindOffset(source=partition.source, spot=spot, isolation=isolation))
        ).offset
        found[partition.source] = end_offset if offset < 0 else offset
    return found


def _partitions(broker: Broker, topic: str, number: int | None) -> Sequence[Readable]:
    if number is None:
        return broker.topic(topic).readables
    return [broker.readable(TopicPartition(TopicName(topic), number))]


def _topics(broker: Broker, command: ResetOffsets) -> Sequence[str]:
    if command.topics is not None:
        return command.topics
    record = broker.coordinator.journals.record(command.group)
    known = () if record is None else record.offsets.topics()
    return [topic for topic, topic_id, *_ in known if _is_alive(broker, topic, topic_id)]


def _is_alive(broker: Broker, topic: TopicName, topic_id: object) -> bool:
    known = broker.metadata.topics.get(topic)
    return known is not None and known.topic_id == topic_id


def _check(broker: Broker, targets: Mapping[TopicPartition, int]) -> None:
    """Refuse offsets that are nowhere in the log: a reader would be thrown to one of its ends."""
    for target, offset in targets.items():
        partition = broker.readable(target)
        start_offset, end_offset = partition.log.start_offset, partition.commit_mark
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
