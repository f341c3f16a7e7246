"""Which copy of a partition is nearest to a reader that says in which rack it is.

The leader sends such a reader to a copy in its rack, if one is in sync: that has all that counts, and may
hear of the newest a moment later. A reader for whom there is none stays at the leader.
"""

from goqueue.broker.broker import Broker
from goqueue.broker.storage.readable import Readable
from goqueue.model.cluster import NodeId, NodeState


def nearer_copy(broker: Broker, partition: Readable, offset: int, rack: str) -> NodeId | None:
    """The node at which a reader from a rack is better off; None: the leader, which is here, serves it."""
    image = broker.metadata
    topic = image.topics.get(partition.source.topic)
    here = image.nodes.get(NodeId(broker.config.node_id))
    if topic is None or here is None or here.rack == rack:
        return None
    if not partition.log.start_offset <= offset <= partition.commit_mark:
        return None  # what is wrong with the offset is told by who leads
    record = image.record(topic, partition.source.partition)
    if record.leader != broker.config.node_id:
        return None  # a copy does not send its readers on
    for node in record.isr:
        other = image.nodes.get(node)
        if other is not None and other.rack == rack and other.state is NodeState.READY and other.kafka:
            return node
    return None
