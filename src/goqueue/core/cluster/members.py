"""Which nodes there are, by the image: those that are alive, and those that may get something new."""

from goqueue.core.cluster.elections import Alive
from goqueue.core.cluster.metadata import Metadata
from goqueue.model.cluster import NodeId, NodeState, OrderKind


def alive_nodes(image: Metadata) -> dict[NodeId, Alive]:
    return {node: Alive(image.incarnation(node), record.state) for node, record in image.nodes.items()}


def placeable(image: Metadata) -> dict[NodeId, str]:
    """The racks of all nodes that may get something new."""
    leaving = {order.node for order in image.orders.values() if order.kind is OrderKind.DECOMMISSION}
    return {
        node: record.rack
        for node, record in image.nodes.items()
        if record.state is NodeState.READY and node not in leaving and not _is_retired(image, node)
    }


def _is_retired(image: Metadata, node: NodeId) -> bool:
    member = image.members.get(node)
    return member is not None and member.is_retired
