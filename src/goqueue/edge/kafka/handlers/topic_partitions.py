"""Topics a page at a time: DescribeTopicPartitions, for clients that have very many partitions to show."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from kio.schema.errors import ErrorCode

from goqueue.broker.access.needs import topic_need
from goqueue.broker.forwarding.at_home import here
from goqueue.broker.topics.verbs import describe_topic
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code
from goqueue.edge.kafka.handlers.cluster import PartitionMetadata, partition_at
from goqueue.edge.kafka.rights import OPERATIONS_NOT_ASKED, topic_operations
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation
from goqueue.model.errors import GoQueueError
from goqueue.model.names import is_internal
from goqueue.model.topics import DescribeTopic

if TYPE_CHECKING:
    from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest

_PARTITIONS_MAX = 2_000
"""However many a client asks for in one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPartition:
    error_code: ErrorCode
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: tuple[int, ...]
    isr_nodes: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    # Only who is in sync may lead. Java's client takes no null for that, though the protocol does.
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopic:
    name: str
    topic_id: UUID | None = None
    error_code: ErrorCode = ErrorCode.none
    is_internal: bool = False
    partitions: tuple[DescribedPartition, ...] = ()
    topic_authorized_operations: int = OPERATIONS_NOT_ASKED


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    topic_name: str
    partition_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionsReply(Reply):
    topics: tuple[DescribedTopic, ...]
    next_cursor: Cursor | None = None


async def describe_topic_partitions(
    context: Context, request: "DescribeTopicPartitionsRequest"
) -> TopicPartitionsReply:
    """Topics by name from a cursor on, up to so many partitions, and where to go on."""
    broker = context.broker
    named: list[str] = sorted({topic.name for topic in request.topics})
    lets = broker.warden.lets
    names = named or [
        str(name)
        for name in sorted(broker.metadata.topics)
        if not is_internal(name) and lets(topic_need(Operation.DESCRIBE, name))
    ]
    first, first_partition = "", 0
    if request.cursor is not None:
        first, first_partition = request.cursor.topic_name, max(request.cursor.partition_index, 0)
    room = min(max(request.response_partition_limit, 1), _PARTITIONS_MAX)
    found: list[DescribedTopic] = []
    for name in names:
        if name < first:
            continue
        if room <= 0:
            return TopicPartitionsReply(
                topics=tuple(found), next_cursor=Cursor(topic_name=name, partition_index=0)
            )
        begin = first_partition if name == first else 0
        topic, count = await _described(context, name, begin, room)
        found.append(topic)
        end = begin + len(topic.partitions)
        room -= len(topic.partitions)
        if end < count:
            return TopicPartitionsReply(
                topics=tuple(found), next_cursor=Cursor(topic_name=name, partition_index=end)
            )
    return TopicPartitionsReply(topics=tuple(found))


async def _described(context: Context, name: str, begin: int, room: int) -> tuple[DescribedTopic, int]:
    """A topic with some of its partitions, and how many it has."""
    broker = context.broker
    try:
        broker.warden.demand([topic_need(Operation.DESCRIBE, name)])
        view = await here(broker, describe_topic, DescribeTopic(name=name))
    except GoQueueError as error:
        return DescribedTopic(name=name, error_code=kafka_code(error)), 0
    shown = (
        partition_at(broker.node_number, broker.metadata.nodes, partition)
        for partition in view.partitions[begin : begin + room]
    )
    topic = DescribedTopic(
        name=view.name,
        topic_id=view.topic_id,
        is_internal=is_internal(view.name),
        partitions=tuple(map(_partition, shown)),
        topic_authorized_operations=topic_operations(context, view.name, is_asked=True),
    )
    return topic, len(view.partitions)


def _partition(partition: PartitionMetadata) -> DescribedPartition:
    return DescribedPartition(
        error_code=partition.error_code,
        partition_index=partition.partition_index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replica_nodes,
        isr_nodes=partition.isr_nodes,
        offline_replicas=partition.offline_replicas,
    )
