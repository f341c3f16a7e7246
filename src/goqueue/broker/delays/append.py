"""Batches of Kafka producers with delayed messages: those go among the delayed ones, the rest into the log.

Delayed messages of a transaction are held there until it ends.

The two parts are stored in two logs, and a crash may leave one of them. A producer that numbers its messages
then sends the batch again, and each part is recognised by itself: the one by the sequence numbers in the
partition's log, the other by the marks that stand beside the delayed messages.
"""

from collections.abc import Awaitable, Sequence

from goqueue.broker.broker import Broker
from goqueue.broker.delays.records import NEW, Record, Sequences, Waiting
from goqueue.broker.delays.targets import Target
from goqueue.broker.storage.partition import Partition
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import Appended
from goqueue.model.errors import DuplicateSequence, OutOfSequence
from goqueue.model.messages import Acks
from goqueue.records.batch import DelaySplit, split_delays, split_lanes
from goqueue.records.layout import NO_SEQUENCE, TRANSACTIONAL, BatchHeader, read_header


def find_stored(broker: Broker, partition: Partition, header: BatchHeader, count: int) -> int | None:
    """The offset of a batch that is stored already; a gap that delayed messages explain is none."""
    try:
        return partition.producers.duplicate(header, count)
    except OutOfSequence:
        if not explains_gap(broker, partition, header):
            raise
        return None


def explains_gap(broker: Broker, partition: Partition, header: BatchHeader, *, first_max: int = 0) -> bool:
    """Whether all that the log misses before a batch of a producer was delayed.

    A producer begins to count at 0, or anywhere up to `first_max`.
    """
    target = find_target(broker, partition)
    if target is None:
        return False
    producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
    expected = partition.producers.next_sequence(producer_id, epoch)
    firsts = range(expected, (expected or first_max) + 1)
    return any(
        broker.delays.store.marks.explains(
            target.index, producer_id, epoch, expected=first, sequence=sequence
        )
        for first in firsts
    )


def find_target(broker: Broker, partition: Partition) -> Target | None:
    """The partition as one that delayed messages go to, if there have been any."""
    topic = broker.metadata.topics.get(partition.source.topic)
    if topic is None:
        return None
    return broker.delays.store.targets.find(topic.topic_id, partition.source.partition)


def find_delays(
    broker: Broker,
    partition: Partition,
    bodies: Sequence[memoryview],
    headers: Sequence[BatchHeader],
    *,
    inspect_compressed: bool,
) -> list[DelaySplit]:
    """How batches part into what comes now and what comes later; nothing when all comes now."""
    target = find_target(broker, partition)
    splits = [
        split_delays(
            body, header, now_ms=_parted_ms(broker, target, header), inspect_compressed=inspect_compressed
        )
        for body, header in zip(bodies, headers, strict=True)
    ]
    if not any(splits):
        return []
    return [
        split or DelaySplit(split_lanes(body, header, inspect_compressed=inspect_compressed), [], 0)
        for split, body, header in zip(splits, bodies, headers, strict=True)
    ]


def _parted_ms(broker: Broker, target: Target | None, header: BatchHeader) -> int:
    """The time by which a batch parts: now, or when it came first, lest what was later then comes now too."""
    mark = None
    if target is not None and header.producer_id >= 0 and header.base_sequence != NO_SEQUENCE:
        mark = broker.delays.store.marks.find(
            target.index, header.producer_id, header.producer_epoch, header.base_sequence
        )
    if mark is None:
        return broker.clock.wall_ms()
    return 0 if mark.is_whole else mark.seen_ms


def append_delayed(
    broker: Broker,
    partition: Partition,
    splits: Sequence[DelaySplit],
    headers: Sequence[BatchHeader],
    acks: Acks,
) -> Appended:
    """Store batches of which some messages come later.

    The answer names the first message that came now, or where the next one would go.
    """
    for header in headers:
        if header.producer_id >= 0 and not _follows(broker, partition, header):
            raise OutOfSequence(f"sequence {header.base_sequence} came too early")
    end_offset = _postpone(broker, partition, splits, headers)
    batches = [CheckedBatch(read_header(body), body, lane) for split in splits for body, lane in split.now]
    base_offset = partition.log.end_offset
    if batches:
        stored_offset = _find_part(partition, batches[0].header)
        base_offset = partition.append(batches) if stored_offset is None else stored_offset
    committed = None
    if acks is Acks.ALL:
        both = (
            broker.delays.store.partition.committed(end_offset),
            partition.committed(partition.log.end_offset),
        )
        waits = [wait for wait in both if wait is not None]
        committed = _all(waits) if waits else None
    return Appended(base_offset, partition.log.start_offset, committed)


def _postpone(
    broker: Broker, partition: Partition, splits: Sequence[DelaySplit], headers: Sequence[BatchHeader]
) -> int:
    """Keep the delayed messages, unless they are kept already; the offset behind them."""
    topic, number = partition.source
    topic_id = broker.metadata.topic(topic).topic_id
    store = broker.delays.store
    target = store.targets.at(topic_id, number)
    records: list[Record] = []
    for split, header in zip(splits, headers, strict=True):
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        is_numbered = producer_id >= 0 and sequence != NO_SEQUENCE
        if not split.later or (is_numbered and store.marks.holds(target.index, producer_id, epoch, sequence)):
            continue
        waiting = [Waiting(NEW, message.due_ms or 0, topic_id, number, message) for message in split.later]
        if header.attributes & TRANSACTIONAL:
            waiting = [message.held(producer_id, epoch) for message in waiting]
        records += waiting
        if is_numbered:
            count = header.record_count
            records.append(Sequences(topic_id, number, producer_id, epoch, sequence, count, split.trailing))
    if not records:
        return store.partition.log.end_offset
    base_offset = broker.delays.write(records)
    end_offset = base_offset + len(records)
    count = sum(isinstance(record, Waiting) for record in records)
    telemetry = broker.telemetry
    telemetry.of(partition.source).postponed(
        count, telemetry.delayed, base_offset, end_offset, broker.clock.wall_us()
    )
    return end_offset


def _find_part(partition: Partition, header: BatchHeader) -> int | None:
    """Where the part that came now lies, if it does."""
    try:
        return partition.producers.duplicate(header, header.record_count)
    except DuplicateSequence:
        return partition.log.end_offset  # it is there, too long ago to tell where
    except OutOfSequence:
        return None  # before it are delayed messages, as has been seen


def _follows(broker: Broker, partition: Partition, header: BatchHeader) -> bool:
    """Whether nothing is missing between what is stored of a producer and this batch."""
    try:
        partition.producers.duplicate(header, header.record_count)
    except DuplicateSequence:
        return True
    except OutOfSequence:
        return explains_gap(broker, partition, header)
    return True


async def _all(waits: Sequence[Awaitable[None]]) -> None:
    for wait in waits:
        await wait
