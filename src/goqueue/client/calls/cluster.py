"""Where partitions are: move them, empty a node, have leaders elected."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from goqueue.client.call import Call, body_of, json_of, path
from goqueue.wire import moving as wire
from goqueue.wire.cluster import PartitionInfo
from goqueue.wire.moving import Done, Elections, NodeRetirement, ReassignmentOrdered

Reassignment = wire.Reassignment[datetime]
_LIST = wire.ReassignmentList[datetime]
Place = tuple[str, int]


def partition(topic: str, number: int) -> Call[PartitionInfo]:
    """Who leads a partition, where its copies are, and how far that of the node which answers is."""
    return Call(
        method="GET",
        path=path("cluster", "partition", topic, number) + "/info",
        decode=json_of(PartitionInfo),
    )


def reassign(
    moves: Mapping[Place, Sequence[str]] | None = None,
    *,
    spread: Mapping[str, Sequence[str]] | None = None,
    copies: int = 0,
    throttle_bytes_per_s: int | None = None,
    timeout_s: int | None = None,
) -> Call[ReassignmentOrdered]:
    """Move partitions to nodes, `{("orders", 0): ["node-2", "node-3"]}`; who should lead stands first.

    `spread`: topics whose partitions are to lie evenly on some nodes, or on all where none is named.
    """
    partitions = [
        wire.PartitionMove(topic=topic, partition=number, new_replicas=list(nodes))
        for (topic, number), nodes in (moves or {}).items()
    ]
    topics = [
        wire.TopicSpread(topic=topic, nodes=list(nodes), copies=copies)
        for topic, nodes in (spread or {}).items()
    ]
    return Call(
        method="POST",
        path="/admin/reassignment",
        decode=json_of(ReassignmentOrdered),
        body=body_of(
            partitions=partitions,
            topics=topics,
            throttle_bytes_per_sec=throttle_bytes_per_s,
            timeout_per_partition_sec=timeout_s,
        ),
        is_repeatable=False,
    )


def reassignments() -> Call[list[Reassignment]]:
    """Those that are under way and the last ones that are over, the newest first."""
    decode = json_of(_LIST)
    return Call(method="GET", path="/admin/reassignment", decode=lambda reply: decode(reply).reassignments)


def reassignment(reassignment_id: str) -> Call[Reassignment]:
    """How far one is."""
    return Call(
        method="GET", path=path("admin", "reassignment", reassignment_id), decode=json_of(Reassignment)
    )


def cancel_reassignment(reassignment_id: str) -> Call[Done]:
    """Call back what is not there yet."""
    return Call(
        method="DELETE",
        path=path("admin", "reassignment", reassignment_id),
        decode=json_of(Done),
        is_repeatable=False,
    )


def decommission(
    node: str, *, allow_fewer_copies: bool = False, throttle_bytes_per_s: int | None = None
) -> Call[Done]:
    """Move all that a node holds to others, and retire it."""
    return Call(
        method="POST",
        path=path("admin", "decommission", node),
        decode=json_of(Done),
        body=body_of(allow_fewer_copies=allow_fewer_copies, throttle_bytes_per_sec=throttle_bytes_per_s),
    )


def retirement(node: str) -> Call[NodeRetirement]:
    """How far a node is on its way out."""
    return Call(method="GET", path=path("admin", "decommission", node), decode=json_of(NodeRetirement))


def cancel_decommission(node: str) -> Call[Done]:
    """Let a node stay."""
    return Call(
        method="DELETE", path=path("admin", "decommission", node), decode=json_of(Done), is_repeatable=False
    )


def elect_leaders(partitions: Sequence[Place] | None = None, *, unclean: bool = False) -> Call[Elections]:
    """Have partitions led by who should lead them; None: all that are not.

    `unclean`: where nobody leads, let a replica lead that may lack messages; those are lost then.
    """
    places = (
        None
        if partitions is None
        else [{"topic": topic, "partition": number} for topic, number in partitions]
    )
    return Call(
        method="POST",
        path="/admin/elections",
        decode=json_of(Elections),
        body=body_of(partitions=places, unclean=unclean),
    )
