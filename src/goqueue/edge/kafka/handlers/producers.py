"""Producers that want their batches stored exactly once: InitProducerId, DescribeProducers."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.forwarding.at_home import here
from goqueue.broker.producers import describe_producers as producers_of
from goqueue.broker.producers import init_producer
from goqueue.broker.transactions.verbs import init_transactional
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_text, transaction_code
from goqueue.edge.kafka.once import done_to_each, each, once
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.errors import GoQueueError, NotSupported
from goqueue.model.ids import NO_PRODUCER, ProducerId, TopicName, TopicPartition
from goqueue.model.transaction_commands import DescribeProducers, InitProducer, TakeProducerId
from goqueue.model.transactions import NO_EPOCH, ProducerEpoch

if TYPE_CHECKING:
    from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
    from kio.schema.init_producer_id.v6.request import InitProducerIdRequest

_KNOWS_FENCED = 4
_FIRST_EPOCH = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdReply(Reply):
    producer_id: int
    producer_epoch: int
    error_code: ErrorCode = ErrorCode.none
    ongoing_txn_producer_id: int = NO_PRODUCER
    ongoing_txn_producer_epoch: int = NO_EPOCH


async def init_producer_id(context: Context, request: "InitProducerIdRequest") -> InitProducerIdReply:
    """A new producer id; for a transactional id the next epoch of the one it has."""
    try:
        if request.transactional_id is None:
            producer = ProducerEpoch(
                await here(context.broker, init_producer, TakeProducerId()), _FIRST_EPOCH
            )
        else:
            producer = await here(
                context.broker, init_transactional, _command(request, request.transactional_id)
            )
    except GoQueueError as error:
        return InitProducerIdReply(
            producer_id=NO_PRODUCER,
            producer_epoch=NO_EPOCH,
            error_code=transaction_code(error, knows_fenced=request.__version__ >= _KNOWS_FENCED),
        )
    return InitProducerIdReply(producer_id=producer.producer_id, producer_epoch=producer.epoch)


def _command(request: "InitProducerIdRequest", transactional_id: str) -> InitProducer:
    if getattr(request, "enable2_pc", False) or getattr(request, "keep_prepared_txn", False):
        raise NotSupported("a transaction cannot be kept prepared for a decision from outside")
    producer_id: int = getattr(request, "producer_id", NO_PRODUCER)
    epoch: int = getattr(request, "producer_epoch", NO_EPOCH)
    return InitProducer(
        transactional_id=transactional_id,
        timeout_ms=int(request.transaction_timeout.total_seconds() * 1000),
        current=None if producer_id < 0 else ProducerEpoch(ProducerId(producer_id), epoch),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveProducer:
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    current_txn_start_offset: int
    coordinator_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProducers:
    partition_index: int
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    active_producers: tuple[ActiveProducer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProducers:
    name: str
    partitions: tuple[PartitionProducers, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducersReply(Reply):
    topics: tuple[TopicProducers, ...]


async def describe_producers(context: Context, request: "DescribeProducersRequest") -> DescribeProducersReply:
    """Who has written to partitions lately, and what of it is not decided."""

    async def told(topic: "TopicRequest") -> TopicProducers:
        tell = partial(_producers, context, topic.name)
        return TopicProducers(
            name=topic.name, partitions=await each(context, once(topic.partition_indexes), tell)
        )

    asked = once(request.topics, lambda topic: topic.name)
    return DescribeProducersReply(topics=await done_to_each(context, asked, told))


def _producers(context: Context, topic: str, partition: int) -> PartitionProducers:
    try:
        found = here(
            context.broker,
            producers_of,
            DescribeProducers(source=TopicPartition(TopicName(topic), partition)),
        )
    except GoQueueError as error:
        return PartitionProducers(
            partition_index=partition, error_code=transaction_code(error), error_message=kafka_text(error)
        )
    return PartitionProducers(
        partition_index=partition,
        active_producers=tuple(
            ActiveProducer(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.seen_ms,
                current_txn_start_offset=producer.open_from,
            )
            for producer in found
        ),
    )
