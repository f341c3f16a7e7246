"""Who decides, as Kafka's tools ask for it: DescribeQuorum.

Nodes agree by the store, not by a log of Kafka's that they vote on. To tools the nodes are the voters,
whoever holds the controller's seat leads them, and what is agreed is as long as the image is new.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from kio.schema.errors import ErrorCode

from goqueue.broker.access.needs import cluster_need
from goqueue.core.cluster.numbers import node_number
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code, kafka_text
from goqueue.edge.kafka.handlers.cluster import controller_of
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation
from goqueue.model.errors import GoQueueError

if TYPE_CHECKING:
    from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest

_TOPIC, _PARTITION = "__cluster_metadata", 0
"""The only one that is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    replica_id: int
    log_end_offset: int
    last_caught_up_timestamp: int
    last_fetch_timestamp: int = -1
    replica_directory_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumPartition:
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    current_voters: tuple[Voter, ...] = ()
    observers: tuple[Voter, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumTopic:
    topic_name: str
    partitions: tuple[QuorumPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeQuorumReply(Reply):
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    topics: tuple[QuorumTopic, ...] = ()
    nodes: tuple[object, ...] = ()


async def describe_quorum(context: Context, request: "DescribeQuorumRequest") -> DescribeQuorumReply:
    """Who leads, and who may."""
    try:
        context.broker.warden.demand([cluster_need(Operation.DESCRIBE)])
    except GoQueueError as error:
        return DescribeQuorumReply(error_code=kafka_code(error), error_message=kafka_text(error))
    return DescribeQuorumReply(
        topics=tuple(
            QuorumTopic(
                topic_name=topic.topic_name,
                partitions=tuple(
                    _described(context, topic.topic_name, one.partition_index) for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _described(context: Context, topic: str, number: int) -> QuorumPartition:
    if (topic, number) != (_TOPIC, _PARTITION):
        return QuorumPartition(partition_index=number, error_code=ErrorCode.unknown_topic_or_partition)
    broker = context.broker
    revision = broker.metadata.revision
    numbers = sorted(map(node_number, broker.metadata.nodes)) if broker.is_one_of_several else []
    return QuorumPartition(
        partition_index=number,
        leader_id=controller_of(context),
        leader_epoch=1,
        high_watermark=revision,
        current_voters=tuple(
            Voter(
                replica_id=voter,
                log_end_offset=revision,
                last_caught_up_timestamp=broker.clock.wall_ms(),
            )
            for voter in numbers or [broker.node_number]
        ),
    )
