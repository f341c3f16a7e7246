"""Where in a partition: ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import here
from goqueue.broker.read.find_offset import end_of_epoch, find_offset
from goqueue.broker.read.show_written import show_written
from goqueue.broker.topics.verbs import delete_records as delete_records_before
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code
from goqueue.edge.kafka.once import done_to_each, each, once
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation
from goqueue.model.commands import FindEpochEnd, FindOffset, FoundOffset, ShowWritten, Spot
from goqueue.model.errors import GoQueueError, Invalid
from goqueue.model.ids import TopicName, TopicPartition, places_of
from goqueue.model.topics import DeleteRecords
from goqueue.model.transactions import Isolation

if TYPE_CHECKING:
    from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest
    from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsRequest
    from kio.schema.offset_for_leader_epoch.v4.request import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderPartition,
    )

_SPOT_BY_TIMESTAMP = {
    -1: Spot.LATEST,
    -2: Spot.EARLIEST,
    -3: Spot.MAX_TIMESTAMP,
    -4: Spot.EARLIEST,  # the earliest on local disks: there are no others
}
_TIERED = frozenset({-5, -6})
"""The latest in tiered storage, and the earliest on its way there: there is no such storage, and so none."""
_NO_EPOCH = -1
_READ_COMMITTED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffset:
    partition_index: int
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = _NO_EPOCH
    error_code: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOffsets:
    name: str
    partitions: tuple[PartitionOffset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsReply(Reply):
    topics: tuple[TopicOffsets, ...]


async def list_offsets(context: Context, request: "ListOffsetsRequest") -> ListOffsetsReply:
    """The offset of a spot or of a time, for each partition asked for."""
    is_committed = getattr(request, "isolation_level", 0) == _READ_COMMITTED
    isolation = Isolation.COMMITTED if is_committed else Isolation.UNCOMMITTED
    # All in one round, where it is needed: each look-up would else ask for one of its own.
    denied = context.broker.warden.denied(Operation.DESCRIBE, (topic.name for topic in request.topics))
    asked = [
        source
        for topic in request.topics
        if TopicName(topic.name) not in denied
        for source in _sources(topic.name, topic.partitions)
    ]
    await show_written(context.broker, ShowWritten(sources=asked))
    topics = []
    for topic in request.topics:
        find = partial(_offset, context.broker, topic.name, isolation)
        partitions = await done_to_each(context, topic.partitions, find)
        topics.append(TopicOffsets(name=topic.name, partitions=partitions))
    return ListOffsetsReply(topics=tuple(topics))


def _sources(topic: str, asked: "Iterable[ListOffsetsPartition]") -> Iterator[TopicPartition]:
    return places_of(TopicName(topic), (wanted.partition_index for wanted in asked))


async def _offset(
    broker: Broker, topic: str, isolation: Isolation, wanted: "ListOffsetsPartition"
) -> PartitionOffset:
    source = TopicPartition(TopicName(topic), wanted.partition_index)
    try:
        found = await _find(broker, source, wanted, isolation)
    except GoQueueError as error:
        return PartitionOffset(partition_index=wanted.partition_index, error_code=kafka_code(error))
    return PartitionOffset(
        partition_index=wanted.partition_index,
        timestamp=found.timestamp_ms,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


async def _find(
    broker: Broker, source: TopicPartition, wanted: "ListOffsetsPartition", isolation: Isolation
) -> FoundOffset:
    spot = wanted.timestamp if wanted.timestamp >= 0 else _SPOT_BY_TIMESTAMP.get(wanted.timestamp)
    epoch: int = getattr(wanted, "current_leader_epoch", _NO_EPOCH)
    if wanted.timestamp in _TIERED:
        # There are no tiers; but whoever asks is told if the partition is not there, or no longer as it was.
        await here(broker, find_offset, FindOffset(source=source, spot=Spot.EARLIEST, leader_epoch=epoch))
        return FoundOffset(-1)
    if spot is None:
        raise Invalid(f"{wanted.timestamp} is not a time, nor a spot in the log")
    return await here(
        broker, find_offset, FindOffset(source=source, spot=spot, isolation=isolation, leader_epoch=epoch)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    partition: int
    leader_epoch: int = _NO_EPOCH
    end_offset: int = -1
    error_code: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEpochEnds:
    topic: str
    partitions: tuple[EpochEnd, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochReply(Reply):
    topics: tuple[TopicEpochEnds, ...]


async def offset_for_leader_epoch(
    context: Context, request: "OffsetForLeaderEpochRequest"
) -> OffsetForLeaderEpochReply:
    """Where an epoch ended, so that a reader can see whether its log and ours are still the same."""
    denied = context.broker.warden.denied(Operation.DESCRIBE, (topic.topic for topic in request.topics))
    asked = [
        TopicPartition(TopicName(topic.topic), wanted.partition)
        for topic in request.topics
        if TopicName(topic.topic) not in denied
        for wanted in topic.partitions
    ]
    await show_written(context.broker, ShowWritten(sources=asked))
    topics = []
    for topic in request.topics:
        find = partial(_epoch_end, context.broker, topic.topic)
        partitions = await each(context, topic.partitions, find)
        topics.append(TopicEpochEnds(topic=topic.topic, partitions=partitions))
    return OffsetForLeaderEpochReply(topics=tuple(topics))


def _epoch_end(broker: Broker, topic: str, wanted: "OffsetForLeaderPartition") -> EpochEnd:
    source = TopicPartition(TopicName(topic), wanted.partition)
    try:
        epoch, end_offset = here(
            broker,
            end_of_epoch,
            FindEpochEnd(source=source, epoch=wanted.leader_epoch, leader_epoch=wanted.current_leader_epoch),
        )
    except GoQueueError as error:
        return EpochEnd(partition=wanted.partition, error_code=kafka_code(error))
    return EpochEnd(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStart:
    partition_index: int
    low_watermark: int = -1
    error_code: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStarts:
    name: str
    partitions: tuple[PartitionStart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsReply(Reply):
    topics: tuple[TopicStarts, ...]


async def delete_records(context: Context, request: "DeleteRecordsRequest") -> DeleteRecordsReply:
    """Forget what lies before an offset: the first that is named for a partition, for each is a write."""
    topics = []
    for topic in once(request.topics, lambda topic: topic.name):
        delete = partial(_delete, context.broker, topic.name)
        asked = once(topic.partitions, lambda wanted: wanted.partition_index)
        partitions = await done_to_each(context, asked, delete)
        topics.append(TopicStarts(name=topic.name, partitions=partitions))
    return DeleteRecordsReply(topics=tuple(topics))


async def _delete(broker: Broker, topic: str, wanted: "DeleteRecordsPartition") -> PartitionStart:
    target = TopicPartition(TopicName(topic), wanted.partition_index)
    try:
        start_offset = await here(
            broker, delete_records_before, DeleteRecords(target=target, before_offset=wanted.offset)
        )
    except GoQueueError as error:
        return PartitionStart(partition_index=wanted.partition_index, error_code=kafka_code(error))
    return PartitionStart(partition_index=wanted.partition_index, low_watermark=start_offset)
