"""A cluster: its nodes, who decides, and how its partitions are."""

from typing import Annotated

from msgspec import Meta, Struct


class ClusterNode(Struct, frozen=True):
    """A node that belongs to the cluster, alive or not."""

    id: str
    status: Annotated[
        str, Meta(description="ready, starting, draining, retired; dead: nothing is heard of it.")
    ]
    is_controller: bool
    client_address: Annotated[str, Meta(description="Of its HTTP door.")]
    kafka_address: str
    peer_address: Annotated[str, Meta(description="Where other nodes reach it.")]
    rack: str
    version: str
    incarnation: Annotated[int, Meta(description="Another one each time that it registers.")]
    leads: Annotated[int, Meta(description="Partitions that it leads.")]
    holds: Annotated[int, Meta(description="Partitions of which it has a copy.")]


class ClusterState(Struct, frozen=True):
    """What this node knows of the cluster: others may be a moment ahead."""

    cluster_id: str
    node_id: Annotated[str, Meta(description="The one that answers.")]
    controller_id: Annotated[
        str, Meta(description="The node that decides for all; empty: there is none now.")
    ]
    revision: Annotated[int, Meta(description="How far this node has followed what is agreed.")]
    nodes: list[ClusterNode]
    topics: int
    partitions: Annotated[int, Meta(description="With those that several nodes need for themselves.")]
    under_replicated_partitions: Annotated[int, Meta(description="Some of whose copies are not in sync.")]
    offline_partitions: Annotated[int, Meta(description="That nobody leads.")]


class LocalReplica(Struct, frozen=True):
    """The copy of a partition that one node has."""

    role: Annotated[str, Meta(description="leader or follower.")]
    log_end_offset: Annotated[int, Meta(description="Behind the last message that is written there.")]
    high_watermark: Annotated[int, Meta(description="Before it all is safe and can be read, as known there.")]
    epoch: Annotated[int, Meta(description="Of the leadership that it knows.")]


class PartitionInfo(Struct, frozen=True, omit_defaults=True):
    """Who leads a partition and where its copies are; with that of the node which answers, if it has one."""

    topic: str
    partition: int
    leader: Annotated[str, Meta(description="Empty: nobody leads it now.")]
    replicas: list[str]
    isr: Annotated[list[str], Meta(description="Copies that have everything that counts.")]
    version: Annotated[int, Meta(description="The epoch: how often the leader was decided on.")]
    leader_address: Annotated[str, Meta(description="The leader's HTTP door; empty on one node.")] = ""
    local_replica: LocalReplica | None = None


class ClusterHealth(Struct, frozen=True):
    """The same in short."""

    node_id: str
    status: Annotated[
        str,
        Meta(
            description="healthy; degraded: nodes or copies are away; unhealthy: some partitions are not led."
        ),
    ]
    role: Annotated[str, Meta(description="controller or member: what the node that answers is.")]
    controller_id: str
    cluster_size: int
    healthy_nodes: int
    under_replicated_partitions: int
    offline_partitions: int
    problems: Annotated[list[str], Meta(description="What somebody should look at.")] = []
