"""publish_once: one message of a producer that numbers its messages, stored once however often it comes.

While the producer has a transaction open, the message is part of it; else it is seen at once, or when it is
due. A producer that was fenced is refused either way.
"""

from collections.abc import Sequence

import mmh3

from goqueue.broker.broker import Broker
from goqueue.broker.delays.append import explains_gap, find_target
from goqueue.broker.delays.records import NEW, Record, Sequences, Waiting
from goqueue.broker.schemas.check import Looked, misfits, screen
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.quotas import admit_messages, check_due, message_bytes_max, note_too_large
from goqueue.broker.transactions.ends import finish_later
from goqueue.broker.transactions.writes import join_transaction
from goqueue.broker.write.append import appended
from goqueue.broker.write.refusals import telling_refusals
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.errors import (
    DuplicateSequence,
    MessageTooLarge,
    OutOfSequence,
    PartitionNotFound,
    ProducerNotFound,
    SchemaMismatch,
)
from goqueue.model.messages import Acks
from goqueue.model.schemas import OnInvalid, SchemaValidation
from goqueue.model.transactions import PublishedOnce, PublishOnce, TransactionState
from goqueue.records.batch import encode, open_batch
from goqueue.records.layout import TRANSACTIONAL, BatchHeader, read_header, stamp_producer

_FIRST_SEQUENCE_MAX = 1
"""People count from 0 or from 1."""
_LONG_AGO = -1


async def publish_once(broker: Broker, command: PublishOnce) -> PublishedOnce:
    """Route, check who sends, tell a duplicate, store, wait for the disk."""
    with telling_refusals(broker, [command.topic]):
        return await _publish_once(broker, command)


async def _publish_once(broker: Broker, command: PublishOnce) -> PublishedOnce:
    broker.admit(command.topic)
    partition = _route(broker, command)
    partition.admit_write()
    _check_size(broker, command)
    settings = partition.log.settings
    problems: dict[int, str] = {}
    if settings.schema_validation is not SchemaValidation.NONE:
        problems = await misfits(broker, command.topic, settings, [command.message])
        broker.admit(command.topic)
        partition = _route(broker, command)  # it may be another one by now
    is_transactional = await _joins(broker, command, partition)
    batch = _batch_of(broker, command, partition, is_transactional=is_transactional)
    number = partition.source.partition
    try:
        stored_offset = _find_stored(broker, command, partition, batch.header)
    except DuplicateSequence:
        return PublishedOnce(number, _LONG_AGO, is_duplicate=True)
    is_duplicate = stored_offset is not None
    if command.message.due_ms is not None and not is_duplicate:
        if problems:
            raise SchemaMismatch(problems)
        return await _publish_later(broker, command, partition, batch)
    batches: Sequence[CheckedBatch] = [batch]
    quarantine = None
    if problems and (not is_duplicate or settings.schema_on_invalid is OnInvalid.QUARANTINE):
        looked = Looked([open_batch(batch.body, batch.lane)], problems)
        batches, quarantine = screen(broker, partition, batches, looked)
    offset = partition.append(batches) if stored_offset is None else stored_offset
    waits = [appended(partition, offset, 1, Acks.ALL).committed]
    if quarantine is not None:
        waits.append(quarantine.committed(quarantine.log.end_offset))
    for committed in waits:
        if committed is not None:
            await committed
    return PublishedOnce(number, offset, is_duplicate, is_quarantined=quarantine is not None)


def _route(broker: Broker, command: PublishOnce) -> Partition:
    """The partition named, else the key's, else one that is always the same for the producer.

    Taking turns would send a message that comes twice to two partitions.
    """
    partitions = broker.topic(command.topic).partitions
    number, key = command.message.partition, command.message.key
    if number is None:
        number = (mmh3.hash(key, 0, signed=False) if key else command.producer.producer_id) % len(partitions)
    if not 0 <= number < len(partitions):
        raise PartitionNotFound(command.topic, number)
    return partitions[number]


def _check_size(broker: Broker, command: PublishOnce) -> None:
    """Refuse a message that is larger, or one more, than the topic and its tenant may have."""
    message = command.message
    size = len(message.value or b"") + len(message.key or b"")
    limit = min(
        broker.config.limits.message_bytes, broker.metadata.topic(command.topic).settings.max_message_bytes
    )
    limit = message_bytes_max(broker, command.topic, limit)
    if size > limit:
        note_too_large(broker.tenants.owner(command.topic), size)
        raise MessageTooLarge(f"a message of {size} bytes is over the limit of {limit}")
    if (account := broker.tenants.owner(command.topic)) is not None:
        if message.due_ms is not None:
            check_due(broker, command.topic, message.due_ms)
        admit_messages(broker, account, [message])


async def _joins(broker: Broker, command: PublishOnce, partition: Partition) -> bool:
    """Whether the message is part of a transaction, which by then the disk knows to include the partition."""
    producer = command.producer
    known = broker.transactions.of_producer(producer.producer_id)
    if known is None:
        if not 0 < producer.producer_id < broker.metadata.producer_ids_end:
            raise ProducerNotFound(producer.producer_id)
        return False
    if known.state.is_prepared:
        await finish_later(broker, known.transactional_id)
        known = broker.transactions.of_producer(producer.producer_id) or known
    journal = await broker.transactions.ensure(known.transactional_id)
    if journal.transactions.held_by(known.transactional_id, producer).state is not TransactionState.ONGOING:
        return False
    while (joined := join_transaction(broker, partition, producer, may_join=True)) is not None:
        await joined  # and look again: it may have been aborted meanwhile
    return True


def _find_stored(
    broker: Broker, command: PublishOnce, partition: Partition, header: BatchHeader
) -> int | None:
    """The offset of a message that is stored already, None for a new one; refuses what does not fit.

    One that was delayed and comes again may be due by now, so that is looked for first.
    """
    target = find_target(broker, partition)
    if command.sequence is not None and target is not None:
        marks = broker.delays.store.marks
        if marks.holds(target.index, header.producer_id, header.producer_epoch, header.base_sequence):
            raise DuplicateSequence(f"sequence {header.base_sequence} was delayed before")
    try:
        # Where the broker chooses the partition, the producer cannot know how far it has counted there.
        return partition.producers.duplicate(
            header, 1, first_max=_FIRST_SEQUENCE_MAX, may_skip=command.message.partition is None
        )
    except OutOfSequence:
        if not explains_gap(broker, partition, header, first_max=_FIRST_SEQUENCE_MAX):
            raise
        return None


async def _publish_later(
    broker: Broker, command: PublishOnce, partition: Partition, batch: CheckedBatch
) -> PublishedOnce:
    """Keep a message among the delayed ones, and with it its sequence number; wait for the disk."""
    message, header = command.message, batch.header
    assert message.due_ms is not None, "a message without a due time is not delayed"
    topic, number = partition.source
    topic_id = broker.metadata.topic(topic).topic_id
    waiting = Waiting(NEW, message.due_ms, topic_id, number, message)
    if header.attributes & TRANSACTIONAL:
        waiting = waiting.held(*command.producer)
    records: list[Record] = [waiting]
    if command.sequence is not None:
        records.append(Sequences(topic_id, number, *command.producer, command.sequence, 1, 1))
    offset = broker.delays.write(records)
    committed = broker.delays.store.partition.committed(offset + len(records))
    if committed is not None:
        await committed
    return PublishedOnce(number, offset, is_duplicate=False, due_ms=message.due_ms)


def _batch_of(
    broker: Broker, command: PublishOnce, partition: Partition, *, is_transactional: bool
) -> CheckedBatch:
    sequence = command.sequence
    if sequence is None:
        sequence = partition.producers.next_sequence(*command.producer)
    [(body, lane)] = encode([command.message], now_ms=broker.clock.wall_ms())
    stamp_producer(
        body,
        producer_id=command.producer.producer_id,
        producer_epoch=command.producer.epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )
    return CheckedBatch(read_header(body), body, lane)
