"""The step for what comes later: such messages are kept among the delayed ones, the rest goes into the log.

Delayed messages of a transaction are held there until it ends.

The two parts are stored in two logs, and a crash may leave one of them. A producer that numbers its messages
then sends the batch again, and each part is recognised by itself: the one by the sequence numbers in the
partition's log, the other by the marks that stand beside the delayed messages.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, repeat

from goqueue.broker.appending import (
    LONG_AGO,
    STRICT,
    UPWARDS,
    Numbering,
    append_once,
    append_time_of,
    await_all,
    checked,
    find_stored,
)
from goqueue.broker.broker import Broker
from goqueue.broker.delays.asking import ALONE, Told, Unasked, Unkept
from goqueue.broker.delays.keeping import submit_batches
from goqueue.broker.storage.journal import Submitted
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.quotas import check_due
from goqueue.broker.write.incoming import Incoming
from goqueue.core.delays.marks import Marks
from goqueue.model.commands import NO_APPEND_TIME, Appended, Later
from goqueue.model.delays import LaterBatch
from goqueue.model.errors import DuplicateSequence, OutOfSequence
from goqueue.model.messages import Acks
from goqueue.records.batch import DelaySplit, split_delays, split_lanes
from goqueue.records.layout import NO_SEQUENCE, TRANSACTIONAL, BatchHeader


def find_known(
    broker: Broker,
    partition: Partition,
    header: BatchHeader,
    count: int,
    numbering: Numbering = STRICT,
    told: Told | None = None,
) -> int | None:
    """As `find_stored`, but a gap that delayed messages explain is none.

    With several nodes the keeper knows of these: raises Unasked where it was not asked.
    """
    try:
        return find_stored(partition, header, count, numbering)
    except OutOfSequence:
        if told is None and broker.is_one_of_several:
            raise Unasked(partition, [header.producer_id]) from None
        if not _explains_gap(broker, partition, header, numbering.first_max, told):
            raise
        return None


def _explains_gap(
    broker: Broker, partition: Partition, header: BatchHeader, first_max: int, told: Told | None
) -> bool:
    """Whether all that the log misses before a batch of a producer was delayed."""
    known = known_marks(broker, partition, told)
    if known is None:
        return False
    marks, index = known
    producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
    expected = partition.producers.next_sequence(producer_id, epoch)
    firsts = range(expected, (expected or first_max) + 1)
    return any(
        marks.explains(index, producer_id, epoch, expected=first, sequence=sequence) for first in firsts
    )


def known_marks(broker: Broker, partition: Partition, told: Told | None) -> tuple[Marks, int] | None:
    """What producers have delayed, and what stands there for the partition; None: nothing for that."""
    if told is not None:
        return told.marks, ALONE
    topic = broker.metadata.topics.get(partition.source.topic)
    if topic is None or broker.is_one_of_several:
        return None
    store = broker.delays.store
    target = store.targets.find(topic.topic_id, partition.source.partition)
    return None if target is None else (store.marks, target.index)


def part_by_time(
    broker: Broker,
    partition: Partition,
    incoming: Incoming,
    problems: Mapping[int, str],
    told: Told | None = None,
) -> list[DelaySplit]:
    """How batches part into what comes now and what comes later; nothing when all comes now.

    What does not fit the topic's schemas is in quarantine now, whenever it was to come. Refuses wishes that
    nobody understands, or for longer than the tenant's messages may wait. With several nodes the keeper says
    whether it has them: raises Unasked where it was not asked.
    """
    if not incoming.has_wishes or incoming.is_promised:
        return []
    headers, bodies, lane, _, inspect_compressed, _ = incoming
    if told is None and broker.is_one_of_several:
        if not any(map(partial(_names_time, inspect_compressed), bodies, headers)):
            return []
        raise Unasked(partition, sorted({header.producer_id for header in headers if _is_numbered(header)}))
    splits = []
    first = 0
    for header, body in zip(headers, bodies, strict=True):
        numbers = range(first, first + header.record_count)
        gone = {number - first for number in problems if number in numbers}
        parted_ms = _parted_ms(broker, partition, header, told)
        split = None
        if parted_ms is not None:
            split = split_delays(
                body,
                header,
                now_ms=parted_ms,
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
    if partition.account is not None:
        due_ms = max(message.due_ms or 0 for split in splits for message in split.later)
        check_due(broker, partition.source.topic, due_ms)
    return splits


def _names_time(inspect_compressed: bool, body: memoryview, header: BatchHeader) -> bool:
    """Whether a message in a batch names a time to come at, which may have passed."""
    return split_delays(body, header, now_ms=0, inspect_compressed=inspect_compressed) is not None


def _is_numbered(header: BatchHeader) -> bool:
    return header.producer_id >= 0 and header.base_sequence != NO_SEQUENCE


def _parted_ms(broker: Broker, partition: Partition, header: BatchHeader, told: Told | None) -> int | None:
    """The time by which a batch parts: now, or when it came first, lest what was later then comes now too.

    None: all of it came at once, whatever the time is now. The clock may have been set back since, or another
    node have led by another clock.
    """
    known = known_marks(broker, partition, told)
    mark = None
    if known is not None and _is_numbered(header):
        marks, index = known
        mark = marks.find(index, header.producer_id, header.producer_epoch, header.base_sequence)
    if mark is None and _came_at_once(partition, header, told):
        return None
    if mark is None:
        return broker.clock.wall_ms() if told is None else told.now_ms
    return 0 if mark.is_whole else mark.parted_ms or mark.seen_ms


def _came_at_once(partition: Partition, header: BatchHeader, told: Told | None) -> bool:
    """Whether the log has a batch of which nothing is kept."""
    try:
        return find_stored(partition, header, header.record_count) is not None
    except DuplicateSequence:
        # It has some of it at least. One node alone may have lost what was kept of it in a crash; where there
        # are several that was committed before anything else was written.
        return told is not None
    except OutOfSequence:
        return False


def take_parted(
    broker: Broker,
    partition: Partition,
    splits: Sequence[DelaySplit],
    headers: Sequence[BatchHeader],
    acks: Acks,
    numbering: Numbering = STRICT,
    told: Told | None = None,
) -> Appended:
    """Take in batches of which some messages come later.

    The answer names the first message that came now, or where the next one would go. With several nodes the
    keeper has got the others by then: raises Unkept where it has not.
    """
    if acks is Acks.ALL:
        partition.admit_all()
    for header in headers:
        with suppress(DuplicateSequence):
            find_known(broker, partition, header, header.record_count, numbering, told)
    later, postponed = _postpone(broker, partition, splits, headers, told)
    base_offset, time_ms = partition.log.end_offset, NO_APPEND_TIME
    if batches := checked([built for split in splits for built in split.now]):
        # Before them are delayed messages, as has been seen: they count upwards, and no more.
        stored_offset, is_new = append_once(partition, batches, UPWARDS)
        time_ms = append_time_of(batches[0].body) if is_new else NO_APPEND_TIME
        base_offset = base_offset if stored_offset == LONG_AGO else stored_offset
    committed = None
    if acks is Acks.ALL:
        kept = None if postponed is None else postponed.committed()
        stored = partition.committed(partition.log.end_offset)
        committed = None if kept is stored is None else await_all(kept, stored)
    return Appended(base_offset, partition.log.start_offset, committed, later=later, append_time_ms=time_ms)


def _postpone(
    broker: Broker,
    partition: Partition,
    splits: Sequence[DelaySplit],
    headers: Sequence[BatchHeader],
    told: Told | None,
) -> tuple[list[Later], Submitted | None]:
    """Keep the delayed messages, unless they are kept already; which they are, and what to wait for."""
    batches = [
        LaterBatch(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
            split.trailing,
            split.parted_ms,
            split.later,
            bool(header.attributes & TRANSACTIONAL),
        )
        for split, header in zip(splits, headers, strict=True)
        if split.later
    ]
    submitted: Submitted | None = None
    if told is None:
        numbers, submitted = submit_batches(broker, partition.source, batches)
    elif told.kept is None:
        raise Unkept(batches)
    else:
        numbers = list(told.kept)
    later: list[Later] = []
    first, bases = 0, iter(numbers)
    for split, header in zip(splits, headers, strict=True):
        if split.later:
            base = next(bases)
            names = repeat(LONG_AGO) if base == LONG_AGO else count(base)
            for place, message, name in zip(split.places, split.later, names, strict=False):
                later.append(Later(first + place, name, message.due_ms or 0))
        first += header.record_count
    return later, submitted
