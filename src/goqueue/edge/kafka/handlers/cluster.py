"""Who is here and what is here: Metadata, DescribeCluster, FindCoordinator."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kio.schema.errors import ErrorCode

from goqueue.broker.access.needs import topic_need
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.topics.verbs import describe_topic, ensure_topic, list_topics, topic_by_id
from goqueue.broker.transactions.journal import TRANSACTIONS_TOPIC
from goqueue.core.cluster.numbers import NOBODY, node_number
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code
from goqueue.edge.kafka.once import done_to_each, each, once
from goqueue.edge.kafka.rights import OPERATIONS_NOT_ASKED, cluster_operations, topic_operations
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Need, Operation, ResourceKind
from goqueue.model.cluster import NodeId, NodeRecord, NodeState
from goqueue.model.errors import GoQueueError, NotAllowed, TopicNotFound
from goqueue.model.ids import TopicName
from goqueue.model.names import is_internal
from goqueue.model.topics import (
    DescribeTopic,
    EnsureTopic,
    FindTopic,
    ListTopics,
    PartitionView,
    TopicView,
)

if TYPE_CHECKING:
    from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
    from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
    from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic

_NAME_MAY_BE_NULL = 12
_BROKERS_ENDPOINT = 1
_OF_TRANSACTIONS = 1
"""The kind of name that FindCoordinator asks for; others are groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """This node, under the two names that Kafka has for its id."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False

    @property
    def broker_id(self) -> int:
        return self.node_id


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: tuple[int, ...]
    isr_nodes: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    error_code: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    name: str | None
    topic_id: UUID | None = None
    error_code: ErrorCode = ErrorCode.none
    is_internal: bool = False
    partitions: tuple[PartitionMetadata, ...] = ()
    topic_authorized_operations: int = OPERATIONS_NOT_ASKED


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataReply(Reply):
    brokers: tuple[Node, ...]
    cluster_id: str
    controller_id: int
    topics: tuple[TopicMetadata, ...]
    cluster_authorized_operations: int
    error_code: ErrorCode = ErrorCode.none


async def metadata(context: Context, request: "MetadataRequest") -> MetadataReply:
    """The node, and the topics asked for; a topic that is named may come into being by that."""
    broker = context.broker
    include_topic: bool = getattr(request, "include_topic_authorized_operations", False)
    include_cluster: bool = getattr(request, "include_cluster_authorized_operations", False)
    if request.topics is None or (request.__version__ == 0 and not request.topics):
        views = await here(broker, list_topics, ListTopics())
        topics = await done_to_each(
            context, views, lambda view: _known_topic(context, view, with_operations=include_topic)
        )
    else:
        named = once(request.topics, lambda wanted: getattr(wanted, "topic_id", None) or wanted.name)
        topics = await done_to_each(
            context,
            named,
            lambda wanted: _named_topic(context, request, wanted, with_operations=include_topic),
        )
    return MetadataReply(
        brokers=_nodes(context),
        cluster_id=broker.cluster_id,
        controller_id=controller_of(context),
        topics=topics,
        cluster_authorized_operations=cluster_operations(context, is_asked=include_cluster),
    )


async def _named_topic(
    context: Context, request: "MetadataRequest", wanted: "MetadataRequestTopic", *, with_operations: bool
) -> TopicMetadata:
    topic_id: UUID | None = getattr(wanted, "topic_id", None)
    try:
        if topic_id is not None:
            view = await here(context.broker, topic_by_id, FindTopic(topic_id=topic_id))
        elif getattr(request, "allow_auto_topic_creation", True):
            view = await _ensured(context.broker, wanted.name or "")
        else:
            view = await here(context.broker, describe_topic, DescribeTopic(name=wanted.name or ""))
    except TopicNotFound as error:
        if topic_id is None:
            return TopicMetadata(name=wanted.name or "", error_code=kafka_code(error))
        no_name = None if request.__version__ >= _NAME_MAY_BE_NULL else ""
        return TopicMetadata(name=no_name, topic_id=topic_id, error_code=ErrorCode.unknown_topic_id)
    except GoQueueError as error:
        return TopicMetadata(name=wanted.name or "", topic_id=topic_id, error_code=kafka_code(error))
    return await _known_topic(context, view, with_operations=with_operations)


async def _ensured(broker: Broker, name: str) -> TopicView:
    """A topic that is there, which every node knows, or one that is made now by whoever decides on that."""
    command = EnsureTopic(name=name)
    broker.warden.demand([topic_need(Operation.DESCRIBE, name)])
    if TopicName(name) in broker.metadata.topics or not broker.config.auto_create_topics:
        return await ensure_topic(broker, command)
    return await at_home(broker, ensure_topic, command)


async def _known_topic(context: Context, view: TopicView, *, with_operations: bool) -> TopicMetadata:
    place = partial(partition_at, context.broker.node_number, context.broker.metadata.nodes)
    partitions = await each(context, view.partitions, place)
    return TopicMetadata(
        name=view.name,
        topic_id=view.topic_id,
        is_internal=is_internal(view.name),
        partitions=partitions,
        topic_authorized_operations=topic_operations(context, view.name, is_asked=with_operations),
    )


def partition_at(here: int, alive: Container[NodeId], partition: PartitionView) -> PartitionMetadata:
    record = partition.record
    if record is None:
        return PartitionMetadata(
            partition_index=partition.partition,
            leader_id=here,
            leader_epoch=partition.leader_epoch,
            replica_nodes=(here,),
            isr_nodes=(here,),
        )
    return PartitionMetadata(
        partition_index=partition.partition,
        leader_id=NOBODY if record.leader is None else node_number(record.leader),
        leader_epoch=record.epoch,
        replica_nodes=_numbers(record.replicas),
        isr_nodes=_numbers(record.isr),
        offline_replicas=_numbers(node for node in record.replicas if node not in alive),
        error_code=ErrorCode.leader_not_available if record.leader is None else ErrorCode.none,
    )


def _numbers(nodes: Iterable[NodeId]) -> tuple[int, ...]:
    return tuple(map(node_number, nodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterReply(Reply):
    cluster_id: str
    controller_id: int
    brokers: tuple[Node, ...]
    cluster_authorized_operations: int
    endpoint_type: int = _BROKERS_ENDPOINT
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


async def describe_cluster(context: Context, request: "DescribeClusterRequest") -> DescribeClusterReply:
    """The nodes of the cluster, for those who do not ask for topics."""
    broker = context.broker
    include = request.include_cluster_authorized_operations
    asks_for_brokers = getattr(request, "endpoint_type", _BROKERS_ENDPOINT) == _BROKERS_ENDPOINT
    return DescribeClusterReply(
        cluster_id=broker.cluster_id,
        controller_id=controller_of(context),
        brokers=_nodes(context) if asks_for_brokers else (),
        cluster_authorized_operations=cluster_operations(context, is_asked=include),
        error_code=ErrorCode.none if asks_for_brokers else ErrorCode.mismatched_endpoint_type,
        error_message=None if asks_for_brokers else "this door lists brokers, not controllers",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    key: str
    node_id: int
    host: str
    port: int
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorReply(Reply):
    """Up to version 3 there is one key and its answer stands in the reply itself."""

    node_id: int
    host: str
    port: int
    coordinators: tuple[Coordinator, ...]
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


async def find_coordinator(context: Context, request: "FindCoordinatorRequest") -> FindCoordinatorReply:
    """The node that keeps a group or a transactional id: this one, unless there are several."""
    keys: tuple[str, ...] = getattr(request, "coordinator_keys", ())
    is_transactional = getattr(request, "key_type", 0) == _OF_TRANSACTIONS
    journals = TRANSACTIONS_TOPIC if is_transactional else OFFSETS_TOPIC
    only = _coordinator(context, journals, getattr(request, "key", ""))
    return FindCoordinatorReply(
        node_id=only.node_id,
        host=only.host,
        port=only.port,
        error_code=only.error_code,
        coordinators=await each(context, once(keys), lambda key: _coordinator(context, journals, key)),
    )


def _coordinator(context: Context, journals: TopicName, key: str) -> Coordinator:
    """By its name alone, so that it is the same for whoever asks wherever: what a node keeps stays there."""
    broker = context.broker
    kind = ResourceKind.TRANSACTIONAL_ID if journals == TRANSACTIONS_TOPIC else ResourceKind.GROUP
    try:
        broker.warden.demand([Need(Operation.DESCRIBE, kind, key)] if key else ())
    except NotAllowed as error:
        return Coordinator(key=key, node_id=NOBODY, host="", port=NOBODY, error_code=kafka_code(error))
    if not broker.is_one_of_several:
        return Coordinator(key=key, node_id=broker.node_number, host=context.host, port=context.port)
    topic = broker.metadata.topics.get(journals)
    leader = None if topic is None else broker.metadata.record(topic, journal_number(key)).leader
    for node in _nodes(context):
        if leader is not None and node.node_id == node_number(leader):
            return Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port)
    away = ErrorCode.coordinator_not_available
    return Coordinator(key=key, node_id=NOBODY, host="", port=NOBODY, error_code=away)


def _nodes(context: Context) -> tuple[Node, ...]:
    """Those that serve: this one alone, or all that have said that they do."""
    broker = context.broker
    if not broker.is_one_of_several:
        return (Node(node_id=broker.node_number, host=context.host, port=context.port),)
    return tuple(
        node_at(node, record, context.listener)
        for node, record in sorted(broker.metadata.nodes.items())
        if record.state is not NodeState.STARTING and record.kafka_at(context.listener)
    )


def node_at(node: NodeId, record: NodeRecord, listener: str) -> Node:
    """A node where it says that Kafka's clients of a listener reach it."""
    host, _, port = record.kafka_at(listener).rpartition(":")
    host = host.strip("[]")
    return Node(node_id=node_number(node), host=host, port=int(port), rack=record.rack or None)


def controller_of(context: Context) -> int:
    """The number of the node that decides."""
    broker = context.broker
    if not broker.is_one_of_several:
        return broker.node_number
    controller = broker.metadata.controller
    return NOBODY if controller is None else node_number(controller)
