"""Who leads instead: what a client hears that asked a node which does not lead, where the version has room.

It goes straight to the new leader then, and need not refresh its metadata first.
"""

from collections.abc import Iterable
from typing import NamedTuple

from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.handlers.cluster import Node, node_at
from goqueue.edge.kafka.wire import INT32, NO_TAGS, count, string, varint
from goqueue.model.ids import TopicPartition


class CurrentLeader(NamedTuple):
    node: Node
    epoch: int


def leader_now(context: Context, source: TopicPartition) -> CurrentLeader | None:
    """Who leads a partition, and where for this client; None when nobody is known to."""
    broker = context.broker
    image = broker.metadata
    topic = image.topics.get(source.topic)
    if topic is None or not broker.is_one_of_several or not 0 <= source.partition < topic.partitions:
        return None
    record = image.record(topic, source.partition)
    node = None if record.leader is None else image.nodes.get(record.leader)
    if record.leader is None or node is None or not node.kafka_at(context.listener):
        return None
    return CurrentLeader(node_at(record.leader, node, context.listener), record.epoch)


def leader_tags(tag: int, leader: CurrentLeader) -> bytes:
    """The tagged fields of a partition: its leader and nothing else."""
    return _tags(tag, INT32.pack(leader.node.node_id) + INT32.pack(leader.epoch) + NO_TAGS)


def endpoint_tags(leaders: Iterable[CurrentLeader]) -> bytes:
    """The tagged fields of a reply: where the leaders are that its partitions name."""
    nodes = {leader.node.node_id: leader.node for leader in leaders}
    if not nodes:
        return NO_TAGS
    packed = [count(len(nodes), flexible=True)]
    for node in nodes.values():
        host, rack = string(node.host, flexible=True), string(node.rack, flexible=True)
        packed += (INT32.pack(node.node_id), host, INT32.pack(node.port), rack, NO_TAGS)
    return _tags(0, b"".join(packed))


def _tags(tag: int, field: bytes) -> bytes:
    return varint(1) + varint(tag) + varint(len(field)) + field
