"""The step for what comes later: such messages are kept among the delayed ones, the rest goes into the log.

Delayed messages of a transaction are held there until it ends.

The two parts are stored in two logs, and a crash may leave one of them. A producer that numbers its messages
then sends the batch again, and each part is recognised by itself: the one by the sequence numbers in the
partition's log, the other by the marks that stand beside the delayed messages.
"""

from collections.abc import Sequence
from contextlib import suppress

from goqueue.broker.appending import (
    LONG_AGO,
    STRICT,
    UPWARDS,
    Numbering,
    append_once,
    await_all,
    checked,
    find_stored,
)
from goqueue.broker.broker import Broker
from goqueue.broker.delays.records import NEW, Record, Sequences, Waiting
from goqueue.broker.delays.targets import Target
from goqueue.broker.schemas.check import Looked
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.quotas import check_due
from goqueue.broker.write.incoming import Incoming
from goqueue.model.commands import Appended
from goqueue.model.errors import DuplicateSequence, OutOfSequence, SchemaMismatch
from goqueue.model.messages import Acks
from goqueue.records.batch import DelaySplit, split_delays, split_lanes
from goqueue.records.layout import NO_SEQUENCE, TRANSACTIONAL, BatchHeader


def find_known(
    broker: Broker, partition: Partition, header: BatchHeader, count: int, numbering: Numbering = STRICT
) -> int | None:
    """As `find_stored`, but a gap that delayed messages explain is none."""
    try:
        return find_stored(partition, header, count, numbering)
    except OutOfSequence:
        if not _explains_gap(broker, partition, header, numbering.first_max):
            raise
        return None


def _explains_gap(broker: Broker, partition: Partition, header: BatchHeader, first_max: int) -> bool:
    """Whether all that the log misses before a batch of a producer was delayed."""
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


def part_by_time(broker: Broker, partition: Partition, incoming: Incoming) -> list[DelaySplit]:
    """How batches part into what comes now and what comes later; nothing when all comes now."""
    if not incoming.has_wishes:
        return []
    bodies, headers, inspect_compressed = incoming.bodies, incoming.headers, incoming.inspect_compressed
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


def take_parted(
    broker: Broker,
    partition: Partition,
    splits: Sequence[DelaySplit],
    headers: Sequence[BatchHeader],
    acks: Acks,
    *,
    looked: Looked | None = None,
    numbering: Numbering = STRICT,
) -> Appended:
    """Take in batches of which some messages come later.

    The answer names the first message that came now, or where the next one would go; and the number of the
    first that comes later. What does not fit the topic's schemas is refused, also in topics that keep it
    aside: among the delayed ones it has no place of which it could be told that it is missing.
    """
    if looked is not None and looked.problems:
        raise SchemaMismatch(looked.problems)
    if partition.account is not None:
        due_ms = max(message.due_ms or 0 for split in splits for message in split.later)
        check_due(broker, partition.source.topic, due_ms)
    for header in headers:
        with suppress(DuplicateSequence):
            find_known(broker, partition, header, header.record_count, numbering)
    number, end_offset = _postpone(broker, partition, splits, headers)
    base_offset = partition.log.end_offset
    if batches := checked([built for split in splits for built in split.now]):
        # Before them are delayed messages, as has been seen: they count upwards, and no more.
        stored_offset = append_once(partition, batches, UPWARDS).base_offset
        base_offset = base_offset if stored_offset == LONG_AGO else stored_offset
    committed = None
    if acks is Acks.ALL:
        kept = broker.delays.store.partition.committed(end_offset)
        stored = partition.committed(partition.log.end_offset)
        committed = None if kept is stored is None else await_all(kept, stored)
    return Appended(base_offset, partition.log.start_offset, committed, number=number)


def _postpone(
    broker: Broker, partition: Partition, splits: Sequence[DelaySplit], headers: Sequence[BatchHeader]
) -> tuple[int, int]:
    """Keep the delayed messages, unless they are kept already; the first one's number, the offset behind."""
    topic, number = partition.source
    topic_id = broker.metadata.topic(topic).topic_id
    store = broker.delays.store
    # Looked for and not made: with the first one that is written, the keeper wakes up.
    target = store.targets.find(topic_id, number)
    records: list[Record] = []
    for split, header in zip(splits, headers, strict=True):
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        is_numbered = producer_id >= 0 and sequence != NO_SEQUENCE
        is_kept = (
            is_numbered
            and target is not None
            and store.marks.holds(target.index, producer_id, epoch, sequence)
        )
        if not split.later or is_kept:
            continue
        waiting = [Waiting(NEW, message.due_ms or 0, topic_id, number, message) for message in split.later]
        if header.attributes & TRANSACTIONAL:
            waiting = [message.held(producer_id, epoch) for message in waiting]
        records += waiting
        if is_numbered:
            count = header.record_count
            records.append(Sequences(topic_id, number, producer_id, epoch, sequence, count, split.trailing))
    if not records:
        return LONG_AGO, store.partition.log.end_offset
    base_offset = broker.delays.write(records)
    end_offset = base_offset + len(records)
    count = sum(isinstance(record, Waiting) for record in records)
    telemetry = broker.telemetry
    telemetry.of(partition.source).postponed(
        count, telemetry.delayed, base_offset, end_offset, broker.clock.wall_us()
    )
    return base_offset, end_offset
