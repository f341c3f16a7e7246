"""What other nodes give to the keeper of the delays.

Batches of producers that number their messages come from the leader of their partition alone, one question
after another. A question of an earlier leader, or an earlier one of the same leader that was given up, may
still be on its way: it is refused once a later one was heard. So a leader that is told that the keeper has
not got a batch can rely on it. A keeper that has just taken over has heard nobody, but knows from its image
every leader that was elected before it; one elected later asks it anew.
"""

from collections.abc import Sequence

from goqueue.broker.appending import LONG_AGO
from goqueue.broker.broker import Broker
from goqueue.broker.delays.answering import answered
from goqueue.broker.delays.records import NEW, Record, Sequences, Waiting
from goqueue.broker.delays.verbs import postpone
from goqueue.broker.storage.journal import Submitted
from goqueue.model.delays import (
    Asker,
    FindMarks,
    KeepBatches,
    KeepDelayed,
    LaterBatch,
    Postponed,
    ProducerMark,
)
from goqueue.model.errors import Fenced, TopicNotFound
from goqueue.model.ids import TopicPartition
from goqueue.records.layout import NO_SEQUENCE


async def keep_delayed(broker: Broker, command: KeepDelayed) -> list[Postponed]:
    """Keep messages until they are due; returns when they are committed."""
    await broker.agreement.reached(command.revision)
    if broker.metadata.topic(command.topic).topic_id != command.topic_id:
        raise TopicNotFound(command.topic)
    postponed, submitted = postpone(broker, command.topic, command.messages)
    await answered(broker, submitted)
    return postponed


async def find_marks(broker: Broker, command: FindMarks) -> list[ProducerMark]:
    """What is kept of some producers for a partition, as far as nobody can take it back."""
    await broker.agreement.reached(command.asker.revision)
    source = _heard(broker, command.asker)
    store = broker.delays.store
    target = store.targets.find(command.asker.topic_id, source.partition)
    found = [
        ProducerMark(*mark[1:])
        for producer_id in command.producer_ids
        for mark in (() if target is None else store.marks.of_producer(target.index, producer_id))
    ]
    await store.journal.submit()
    return found


async def keep_batches(broker: Broker, command: KeepBatches) -> list[int]:
    """Keep what comes later of batches, unless it is kept; returns when it is committed."""
    await broker.agreement.reached(command.asker.revision)
    source = _heard(broker, command.asker)
    numbers, submitted = submit_batches(broker, source, command.batches)
    await answered(broker, submitted)
    return numbers


def submit_batches(
    broker: Broker, source: TopicPartition, batches: Sequence[LaterBatch]
) -> tuple[list[int], Submitted]:
    """Keep what comes later of batches, unless it is kept; the number of the first message of each."""
    topic_id = broker.metadata.topic(source.topic).topic_id
    store = broker.delays.store
    # Looked for and not made: with the first one that is written, the keeper wakes up.
    target = store.targets.find(topic_id, source.partition)
    records: list[Record] = []
    numbers: list[int] = []
    base_offset = store.journal.end_offset
    for batch in batches:
        producer_id, epoch, sequence, length, trailing, parted_ms, messages, is_held = batch
        is_numbered = producer_id >= 0 and sequence != NO_SEQUENCE
        if is_numbered and target and store.marks.holds(target.index, producer_id, epoch, sequence):
            numbers.append(LONG_AGO)
            continue
        numbers.append(base_offset + len(records))
        waiting = [Waiting(NEW, one.due_ms or 0, topic_id, source.partition, one) for one in messages]
        records += [one.held(producer_id, epoch) for one in waiting] if is_held else waiting
        if is_numbered:
            place = topic_id, source.partition
            records.append(Sequences(*place, producer_id, epoch, sequence, length, trailing, parted_ms))
    if not records:
        return numbers, store.journal.submit()
    submitted = broker.delays.submit(*records)
    telemetry = broker.telemetry
    telemetry.of(source).postponed(
        sum(isinstance(record, Waiting) for record in records),
        telemetry.delayed,
        submitted.base_offset,
        submitted.end_offset,
        broker.clock.wall_us(),
    )
    return numbers, submitted


def _heard(broker: Broker, asker: Asker) -> TopicPartition:
    """The partition that is asked about. Raises Fenced where somebody has asked, or leads, since."""
    target, topic_id, leader_epoch, number, _ = asker
    topic = broker.metadata.topic(target.topic)
    if topic.topic_id != topic_id:
        raise TopicNotFound(target.topic)
    known_epoch = broker.metadata.record(topic, target.partition).epoch
    asked = leader_epoch, number
    if not broker.delays.turns.hear(topic_id, target.partition, asked, known_epoch=known_epoch):
        raise Fenced(f"{target} has asked for something else since, or has another leader")
    return target
