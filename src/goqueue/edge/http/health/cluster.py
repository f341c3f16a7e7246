"""How the cluster is, as the node that is asked knows it. Served at the root only."""

from collections import Counter
from typing import Annotated

from litestar import Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter

from goqueue.broker.access.needs import cluster_need, topic_need
from goqueue.broker.broker import Broker
from goqueue.broker.slices import Slices
from goqueue.broker.topics.verbs import describe_copy
from goqueue.core.cluster.metadata import Metadata
from goqueue.edge.http.parts.openapi import RootOnly, errors
from goqueue.edge.http.transport.keeper import listener_in
from goqueue.model.access import Operation
from goqueue.model.cluster import NodeId, NodeState, PartitionRecord
from goqueue.model.ids import TopicPartition
from goqueue.model.topics import CopyView, DescribeCopy
from goqueue.wire.cluster import ClusterHealth, ClusterNode, ClusterState, LocalReplica, PartitionInfo

_TAGS = ["health"]
_DEAD = "dead"
_RETIRED = "retired"
_Asked = Request[object, object, State]


@get(
    "/cluster/state",
    operation_id="clusterState",
    summary="The nodes of the cluster, who decides, and how its partitions are",
    tags=_TAGS,
    operation_class=RootOnly,
)
async def cluster_state_route(broker: NamedDependency[Broker], request: _Asked) -> ClusterState:
    broker.warden.demand([cluster_need(Operation.DESCRIBE)])
    return await _state(broker, listener_in(request.scope))


@get(
    "/cluster/health",
    operation_id="clusterHealth",
    summary="Whether all nodes are there and every partition is led and copied",
    tags=_TAGS,
    operation_class=RootOnly,
)
async def cluster_health_route(broker: NamedDependency[Broker], request: _Asked) -> ClusterHealth:
    broker.warden.demand([cluster_need(Operation.DESCRIBE)])
    state = await _state(broker, listener_in(request.scope))
    nodes = [node for node in state.nodes if node.status != _RETIRED]
    healthy = sum(node.status == NodeState.READY for node in nodes)
    problems = _problems(broker, state, len(nodes) - healthy)
    status = "unhealthy" if state.offline_partitions else "degraded" if problems else "healthy"
    return ClusterHealth(
        node_id=state.node_id,
        status=status,
        role="controller" if state.controller_id == state.node_id else "member",
        controller_id=state.controller_id,
        cluster_size=len(nodes),
        healthy_nodes=healthy,
        under_replicated_partitions=state.under_replicated_partitions,
        offline_partitions=state.offline_partitions,
        problems=problems,
    )


def _problems(broker: Broker, state: ClusterState, absent: int) -> list[str]:
    """What somebody should look at, in words."""
    counts = broker.counters.cluster
    said = {
        f"{state.offline_partitions} partitions are led by nobody": state.offline_partitions,
        f"{state.under_replicated_partitions} partitions lack copies": state.under_replicated_partitions,
        f"{absent} nodes are not ready": absent,
        "nobody decides for the cluster": not state.controller_id,
        "etcd has not been heard of for longer than a session lasts": counts.is_store_away(),
    }
    return [text for text, is_so in said.items() if is_so]


@get(
    "/cluster/partition/{topic:str}/{partition:int}/info",
    operation_id="partitionInfo",
    summary="Who leads a partition, where its copies are, and how far the copy of this node is",
    tags=_TAGS,
    operation_class=RootOnly,
    responses=errors(400, 404),
)
async def partition_info_route(
    broker: NamedDependency[Broker],
    request: _Asked,
    topic: Annotated[str, PathParameter(description="The topic's name.")],
    partition: Annotated[int, PathParameter(description="The partition's number.")],
) -> PartitionInfo:
    broker.warden.demand([topic_need(Operation.DESCRIBE, topic)])
    image, here = broker.metadata, broker.config.node_id
    known = image.topic(topic)
    copy = describe_copy(broker, DescribeCopy(source=TopicPartition(known.name, partition)))
    record = image.record(known, partition)
    leader = None if record.leader is None else image.nodes.get(record.leader)
    several = broker.is_one_of_several
    return PartitionInfo(
        topic=topic,
        partition=partition,
        leader=(record.leader or "") if several else here,
        replicas=list(record.replicas) if several else [here],
        isr=list(record.isr) if several else [here],
        version=record.epoch,
        leader_address="" if leader is None else leader.http_at(listener_in(request.scope)),
        local_replica=None if copy is None else _local(copy),
    )


def _local(copy: CopyView) -> LocalReplica:
    role = "leader" if copy.is_leader else "follower"
    return LocalReplica(role, copy.end_offset, copy.commit_mark, copy.epoch)


async def _state(broker: Broker, listener: str) -> ClusterState:
    """Nodes are told of as whoever came through that listener reaches them over HTTP."""
    image, here = broker.metadata, broker.config.node_id
    leads: Counter[str] = Counter()
    holds: Counter[str] = Counter()
    lacking = offline = 0

    def count(record: PartitionRecord) -> None:
        nonlocal lacking, offline
        holds.update(record.replicas)
        # Copies that are still being made are none yet.
        lacking += len(record.isr) < len(record.replicas) - len(record.adding)
        if record.leader is None:
            offline += 1
        else:
            leads[record.leader] += 1

    if broker.is_one_of_several:
        records = [record for (topic_id, _), record in image.records.items() if topic_id in image.names]
        await Slices(broker.clock).each(records, count)
        partitions = len(records)
        controller = image.controller or ""
        nodes = [
            _node(image, node, listener, leads, holds) for node in sorted({*image.members, *image.nodes})
        ]
    else:
        # The one node there is has everything, and decides.
        partitions = leads[here] = holds[here] = sum(broker.topic_counts.values())
        controller = here
        status = NodeState.READY if broker.is_open else NodeState.DRAINING
        nodes = [ClusterNode(here, status, True, "", "", "", "", "", 0, leads[here], holds[here])]
    return ClusterState(
        cluster_id=broker.cluster_id,
        node_id=here,
        controller_id=controller,
        revision=image.revision,
        nodes=nodes,
        topics=len(broker.topic_counts),
        partitions=partitions,
        under_replicated_partitions=lacking,
        offline_partitions=offline,
    )


def _node(
    image: Metadata, node: NodeId, listener: str, leads: Counter[str], holds: Counter[str]
) -> ClusterNode:
    record = image.nodes.get(node)
    is_controller = image.controller == node
    member = image.members.get(node)
    if member is not None and member.is_retired:
        rack = member.rack
        return ClusterNode(node, _RETIRED, is_controller, "", "", "", rack, "", 0, leads[node], holds[node])
    if record is None:
        rack = image.members[node].rack
        return ClusterNode(node, _DEAD, is_controller, "", "", "", rack, "", 0, leads[node], holds[node])
    return ClusterNode(
        node,
        record.state,
        is_controller,
        record.http_at(listener),
        record.kafka,
        record.peer,
        record.rack,
        record.version,
        image.incarnation(node),
        leads[node],
        holds[node],
    )


ROUTES = [cluster_state_route, cluster_health_route, partition_info_route]
