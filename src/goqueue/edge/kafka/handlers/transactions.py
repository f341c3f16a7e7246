"""What transactional producers ask: AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from kio.schema.errors import ErrorCode

from goqueue.broker.access.needs import group_need
from goqueue.broker.forwarding.at_home import here
from goqueue.broker.groups.offsets import Refusals
from goqueue.broker.slices import Slices
from goqueue.broker.transactions.verbs import (
    add_group,
    add_partitions,
    end_and_bump,
    end_transaction,
    pend_offsets,
    verify_partition,
)
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import coordinator_code, kafka_code, transaction_code
from goqueue.edge.kafka.once import done_to_each, each, once
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation
from goqueue.model.errors import GoQueueError, InvalidTransactionState, NotFound, PartitionNotFound
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import NO_PRODUCER, ProducerId, TopicName, TopicPartition
from goqueue.model.transaction_commands import (
    AddGroupToTransaction,
    AddPartitionsToTransaction,
    EndAndBump,
    EndTransaction,
    PendOffsets,
    VerifyPartition,
)
from goqueue.model.transactions import NO_EPOCH, Marker, ProducerEpoch

if TYPE_CHECKING:
    from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
    from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnRequest as AddToOneRequest
    from kio.schema.add_partitions_to_txn.v5.request import AddPartitionsToTxnRequest
    from kio.schema.end_txn.v5.request import EndTxnRequest
    from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequest

_KNOWS_FENCED = 2
"""Older versions of these requests have no word of their own for a producer that was fenced."""
_KNOWS_ABORTABLE = 5
_SECOND_PROTOCOL = 5
"""From here on EndTxn and TxnOffsetCommit are those of version 2 of the transaction protocol."""


class AskedTopic(Protocol):
    """The topics of a request, which has a class of its own for them in each version."""

    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedPartition:
    partition_index: int
    partition_error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTopic:
    name: str
    results_by_partition: tuple[AddedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTransaction:
    transactional_id: str
    topic_results: tuple[AddedTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsReply(Reply):
    results_by_topic_v3_and_below: tuple[AddedTopic, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    results_by_transaction: tuple[AddedTransaction, ...] = ()


async def add_partitions_to_txn(
    context: Context, request: "AddPartitionsToTxnRequest | AddToOneRequest"
) -> AddPartitionsReply:
    """Partitions that a transaction will write to: all of them, or none. Newer versions ask for several."""
    if not hasattr(request, "transactions"):
        topics = request.v3_and_below_topics
        producer = ProducerEpoch(
            ProducerId(request.v3_and_below_producer_id), request.v3_and_below_producer_epoch
        )
        codes = await _add(
            context,
            request.v3_and_below_transactional_id,
            producer,
            await _targets(context, topics),
            knows_fenced=request.__version__ >= _KNOWS_FENCED,
        )
        return AddPartitionsReply(results_by_topic_v3_and_below=await _added(context, topics, codes))
    results = []
    for asked in request.transactions:
        producer = ProducerEpoch(ProducerId(asked.producer_id), asked.producer_epoch)
        targets = await _targets(context, asked.topics)
        if asked.verify_only:
            codes = await _verify(
                context,
                asked.transactional_id,
                producer,
                targets,
                knows_abortable=request.__version__ >= _KNOWS_ABORTABLE,
            )
        else:
            codes = await _add(context, asked.transactional_id, producer, targets, knows_fenced=True)
        added = await _added(context, asked.topics, codes)
        results.append(AddedTransaction(transactional_id=asked.transactional_id, topic_results=added))
    return AddPartitionsReply(results_by_transaction=tuple(results))


async def _targets(context: Context, topics: Sequence[AskedTopic]) -> list[TopicPartition]:
    named = ((TopicName(topic.name), partition) for topic in topics for partition in topic.partitions)
    return once(await each(context, named, TopicPartition._make))


async def _add(
    context: Context,
    transactional_id: str,
    producer: ProducerEpoch,
    targets: list[TopicPartition],
    *,
    knows_fenced: bool,
) -> dict[TopicPartition, ErrorCode]:
    denied = context.broker.warden.denied(Operation.WRITE, (target.topic for target in targets))
    if denied:
        return {t: kafka_code(denied[t.topic]) for t in targets if t.topic in denied}
    if missing := await _missing(context, targets):
        return missing
    try:
        await here(
            context.broker,
            add_partitions,
            AddPartitionsToTransaction(transactional_id=transactional_id, producer=producer, targets=targets),
        )
    except GoQueueError as error:
        return dict.fromkeys(targets, transaction_code(error, knows_fenced=knows_fenced))
    return dict.fromkeys(targets, ErrorCode.none)


async def _verify(
    context: Context,
    transactional_id: str,
    producer: ProducerEpoch,
    targets: list[TopicPartition],
    *,
    knows_abortable: bool,
) -> dict[TopicPartition, ErrorCode]:
    codes = {}
    slices = Slices(context.broker.clock)
    for target in targets:
        try:
            await here(
                context.broker,
                verify_partition,
                VerifyPartition(transactional_id=transactional_id, producer=producer, target=target),
            )
            codes[target] = ErrorCode.none
        except InvalidTransactionState as error:
            codes[target] = ErrorCode.transaction_abortable if knows_abortable else transaction_code(error)
        except GoQueueError as error:
            codes[target] = transaction_code(error, knows_fenced=True)
        await slices.pause()
    return codes


async def _added(
    context: Context, topics: Sequence[AskedTopic], codes: Mapping[TopicPartition, ErrorCode]
) -> tuple[AddedTopic, ...]:
    def told(name: str, partition: int) -> AddedPartition:
        code = codes.get(TopicPartition(TopicName(name), partition), ErrorCode.operation_not_attempted)
        return AddedPartition(partition_index=partition, partition_error_code=code)

    async def added(topic: AskedTopic) -> AddedTopic:
        results = await each(context, topic.partitions, partial(told, topic.name))
        return AddedTopic(name=topic.name, results_by_partition=results)

    return await done_to_each(context, topics, added)


async def _missing(context: Context, targets: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    """Codes for the partitions that are not there, and with them the whole request is refused."""
    codes = {}
    slices = Slices(context.broker.clock)
    for target in targets:
        try:
            if not 0 <= target.partition < context.broker.partition_count(target.topic):
                raise PartitionNotFound(*target)
        except NotFound as error:
            codes[target] = transaction_code(error)
        await slices.pause()
    return codes


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReply(Reply):
    """All that there is to say is whether it worked."""

    error_code: ErrorCode = ErrorCode.none


async def add_offsets_to_txn(context: Context, request: "AddOffsetsToTxnRequest") -> ErrorReply:
    """A group whose offsets the transaction will commit."""
    producer = ProducerEpoch(ProducerId(request.producer_id), request.producer_epoch)
    try:
        await here(
            context.broker,
            add_group,
            AddGroupToTransaction(
                transactional_id=request.transactional_id, producer=producer, group=request.group_id
            ),
        )
    except GoQueueError as error:
        code = transaction_code(error, knows_fenced=request.__version__ >= _KNOWS_FENCED)
        return ErrorReply(error_code=code)
    return ErrorReply()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReply(ErrorReply):
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_EPOCH
    """What the producer is from now on; old versions do not say it, for there it is what it was."""


async def end_txn(context: Context, request: "EndTxnRequest") -> EndReply:
    """Commit or abort."""
    producer = ProducerEpoch(ProducerId(request.producer_id), request.producer_epoch)
    marker = Marker.COMMIT if request.committed else Marker.ABORT
    try:
        if request.__version__ >= _SECOND_PROTOCOL:
            producer = await here(
                context.broker,
                end_and_bump,
                EndAndBump(transactional_id=request.transactional_id, producer=producer, marker=marker),
            )
        else:
            await here(
                context.broker,
                end_transaction,
                EndTransaction(transactional_id=request.transactional_id, producer=producer, marker=marker),
            )
    except GoQueueError as error:
        code = transaction_code(error, knows_fenced=request.__version__ >= _KNOWS_FENCED)
        return EndReply(error_code=code)
    return EndReply(producer_id=producer.producer_id, producer_epoch=producer.epoch)


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
        warden = context.broker.warden
        warden.demand([group_need(Operation.READ, who.group)])
        refusals: Refusals = {}
        if denied := warden.denied(Operation.READ, (commit.topic for commit in commits)):
            refusals = {
                TopicPartition(topic, row[0]): denied[topic]
                for topic, rows in commits
                if topic in denied
                for row in rows
            }
        refusals |= await here(
            context.broker,
            pend_offsets,
            PendOffsets(
                transactional_id=request.transactional_id,
                producer=producer,
                who=who,
                commits=[commit for commit in commits if commit.topic not in denied],
                may_join=request.__version__ >= _SECOND_PROTOCOL,
            ),
        )
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
