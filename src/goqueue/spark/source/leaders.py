"""Which node a task reads from: who led its partition when the read was planned.

A plan grows old: a node that no longer leads passes frames on, and for one that is gone the client takes
another. So this makes a read quicker and never wrong.
"""

from collections.abc import Sequence
from contextlib import suppress

from goqueue.client.calls import admin, topics
from goqueue.client.connection import Client
from goqueue.model.errors import NotFound
from goqueue.spark.source.offsets import OffsetRange


def with_leaders(client: Client, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Ranges with the door of each partition's leader. Where one node is known there is nothing to ask."""
    if len(client.addresses) < 2:
        return list(ranges)
    doors = {node.id: node.client_address for node in client.carry(admin.cluster_state()).nodes}
    leaders: dict[tuple[str, int], str] = {}
    for topic in {wanted.topic for wanted in ranges}:
        with suppress(NotFound):  # its ranges say so themselves
            for place in client.carry(topics.partitions(topic)):
                leaders[topic, place.partition] = doors.get(place.leader, "")
    return [wanted._replace(leader=leaders.get((wanted.topic, wanted.partition), "")) for wanted in ranges]
