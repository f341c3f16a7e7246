"""publish_once: one message of a producer that numbers its messages, stored once however often it comes.

While the producer has a transaction open, the message is part of it; else it is seen at once, or when it is
due. A producer that was fenced is refused either way.
"""

from dataclasses import replace

from goqueue.broker.appending import LONG_AGO, Numbering, batches_of
from goqueue.broker.broker import Broker
from goqueue.broker.delays.asking import Told, Unasked
from goqueue.broker.schemas.check import Looked, misfits, quarantine_for
from goqueue.broker.schemas.quarantine import open_quarantine
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.quotas import admit_messages, check_due, check_message_size
from goqueue.broker.transactions.ends import finish_later
from goqueue.broker.transactions.joining import join_open, owner_of
from goqueue.broker.transactions.leaders import calls
from goqueue.broker.transactions.verbs import hear_producer
from goqueue.broker.transactions.writes import demand_open, join_transaction
from goqueue.broker.write.asking import take_in_at_last
from goqueue.broker.write.incoming import Incoming, admit_partition
from goqueue.broker.write.later import find_known, known_marks, take_parted
from goqueue.broker.write.preparing import recode_built
from goqueue.broker.write.refusals import telling_refusals
from goqueue.broker.write.take_in import take_in
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import Appended
from goqueue.model.errors import DuplicateSequence, KeyRequired, ProducerNotFound
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.schemas import SchemaValidation
from goqueue.model.settings import CompressionType
from goqueue.model.transaction_commands import HearProducer, PublishOnce
from goqueue.model.transactions import ProducerEpoch, PublishedOnce, TransactionState
from goqueue.records.batch import DelaySplit, open_batch
from goqueue.records.layout import NO_SEQUENCE, TRANSACTIONAL, BatchHeader, read_header, stamp_producer
from goqueue.records.partitioners import hash_by
from goqueue.records.wishes import due_asked, heed

_FIRST_SEQUENCE_MAX = 1
"""People count from 0 or from 1."""


async def publish_once(broker: Broker, command: PublishOnce) -> PublishedOnce:
    """Hear the producer, route, check who sends, tell a duplicate, store, wait for the disk."""
    if broker.is_one_of_several:
        if (owner := await owner_of(broker, command.producer)) is not None:
            hearing = HearProducer(producer=command.producer, transactional_id=owner)
            await calls(broker).run(hear_producer, hearing)
    else:
        known = broker.transactions.of_producer(command.producer.producer_id)
        if known is not None and known.producer == command.producer:
            hearing = HearProducer(producer=command.producer, transactional_id=known.transactional_id)
            await hear_producer(broker, hearing)
    with telling_refusals(broker, [command.topic]):
        return await _publish_once(broker, command)


async def _publish_once(broker: Broker, command: PublishOnce) -> PublishedOnce:
    topic, message = command.topic, heed(command.message, 0, broker.clock.wall_ms())
    command = replace(command, message=message)
    partition = admit_partition(broker, home_of(broker, command))
    _check_quotas(broker, command)
    settings = partition.log.settings
    if settings.is_compacted and message.key is None:
        raise KeyRequired(topic)
    problems: dict[int, str] = {}
    if settings.schema_validation is not SchemaValidation.NONE:
        problems = await misfits(broker, topic, settings, [message])
        if problems and (aside := quarantine_for(broker, topic, settings)) is not None:
            await open_quarantine(broker, topic, aside)
        partition = admit_partition(broker, home_of(broker, command))  # it may be another one by now
    [batch] = batches_of([message], now_ms=broker.clock.wall_ms())
    if settings.compression_type is not CompressionType.PRODUCER:
        # Before the message is numbered: behind that nothing may be waited for.
        [batch] = await recode_built(broker, [batch], settings)
        partition = admit_partition(broker, home_of(broker, command))
    is_transactional = await _joins(broker, command, partition)
    batch = _numbered(batch, command, partition, is_transactional=is_transactional)
    number = partition.source.partition
    try:
        outcome = await _take_in_at_last(broker, command, partition, batch, problems)
    except DuplicateSequence:
        return PublishedOnce(number, LONG_AGO, is_duplicate=True)
    if outcome.committed is not None:
        await outcome.committed
    for later in outcome.later:
        return PublishedOnce(number, later.number, is_duplicate=False, due_ms=later.due_ms)
    is_quarantined = bool(outcome.quarantined)
    return PublishedOnce(number, outcome.base_offset, outcome.is_duplicate, is_quarantined)


async def _take_in_at_last(
    broker: Broker,
    command: PublishOnce,
    partition: Partition,
    batch: CheckedBatch,
    problems: dict[int, str],
) -> Appended:
    """As batches of clients are, when whoever must be asked has answered."""
    is_first = True

    def take(looked: Looked | None, told: Told | None) -> Appended:
        nonlocal is_first
        if not is_first:  # something was waited for
            admit_partition(broker, partition.source)
            if batch.header.attributes & TRANSACTIONAL:
                demand_open(broker, partition, command.producer)
        is_first = False
        return _take_in(broker, command, partition, batch, looked, told)

    looked = Looked([batch], [open_batch(batch.body, batch.lane)], problems)
    return await take_in_at_last(broker, looked, take)


def _take_in(
    broker: Broker,
    command: PublishOnce,
    partition: Partition,
    batch: CheckedBatch,
    looked: Looked | None,
    told: Told | None,
) -> Appended:
    """As batches of clients are, but that people count less strictly. Raises DuplicateSequence."""
    header, message = batch.header, command.message
    _refuse_delayed_before(broker, command, partition, header, told)
    # Where the broker chooses the partition, the producer cannot know how far it has counted there.
    numbering = Numbering(first_max=_FIRST_SEQUENCE_MAX, may_skip=message.partition is None)
    is_stored = find_known(broker, partition, header, 1, numbering, told) is not None
    if message.due_ms is None or (looked is not None and looked.problems) or is_stored:
        incoming = Incoming([header], [batch.body], batch.lane)
        return take_in(broker, partition, incoming, Acks.ALL, looked, numbering, told)
    later = DelaySplit([], [message], [0], trailing=1)
    if command.sequence is None:
        header = header._replace(base_sequence=NO_SEQUENCE)  # it takes none of the log's
    return take_parted(broker, partition, [later], [header], Acks.ALL, numbering, told)


def home_of(broker: Broker, command: PublishOnce) -> TopicPartition:
    """Where a message goes: where it says, else where its key does, else always to the same partition.

    Taking turns would send a message that comes twice to two partitions.
    """
    partitions = broker.topic(command.topic).partitions
    number, key = command.message.partition, command.message.key
    if number is None:
        hash_key = hash_by(broker.metadata.topic(command.topic).settings.partitioner)
        number = (hash_key(key) if key else command.producer.producer_id) % len(partitions)
    return TopicPartition(command.topic, number)


def _check_quotas(broker: Broker, command: PublishOnce) -> None:
    """Refuse a message that is larger, or one more, than the topic and its tenant may have."""
    message = command.message
    check_message_size(broker, command.topic, message)
    if (account := broker.tenants.owner(command.topic)) is not None:
        if message.due_ms is not None:
            check_due(broker, command.topic, message.due_ms)
        admit_messages(broker, account, [message])


async def _joins(broker: Broker, command: PublishOnce, partition: Partition) -> bool:
    """Whether the message is part of a transaction, which then includes the partition."""
    producer = command.producer
    if broker.is_one_of_several:
        return await _joins_afar(broker, producer, partition)
    known = broker.transactions.of_producer(producer.producer_id)
    if known is None:
        _check_given(broker, producer)
        return False
    if known.state.is_prepared:
        await finish_later(broker, known.transactional_id)
        known = broker.transactions.of_producer(producer.producer_id) or known
    journal = await broker.transactions.ensure(known.transactional_id)
    if journal.transactions.held_by(known.transactional_id, producer).state is not TransactionState.ONGOING:
        return False
    join_transaction(broker, partition, producer, may_join=True)
    return True


async def _joins_afar(broker: Broker, producer: ProducerEpoch, partition: Partition) -> bool:
    """The same where another node may coordinate the transaction."""
    owner = await owner_of(broker, producer)
    if owner is None:
        _check_given(broker, producer)
        return False
    if broker.transactions.verified.is_told(partition, producer.producer_id, producer.epoch):
        return True
    return await join_open(broker, partition, producer, owner, may_join=True, may_be_closed=True)


def _check_given(broker: Broker, producer: ProducerEpoch) -> None:
    """A producer without transactions: that its id was given out is all there is to know."""
    if not 0 < producer.producer_id < broker.metadata.producer_ids_end:
        raise ProducerNotFound(producer.producer_id)


def _refuse_delayed_before(
    broker: Broker, command: PublishOnce, partition: Partition, header: BatchHeader, told: Told | None
) -> None:
    """A message that was delayed and comes again may be due by now: it is told apart before all else.

    With several nodes the keeper is asked about what names a time. Raises Unasked.
    """
    if told is None and broker.is_one_of_several and _names_time(command):
        raise Unasked(partition, [] if command.sequence is None else [header.producer_id])
    known = known_marks(broker, partition, told)
    if command.sequence is not None and known is not None:
        marks, index = known
        if marks.holds(index, header.producer_id, header.producer_epoch, header.base_sequence):
            raise DuplicateSequence(f"sequence {header.base_sequence} was delayed before")


def _names_time(command: PublishOnce) -> bool:
    """Whether the message says when it comes, which may be over."""
    message = command.message
    return command.names_time or message.due_ms is not None or due_asked(message.headers, 0, 0) is not None


def _numbered(
    batch: CheckedBatch, command: PublishOnce, partition: Partition, *, is_transactional: bool
) -> CheckedBatch:
    _, body, lane = batch
    sequence = command.sequence
    if sequence is None:
        sequence = partition.producers.next_sequence(*command.producer)
    stamp_producer(
        body,
        producer_id=command.producer.producer_id,
        producer_epoch=command.producer.epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )
    return CheckedBatch(read_header(body), body, lane)
