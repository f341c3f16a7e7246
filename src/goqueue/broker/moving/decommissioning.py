"""The verbs by which a node is emptied and retired."""

from goqueue.broker.broker import Broker
from goqueue.broker.moving.reassigning import admit_orders
from goqueue.core.cluster import orders
from goqueue.core.cluster.moves import is_moving
from goqueue.model.cluster import NodeId
from goqueue.model.errors import NodeNotFound
from goqueue.model.ids import TopicPartition
from goqueue.model.moving import CancelDecommission, Decommission, DecommissionView, DescribeDecommission


async def decommission(broker: Broker, command: Decommission) -> None:
    """Order that all a node holds is moved to others; then it is retired, and never comes back."""
    admit_orders(broker)
    now_ms = broker.clock.wall_ms()
    await broker.agreement.make(lambda: orders.decommission(broker.metadata, command, now_ms=now_ms))


async def cancel_decommission(broker: Broker, command: CancelDecommission) -> None:
    """Let a node stay. What moves just now arrives, and does not come back by itself."""
    admit_orders(broker)
    await broker.agreement.make(lambda: orders.cancel_decommission(broker.metadata, command.node))


async def describe_decommission(broker: Broker, command: DescribeDecommission) -> DecommissionView:
    image, node = broker.metadata, NodeId(command.node)
    member = image.members.get(node)
    if member is None:
        raise NodeNotFound(command.node)
    held = [(place, record) for place, record in image.records.items() if node in record.replicas]
    is_ordered = orders.DECOMMISSION + node in image.orders
    return DecommissionView(
        node=node,
        state="retired" if member.is_retired else "in_progress" if is_ordered else "none",
        holds=len(held),
        moving=sum(is_moving(record) for _, record in held),
        stuck=[
            TopicPartition(image.names[topic_id], number)
            for (topic_id, number), record in held
            if topic_id in image.names and record.isr == (node,) and node not in image.nodes
        ],
    )
