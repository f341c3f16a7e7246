"""Where partitions lie on the disk: DescribeLogDirs. There is one folder: AlterReplicaLogDirs is refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.access.needs import cluster_need
from goqueue.broker.forwarding.at_home import here
from goqueue.broker.topics.verbs import list_topics
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation
from goqueue.model.errors import GoQueueError
from goqueue.model.topics import ListTopics, TopicView

if TYPE_CHECKING:
    from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDirsRequest
    from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest

_FOLDER = "logs"
"""Below the data folder. Where that is on the machine is no business of clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPartition:
    partition_index: int
    partition_size: int
    offset_lag: int = 0
    is_future_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopic:
    name: str
    partitions: tuple[DescribedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedFolder:
    error_code: ErrorCode = ErrorCode.none
    log_dir: str = _FOLDER
    topics: tuple[DescribedTopic, ...] = ()
    total_bytes: int = -1
    usable_bytes: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLogDirsReply(Reply):
    error_code: ErrorCode = ErrorCode.none
    results: tuple[DescribedFolder, ...] = ()


async def describe_log_dirs(context: Context, request: "DescribeLogDirsRequest") -> DescribeLogDirsReply:
    """How large the partitions are that this node holds, all or some of them."""
    try:
        context.broker.warden.demand([cluster_need(Operation.DESCRIBE)])
        views = await here(context.broker, list_topics, ListTopics())
    except GoQueueError as error:
        return DescribeLogDirsReply(error_code=kafka_code(error))
    wanted: dict[str, set[int]] | None = None
    if request.topics is not None:
        wanted = {str(one.topic): {*map(int, one.partitions)} for one in request.topics}
    me = context.broker.config.node_id
    topics = []
    for view in views:
        if wanted is None or view.name in wanted:
            numbers = None if wanted is None else wanted[view.name]
            if partitions := tuple(_held(view, numbers, me)):
                topics.append(DescribedTopic(name=view.name, partitions=partitions))
    return DescribeLogDirsReply(results=(DescribedFolder(topics=tuple(topics)),))


def _held(view: TopicView, numbers: set[int] | None, me: str) -> Iterator[DescribedPartition]:
    for partition in view.partitions:
        is_here = partition.record is None or me in partition.record.replicas
        if is_here and (numbers is None or partition.partition in numbers):
            yield DescribedPartition(partition_index=partition.partition, partition_size=partition.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPartition:
    partition_index: int
    error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTopic:
    topic_name: str
    partitions: tuple[RefusedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterLogDirsReply(Reply):
    results: tuple[RefusedTopic, ...]


async def alter_replica_log_dirs(
    context: Context, request: "AlterReplicaLogDirsRequest"
) -> AlterLogDirsReply:
    """There is no other folder to move a partition to."""
    code = ErrorCode.log_dir_not_found
    try:
        context.broker.warden.demand([cluster_need(Operation.ALTER)])
    except GoQueueError as error:
        code = kafka_code(error)
    return AlterLogDirsReply(
        results=tuple(
            RefusedTopic(
                topic_name=topic.name,
                partitions=tuple(
                    RefusedPartition(partition_index=number, error_code=code) for number in topic.partitions
                ),
            )
            for folder in request.dirs
            for topic in folder.topics
        )
    )
