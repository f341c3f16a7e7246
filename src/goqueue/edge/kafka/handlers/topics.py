"""Topics come, grow and go: CreateTopics, CreatePartitions, DeleteTopics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from kio.schema.errors import ErrorCode

from goqueue.broker.access.needs import topic_need
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.broker.topics.verbs import add_partitions, create_topic, delete_topic, topic_by_id
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code, kafka_text
from goqueue.edge.kafka.handlers.configs import ConfigEntry, topic_entries
from goqueue.edge.kafka.handlers.reassignments import node_known_as
from goqueue.edge.kafka.once import done_to_each
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation
from goqueue.model.cluster import NodeId
from goqueue.model.errors import GoQueueError, InvalidAssignment, InvalidReplication, TopicNotFound
from goqueue.model.topics import AddPartitions, CreateTopic, DeleteTopic, FindTopic, TopicView

if TYPE_CHECKING:
    from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
    from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
    from kio.schema.delete_topics.v6.request import DeleteTopicsRequest

_BROKERS_DEFAULT = -1
_REPLICATION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    name: str
    topic_id: UUID | None = None
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[ConfigEntry, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicsReply(Reply):
    topics: tuple[CreatedTopic, ...]


async def create_topics(context: Context, request: "CreateTopicsRequest") -> CreateTopicsReply:
    """Create each topic asked for, or only look whether it could be created."""
    only_look = request.validate_only
    return CreateTopicsReply(
        topics=await done_to_each(
            context, request.topics, lambda topic: _create(context, topic, validate_only=only_look)
        )
    )


async def _create(context: Context, wanted: "CreatableTopic", *, validate_only: bool) -> CreatedTopic:
    try:
        command = _command(context, wanted, validate_only=validate_only)
        view = await at_home(context.broker, create_topic, command)
        may_see = context.broker.warden.lets(topic_need(Operation.DESCRIBE_CONFIGS, view.name))
        entries = () if validate_only or not may_see else topic_entries(context.broker, view.name)
    except GoQueueError as error:
        return CreatedTopic(name=wanted.name, error_code=kafka_code(error), error_message=kafka_text(error))
    return CreatedTopic(
        name=view.name,
        topic_id=None if validate_only else view.topic_id,
        num_partitions=len(view.partitions),
        replication_factor=_copies(context, view, command),
        configs=entries if may_see else None,
        topic_config_error_code=0 if may_see else ErrorCode.topic_authorization_failed.value,
    )


def _command(context: Context, wanted: "CreatableTopic", *, validate_only: bool) -> CreateTopic:
    partitions = None if wanted.num_partitions == _BROKERS_DEFAULT else int(wanted.num_partitions)
    replicas: list[list[NodeId]] = []
    if wanted.assignments:
        replicas = _placement(context, [assignment.broker_ids for assignment in wanted.assignments])
        partitions = len(wanted.assignments)
        numbers = [assignment.partition_index for assignment in wanted.assignments]
        if replicas and sorted(numbers) != list(range(partitions)):
            raise InvalidAssignment(f"partitions are numbered from 0 on without a gap, not {sorted(numbers)}")
        replicas = [nodes for _, nodes in sorted(zip(numbers, replicas, strict=False))]
    return CreateTopic(
        name=wanted.name,
        partitions=partitions,
        replication=_BROKERS_DEFAULT if wanted.assignments else int(wanted.replication_factor),
        settings={setting.name: setting.value for setting in wanted.configs},
        validate_only=validate_only,
        replicas=replicas,
    )


def _copies(context: Context, view: TopicView, command: CreateTopic) -> int:
    """How many copies a topic has got, or would get."""
    record = view.partitions[0].record
    if record is not None:
        return len(record.replicas)
    if command.replicas:
        return len(command.replicas[0])
    shared = context.broker.shared_topics
    return _REPLICATION if shared is None else shared.copies(command.replication)


def _placement(context: Context, replicas: Sequence[Sequence[int]]) -> list[list[NodeId]]:
    """The nodes that a client has chosen for each partition; one node alone has nothing to choose."""
    if context.broker.is_one_of_several:
        return [[node_known_as(context, int(number)) for number in numbers] for numbers in replicas]
    node = context.broker.node_number
    if any(tuple(nodes) != (node,) for nodes in replicas):
        raise InvalidReplication(f"replicas can be placed on node {node} only, one a partition")
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownTopic:
    name: str
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePartitionsReply(Reply):
    results: tuple[GrownTopic, ...]


async def create_partitions(context: Context, request: "CreatePartitionsRequest") -> CreatePartitionsReply:
    """Raise the number of a topic's partitions."""
    only_look = request.validate_only
    return CreatePartitionsReply(
        results=await done_to_each(
            context, request.topics, lambda topic: _grow(context, topic, validate_only=only_look)
        )
    )


async def _grow(context: Context, wanted: "CreatePartitionsTopic", *, validate_only: bool) -> GrownTopic:
    try:
        replicas = _placement(context, [assignment.broker_ids for assignment in wanted.assignments or ()])
        command = AddPartitions(
            name=wanted.name, total=int(wanted.count), validate_only=validate_only, replicas=replicas
        )
        await at_home(context.broker, add_partitions, command)
    except GoQueueError as error:
        return GrownTopic(name=wanted.name, error_code=kafka_code(error), error_message=kafka_text(error))
    return GrownTopic(name=wanted.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTopic:
    name: str | None
    topic_id: UUID | None = None
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicsReply(Reply):
    responses: tuple[DeletedTopic, ...]


async def delete_topics(context: Context, request: "DeleteTopicsRequest") -> DeleteTopicsReply:
    """Delete topics by name or, from version 6 on, by id."""
    names: tuple[str, ...] = getattr(request, "topic_names", ())
    wanted: list[tuple[str | None, UUID | None]] = [(name, None) for name in names]
    wanted += [(state.name, state.topic_id) for state in getattr(request, "topics", ())]
    return DeleteTopicsReply(
        responses=await done_to_each(context, wanted, lambda named: _delete(context, *named))
    )


async def _delete(context: Context, name: str | None, topic_id: UUID | None) -> DeletedTopic:
    try:
        if name is None and topic_id is not None:
            name = (await here(context.broker, topic_by_id, FindTopic(topic_id=topic_id))).name
        await at_home(context.broker, delete_topic, DeleteTopic(name=name or ""))
    except GoQueueError as error:
        is_unknown_id = name is None and isinstance(error, TopicNotFound)
        return DeletedTopic(
            name=name,
            topic_id=topic_id,
            error_code=ErrorCode.unknown_topic_id if is_unknown_id else kafka_code(error),
            error_message=kafka_text(error),
        )
    return DeletedTopic(name=name, topic_id=topic_id)
