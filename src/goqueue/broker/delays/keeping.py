"""What other nodes give to the keeper of the delays, and how it goes into the journal."""

from collections.abc import Sequence

from goqueue.broker.appending import LONG_AGO
from goqueue.broker.broker import Broker
from goqueue.broker.delays.answering import answered
from goqueue.broker.delays.records import NEW, Record, Sequences, Waiting
from goqueue.broker.delays.verbs import postpone
from goqueue.broker.storage.journal import Submitted
from goqueue.model.delays import (
    KeepDelayed,
    LaterBatch,
    Postponed,
)
from goqueue.model.errors import TopicNotFound
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
