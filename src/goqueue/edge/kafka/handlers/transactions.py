"""What transactional producers ask: AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.transactions import add_group, add_partitions, end_transaction, pend_offsets
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import coordinator_code, transaction_code
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.errors import GoQueueError, NotFound
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import ProducerId, TopicName, TopicPartition
from goqueue.model.transactions import ProducerEpoch
from goqueue.records.control import Marker

if TYPE_CHECKING:
    from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
    from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnRequest
    from kio.schema.end_txn.v4.request import EndTxnRequest
    from kio.schema.txn_offset_commit.v4.request import TxnOffsetCommitRequest

_KNOWS_FENCED = 2
"""Older versions of these requests have no word of their own for a producer that was fenced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedPartition:
    partition_index: int
    partition_error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTopic:
    name: str
    results_by_partition: tuple[AddedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsReply(Reply):
    results_by_topic_v3_and_below: tuple[AddedTopic, ...]


async def add_partitions_to_txn(context: Context, request: "AddPartitionsToTxnRequest") -> AddPartitionsReply:
    """Partitions that a transaction will write to: all of them, or none."""
    targets = [
        TopicPartition(TopicName(topic.name), partition)
        for topic in request.v3_and_below_topics
        for partition in topic.partitions
    ]
    producer = ProducerEpoch(
        ProducerId(request.v3_and_below_producer_id), request.v3_and_below_producer_epoch
    )
    codes = _missing(context, targets)
    if not codes:
        try:
            await add_partitions(context.broker, request.v3_and_below_transactional_id, producer, targets)
            codes = dict.fromkeys(targets, ErrorCode.none)
        except GoQueueError as error:
            code = transaction_code(error, knows_fenced=request.__version__ >= _KNOWS_FENCED)
            codes = dict.fromkeys(targets, code)
    return AddPartitionsReply(
        results_by_topic_v3_and_below=tuple(
            AddedTopic(
                name=topic.name,
                results_by_partition=tuple(
                    AddedPartition(
                        partition_index=partition,
                        partition_error_code=codes.get(
                            TopicPartition(TopicName(topic.name), partition),
                            ErrorCode.operation_not_attempted,
                        ),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.v3_and_below_topics
        )
    )


def _missing(context: Context, targets: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    """Codes for the partitions that are not there, and with them the whole request is refused."""
    codes = {}
    for target in targets:
        try:
            context.broker.partition(target)
        except NotFound as error:
            codes[target] = transaction_code(error)
    return codes


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReply(Reply):
    """All that there is to say is whether it worked."""

    error_code: ErrorCode = ErrorCode.none


async def add_offsets_to_txn(context: Context, request: "AddOffsetsToTxnRequest") -> ErrorReply:
    """A group whose offsets the transaction will commit."""
    producer = ProducerEpoch(ProducerId(request.producer_id), request.producer_epoch)
    try:
        await add_group(context.broker, request.transactional_id, producer, request.group_id)
    except GoQueueError as error:
        code = transaction_code(error, knows_fenced=request.__version__ >= _KNOWS_FENCED)
        return ErrorReply(error_code=code)
    return ErrorReply()


async def end_txn(context: Context, request: "EndTxnRequest") -> ErrorReply:
    """Commit or abort."""
    producer = ProducerEpoch(ProducerId(request.producer_id), request.producer_epoch)
    marker = Marker.COMMIT if request.committed else Marker.ABORT
    try:
        await end_transaction(context.broker, request.transactional_id, producer, marker)
    except GoQueueError as error:
        code = transaction_code(error, knows_fenced=request.__version__ >= _KNOWS_FENCED)
        return ErrorReply(error_code=code)
    return ErrorReply()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendedPartition:
    partition_index: int
    error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class PendedTopic:
    name: str
    partitions: tuple[PendedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitReply(Reply):
    topics: tuple[PendedTopic, ...]


async def txn_offset_commit(context: Context, request: "TxnOffsetCommitRequest") -> TxnOffsetCommitReply:
    """Offsets that count when the transaction is committed."""
    producer = ProducerEpoch(ProducerId(request.producer_id), request.producer_epoch)
    who = Membership(
        request.group_id,
        getattr(request, "member_id", ""),
        getattr(request, "generation_id", NO_GENERATION),
        getattr(request, "group_instance_id", None),
    )
    commits = [
        TopicCommit(
            TopicName(topic.name),
            [
                (
                    row.partition_index,
                    row.committed_offset,
                    getattr(row, "committed_leader_epoch", -1),
                    row.committed_metadata or "",
                )
                for row in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    codes: Mapping[TopicPartition, ErrorCode] = {}
    all_refused = ErrorCode.none
    try:
        refusals = await pend_offsets(context.broker, request.transactional_id, producer, who, commits)
        codes = {target: coordinator_code(error) for target, error in refusals.items()}
    except GoQueueError as error:
        all_refused = transaction_code(error)
    return TxnOffsetCommitReply(
        topics=tuple(
            PendedTopic(
                name=topic,
                partitions=tuple(
                    PendedPartition(
                        partition_index=row[0],
                        error_code=codes.get(TopicPartition(topic, row[0]), all_refused),
                    )
                    for row in rows
                ),
            )
            for topic, rows in commits
        )
    )
