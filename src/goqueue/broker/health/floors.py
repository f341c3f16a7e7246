"""What groups know of partitions, held against the logs at each start.

Nothing that names an offset is on the disk before the message is, so a group that stands behind the end of a
log has had messages that are missing: the partition is damaged. A folder of a broker that did not keep to
that (it shows in the metadata: no `folder/commit_mark`) is put right once: its groups go back to where the
log ends, since new messages at these offsets would else never be delivered to them. Offsets that clients
merely named, before anybody could have read so far, are left alone.
"""

import logging
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.groups.state import Event
from goqueue.broker.slices import Slices
from goqueue.broker.storage.partition import Partition
from goqueue.core.groups.events import OffsetsCommitted, OffsetsPended
from goqueue.core.groups.groups import GroupRecord
from goqueue.model.groups import TopicOffsets
from goqueue.model.ids import TopicName, TopicPartition

log = logging.getLogger(__name__)


async def compare_floors(broker: Broker) -> None:
    """After a start, before anything is written to a partition."""
    if broker.metadata.is_commit_mark_kept:
        if not broker.is_one_of_several:  # elsewhere a log may well be behind: its leader has what it lacks
            await _tell_missing(broker)
        return
    for journal in broker.coordinator.journals:
        for record in tuple(journal.groups):
            await _cut_back(broker, journal, record)
    await broker.agreement.make(broker.metadata.keep_commit_mark)


def known_end(broker: Broker, source: TopicPartition) -> int:
    """The offset before which groups have had messages of a partition, or had something to do with them."""
    topic = broker.metadata.topic(source.topic)
    ends = [
        end
        for journal in broker.coordinator.journals
        for record in journal.groups
        for at, topic_id, end in _known_ends(journal, record)
        if at == source and topic_id == topic.topic_id
    ]
    return max(ends, default=0)


def _known_ends(journal: GroupJournal, record: GroupRecord) -> Iterator[tuple[TopicPartition, UUID, int]]:
    """How far a group has had messages, by partition; more than once for some."""
    kept = list(record.offsets.topics())
    kept += [offsets for _, pending in record.pending for offsets in pending]
    for topic, topic_id, rows, ahead in kept:
        for row in rows:
            if row[0] not in ahead:
                yield TopicPartition(topic, row[0]), topic_id, row[1]
    for delivery in journal.deliveries.of_group(record.membership.name):
        yield delivery.source, delivery.topic_id, delivery.touched_end


async def _tell_missing(broker: Broker) -> None:
    """Partitions of which somebody has had more than there is are damaged."""
    slices = Slices(broker.clock)
    missing: dict[Partition, tuple[int, str]] = {}
    for journal in broker.coordinator.journals:
        for record in journal.groups:
            for source, topic_id, end_offset in _known_ends(journal, record):
                partition = _partition_of(broker, source.topic, topic_id, source.partition)
                if partition is None or end_offset <= partition.log.end_offset:
                    continue
                broker.health.recovery.offsets_above_end += 1
                if end_offset > missing.get(partition, (0, ""))[0]:
                    missing[partition] = end_offset, record.membership.name
            await slices.pause()
    for partition, (end_offset, group) in missing.items():
        partition.declare_lost(f"group {group} has had messages that are not there", end_offset)


async def _cut_back(broker: Broker, journal: GroupJournal, record: GroupRecord) -> None:
    """A group that stands behind the end of a partition goes back to it."""
    name = record.membership.name
    cut: Counter[TopicPartition] = Counter()
    events: list[Event] = []
    for delivery in journal.deliveries.of_group(name):
        partition = _partition_of(broker, delivery.topic, delivery.topic_id, delivery.source.partition)
        if partition is not None and max(delivery.touched_end, delivery.floor) > partition.log.end_offset:
            kept = delivery.kept(ahead_ms=broker.running.ahead_ms())
            events.append(kept.before(partition.log.end_offset))
            cut[delivery.source] += 1
    if topics := _cut_rows(broker, record.offsets.topics(), cut):
        events.append(OffsetsCommitted(name, topics, record.seen_ms))
    for producer_id, pending in record.pending:
        if topics := _cut_rows(broker, iter(pending), cut):
            events.append(OffsetsPended(name, producer_id, topics))
    if events:
        log.warning("group_cut_back group=%s partitions=%d", name, len(cut))
        broker.health.recovery.offsets_above_end += len(cut)
        await journal.submit(*events)


def _cut_rows(
    broker: Broker, topics: Iterator[TopicOffsets], cut: Counter[TopicPartition]
) -> tuple[TopicOffsets, ...]:
    """Of offsets those that lie behind the end, as they are to be."""
    found = []
    for topic, topic_id, rows, _ in topics:
        low = []
        for number, offset, epoch, text in rows:
            partition = _partition_of(broker, topic, topic_id, number)
            if partition is not None and offset > partition.log.end_offset:
                low.append((number, partition.log.end_offset, epoch, text))
                cut[partition.source] += 1
        if low:
            found.append(TopicOffsets(topic, topic_id, tuple(low)))
    return tuple(found)


def _partition_of(broker: Broker, topic: TopicName, topic_id: UUID, number: int) -> Partition | None:
    """A partition that is there, is the same as when the group had it, and is not known to be damaged."""
    known = broker.metadata.topics.get(topic)
    if known is None or known.topic_id != topic_id or number >= known.partitions:
        return None
    partition = broker.topic(topic).partitions[number]
    return None if partition.is_failed or partition.damage is not None else partition
