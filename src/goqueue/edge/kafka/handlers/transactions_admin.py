"""What people and tools ask of transactions: DescribeTransactions, ListTransactions, WriteTxnMarkers."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.forwarding.at_home import here
from goqueue.broker.transactions.verbs import abort_open_in
from goqueue.broker.transactions.views import describe_transaction, list_transactions
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import transaction_code
from goqueue.edge.kafka.once import done_to_each, each, once
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.errors import GoQueueError, InvalidTransactionState
from goqueue.model.ids import NO_PRODUCER, ProducerId, TopicName, TopicPartition
from goqueue.model.transaction_commands import AbortOpenIn, DescribeTransaction, ListTransactions
from goqueue.model.transactions import NO_EPOCH, ProducerEpoch, TransactionState, TransactionView

if TYPE_CHECKING:
    from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
    from kio.schema.list_transactions.v1.request import ListTransactionsRequest
    from kio.schema.write_txn_markers.v1.request import (
        WritableTxnMarker,
        WritableTxnMarkerTopic,
        WriteTxnMarkersRequest,
    )

_ANY_DURATION = -1
_STATES = {state.value for state in TransactionState}


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedTopic:
    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTransaction:
    transactional_id: str
    error_code: ErrorCode = ErrorCode.none
    transaction_state: str = ""
    transaction_timeout: timedelta = timedelta(0)
    transaction_start_time: datetime
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_EPOCH
    topics: tuple[TouchedTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTransactionsReply(Reply):
    transaction_states: tuple[DescribedTransaction, ...]


async def describe_transactions(
    context: Context, request: "DescribeTransactionsRequest"
) -> DescribeTransactionsReply:
    """Transactional ids as they stand: who holds them, what is open, since when."""
    return DescribeTransactionsReply(
        transaction_states=await each(
            context, once(request.transactional_ids), lambda name: _described(context, name)
        )
    )


def _described(context: Context, transactional_id: str) -> DescribedTransaction:
    try:
        view = here(
            context.broker, describe_transaction, DescribeTransaction(transactional_id=transactional_id)
        )
    except GoQueueError as error:
        return DescribedTransaction(
            transactional_id=transactional_id,
            error_code=transaction_code(error),
            transaction_start_time=_time(0),
        )
    touched: dict[TopicName, list[int]] = {}
    for topic, partition in view.partitions:
        touched.setdefault(topic, []).append(partition)
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=view.state.value,
        transaction_timeout=timedelta(milliseconds=view.timeout_ms),
        transaction_start_time=_time(view.started_ms),
        producer_id=view.producer.producer_id,
        producer_epoch=view.producer.epoch,
        topics=tuple(
            TouchedTopic(topic=topic, partitions=tuple(partitions)) for topic, partitions in touched.items()
        ),
    )


def _time(unix_ms: int) -> datetime:
    return datetime.fromtimestamp(unix_ms / 1000, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTransaction:
    transactional_id: str
    producer_id: int
    transaction_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTransactionsReply(Reply):
    transaction_states: tuple[ListedTransaction, ...] = ()
    unknown_state_filters: tuple[str, ...] = ()
    error_code: ErrorCode = ErrorCode.none


async def list_transactional_ids(
    context: Context, request: "ListTransactionsRequest"
) -> ListTransactionsReply:
    """Transactional ids, by state, by producer, by how long they have been open."""
    try:
        views = await here(context.broker, list_transactions, ListTransactions())
    except GoQueueError as error:
        return ListTransactionsReply(error_code=transaction_code(error))
    now_ms = context.broker.clock.wall_ms()
    return ListTransactionsReply(
        unknown_state_filters=tuple(state for state in request.state_filters if state not in _STATES),
        transaction_states=tuple(
            ListedTransaction(
                transactional_id=view.transactional_id,
                producer_id=view.producer.producer_id,
                transaction_state=view.state.value,
            )
            for view in views
            if _is_wanted(view, request, now_ms)
        ),
    )


def _is_wanted(view: TransactionView, request: "ListTransactionsRequest", now_ms: int) -> bool:
    duration_ms: int = getattr(request, "duration_filter", _ANY_DURATION)
    if duration_ms != _ANY_DURATION and (
        view.state is not TransactionState.ONGOING or now_ms - view.started_ms < duration_ms
    ):
        return False
    if request.state_filters and view.state.value not in request.state_filters:
        return False
    producer_ids: tuple[int, ...] = request.producer_id_filters
    return not producer_ids or view.producer.producer_id in producer_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedPartition:
    partition_index: int
    error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedTopic:
    name: str
    partitions: tuple[MarkedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedProducer:
    producer_id: int
    topics: tuple[MarkedTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnMarkersReply(Reply):
    markers: tuple[MarkedProducer, ...]


async def write_txn_markers(context: Context, request: "WriteTxnMarkersRequest") -> WriteTxnMarkersReply:
    """Abort what a producer has open in partitions: the way of Kafka's tools to end a hanging transaction."""

    async def mark(marker: "WritableTxnMarker") -> MarkedProducer:
        topics = await done_to_each(context, marker.topics, partial(_mark_topic, context, marker))
        return MarkedProducer(producer_id=marker.producer_id, topics=topics)

    return WriteTxnMarkersReply(markers=await done_to_each(context, request.markers, mark))


async def _mark_topic(
    context: Context, marker: "WritableTxnMarker", topic: "WritableTxnMarkerTopic"
) -> MarkedTopic:
    mark = partial(_mark, context, marker, topic.name)
    return MarkedTopic(name=topic.name, partitions=await done_to_each(context, topic.partition_indexes, mark))


async def _mark(context: Context, marker: "WritableTxnMarker", topic: str, partition: int) -> MarkedPartition:
    try:
        if marker.transaction_result:
            raise InvalidTransactionState("only the coordinator commits, all of a transaction at once")
        target = TopicPartition(TopicName(topic), partition)
        producer = ProducerEpoch(ProducerId(marker.producer_id), marker.producer_epoch)
        await here(context.broker, abort_open_in, AbortOpenIn(target=target, producer=producer))
    except GoQueueError as error:
        return MarkedPartition(partition_index=partition, error_code=transaction_code(error))
    return MarkedPartition(partition_index=partition, error_code=ErrorCode.none)
