"""Which node a task reads from: who led its partition when the read was planned, or a copy that is nearer.

A plan grows old: a node that no longer leads passes frames on, so does one whose copy is behind or not in
sync, and for one that is gone the client takes another. So this makes a read quicker and never wrong.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from goqueue.client.calls import admin, topics
from goqueue.client.connection import Client
from goqueue.model.errors import NotFound
from goqueue.spark.source.offsets import OffsetRange
from goqueue.wire.cluster import ClusterNode
from goqueue.wire.topics import PartitionPlace

_READY = "ready"


def with_sources(client: Client, ranges: Sequence[OffsetRange], *, rack: str) -> list[OffsetRange]:
    """Ranges with the door of the node that each is read from: the leader, or a copy in a rack.

    Where one node is known there is nothing to ask.
    """
    if len(client.addresses) < 2:
        return list(ranges)
    nodes = {node.id: node for node in client.carry(admin.cluster_state()).nodes}
    doors: dict[tuple[str, int], str] = {}
    for topic in {wanted.topic for wanted in ranges}:
        with suppress(NotFound):  # its ranges say so themselves
            for place in client.carry(topics.partitions(topic)):
                source = nodes.get(_nearest(place, nodes, rack))
                doors[topic, place.partition] = "" if source is None else source.client_address
    return [wanted._replace(source=doors.get((wanted.topic, wanted.partition), "")) for wanted in ranges]


def _nearest(place: PartitionPlace, nodes: Mapping[str, ClusterNode], rack: str) -> str:
    """The leader if it is in the rack, or nobody in sync is; else a copy that is, by turns."""
    near = [node for node in place.isr if node in nodes and nodes[node].rack == rack]
    near = [node for node in near if nodes[node].status == _READY]
    if not rack or not near or place.leader in near:
        return place.leader
    return near[place.partition % len(near)]
