"""Up to where share groups have settled partitions: DescribeShareGroupOffsets."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING
from uuid import UUID

from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.handlers.groups_offsets import CommittedTopic, committed_of
from goqueue.edge.kafka.once import once
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Need, Operation, ResourceKind
from goqueue.model.ids import TopicName

if TYPE_CHECKING:
    from kio.schema.describe_share_group_offsets.v1.request import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPartition:
    partition_index: int
    start_offset: int
    leader_epoch: int
    error_code: ErrorCode
    lag: int = -1
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTopic:
    topic_name: str
    topic_id: UUID | None
    partitions: tuple[SharedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedGroup:
    group_id: str
    topics: tuple[SharedTopic, ...]
    error_code: ErrorCode
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOffsetsReply(Reply):
    groups: tuple[SharedGroup, ...]


async def describe_share_group_offsets(
    context: Context, request: "DescribeShareGroupOffsetsRequest"
) -> ShareOffsetsReply:
    """All before a start offset is settled; -1 where a group has had nothing yet."""
    return ShareOffsetsReply(
        groups=tuple(
            [await _described(context, group) for group in once(request.groups, lambda one: one.group_id)]
        )
    )


async def _described(context: Context, group: "DescribeShareGroupOffsetsRequestGroup") -> SharedGroup:
    wanted: Sequence[SimpleNamespace] | None = None
    if group.topics is not None:
        wanted = [
            SimpleNamespace(name=topic.topic_name, partition_indexes=topic.partitions)
            for topic in group.topics
        ]
    found = await committed_of(context, group.group_id, wanted, stable=False)
    return SharedGroup(
        group_id=group.group_id,
        topics=tuple(_topic(context, topic) for topic in found.topics),
        error_code=found.error_code,
    )


def _topic(context: Context, topic: CommittedTopic) -> SharedTopic:
    known = context.broker.metadata.topics.get(TopicName(topic.name))
    # Whoever may not see a topic does not learn by its id that it is there.
    is_seen = context.broker.warden.lets(Need(Operation.DESCRIBE, ResourceKind.TOPIC, topic.name))
    return SharedTopic(
        topic_name=topic.name,
        topic_id=known.topic_id if known is not None and is_seen else None,
        partitions=tuple(
            SharedPartition(
                partition_index=partition.partition_index,
                start_offset=partition.committed_offset,
                leader_epoch=max(partition.committed_leader_epoch, 0),
                error_code=partition.error_code,
            )
            for partition in topic.partitions
        ),
    )
