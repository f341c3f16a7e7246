"""The step for what comes later: such messages are kept among the delayed ones, the rest goes into the log.

Delayed messages of a transaction are held there until it ends.

The two parts are stored in two logs, and a crash may leave one of them. A producer that numbers its messages
then sends the batch again, and each part is recognised by itself: the one by the sequence numbers in the
partition's log, the other by the marks that stand beside the delayed messages.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count, repeat

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
from goqueue.broker.storage.journal import Submitted
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.quotas import check_due
from goqueue.broker.write.incoming import Incoming
from goqueue.model.commands import Appended, Later
from goqueue.model.errors import DuplicateSequence, OutOfSequence
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
    """The partition as one that delayed messages go to, if there have been any.

    Several nodes take no delayed messages of producers that number theirs: there are no marks to look at.
    """
    if broker.is_one_of_several:
        return None
    topic = broker.metadata.topics.get(partition.source.topic)
    if topic is None:
        return None
    return broker.delays.store.targets.find(topic.topic_id, partition.source.partition)


def part_by_time(
    broker: Broker, partition: Partition, incoming: Incoming, problems: Mapping[int, str]
) -> list[DelaySplit]:
    """How batches part into what comes now and what comes later; nothing when all comes now.

    What does not fit the topic's schemas is in quarantine now, whenever it was to come. Refuses wishes that
    nobody understands, or for longer than the tenant's messages may wait.
    """
    if not incoming.has_wishes or incoming.is_promised:
        return []
    headers, bodies, lane, _, inspect_compressed, _ = incoming
    target = find_target(broker, partition)
    splits = []
    first = 0
    for header, body in zip(headers, bodies, strict=True):
        numbers = range(first, first + header.record_count)
        gone = {number - first for number in problems if number in numbers}
        split = split_delays(
            body,
            header,
            now_ms=_parted_ms(broker, target, header),
            inspect_compressed=inspect_compressed,
            lane=lane,
            gone=gone,
        )
        if split is None:
            now = split_lanes(body, header, inspect_compressed=inspect_compressed, lane=lane, gone=gone)
            split = DelaySplit(now, [], [], 0)
        splits.append(split)
        first = numbers.stop
    if not any(split.later for split in splits):
        return []
    broker.admit_alone("delayed messages in record batches")
    if partition.account is not None:
        due_ms = max(message.due_ms or 0 for split in splits for message in split.later)
        check_due(broker, partition.source.topic, due_ms)
    return splits


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
    numbering: Numbering = STRICT,
) -> Appended:
    """Take in batches of which some messages come later.

    The answer names the first message that came now, or where the next one would go.
    """
    if acks is Acks.ALL:
        partition.admit_all()
    for header in headers:
        with suppress(DuplicateSequence):
            find_known(broker, partition, header, header.record_count, numbering)
    later, postponed = _postpone(broker, partition, splits, headers)
    base_offset = partition.log.end_offset
    if batches := checked([built for split in splits for built in split.now]):
        # Before them are delayed messages, as has been seen: they count upwards, and no more.
        stored_offset = append_once(partition, batches, UPWARDS).base_offset
        base_offset = base_offset if stored_offset == LONG_AGO else stored_offset
    committed = None
    if acks is Acks.ALL:
        kept = postponed.committed()
        stored = partition.committed(partition.log.end_offset)
        committed = None if kept is stored is None else await_all(kept, stored)
    return Appended(base_offset, partition.log.start_offset, committed, later=later)


def _postpone(
    broker: Broker, partition: Partition, splits: Sequence[DelaySplit], headers: Sequence[BatchHeader]
) -> tuple[list[Later], Submitted]:
    """Keep the delayed messages, unless they are kept already; which they are, and what to wait for."""
    topic, number = partition.source
    topic_id = broker.metadata.topic(topic).topic_id
    store = broker.delays.store
    # Looked for and not made: with the first one that is written, the keeper wakes up.
    target = store.targets.find(topic_id, number)
    records: list[Record] = []
    later: list[Later] = []
    first, base_offset = 0, store.journal.end_offset
    for split, header in zip(splits, headers, strict=True):
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        is_numbered = producer_id >= 0 and sequence != NO_SEQUENCE
        is_kept = (
            is_numbered
            and target is not None
            and store.marks.holds(target.index, producer_id, epoch, sequence)
        )
        names = repeat(LONG_AGO) if is_kept else count(base_offset + len(records))
        for place, message, name in zip(split.places, split.later, names, strict=False):
            later.append(Later(first + place, name, message.due_ms or 0))
        first += header.record_count
        if not split.later or is_kept:
            continue
        waiting = [Waiting(NEW, message.due_ms or 0, topic_id, number, message) for message in split.later]
        if header.attributes & TRANSACTIONAL:
            waiting = [message.held(producer_id, epoch) for message in waiting]
        records += waiting
        if is_numbered:
            records.append(
                Sequences(topic_id, number, producer_id, epoch, sequence, header.record_count, split.trailing)
            )
    if not records:
        return later, store.journal.submit()
    submitted = broker.delays.submit(*records)
    waiting_count = sum(isinstance(record, Waiting) for record in records)
    telemetry = broker.telemetry
    telemetry.of(partition.source).postponed(
        waiting_count,
        telemetry.delayed,
        submitted.base_offset,
        submitted.end_offset,
        broker.clock.wall_us(),
    )
    return later, submitted
