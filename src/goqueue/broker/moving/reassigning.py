"""The verbs of reassignments: order, cancel, look at them; and what a leader knows of those that follow."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from goqueue.broker.broker import Broker
from goqueue.core.cluster import orders
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.cluster.moves import is_moving
from goqueue.core.cluster.reassignments import state_of
from goqueue.model.cluster import Move, MoveState, Order, OrderKind
from goqueue.model.errors import GoQueueError, NotSupported
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.moving import (
    CancelMove,
    CancelReassignment,
    CopiesView,
    DescribeCopies,
    DescribeReassignment,
    ListMoving,
    ListReassignments,
    MoveView,
    Moving,
    Reassign,
    ReassignmentView,
)


async def reassign(broker: Broker, command: Reassign) -> str:
    """Order partitions to be moved; returns the id under which that can be looked at."""
    admit_orders(broker)
    now_ms = broker.clock.wall_ms()
    return await broker.agreement.make(lambda: orders.reassign(broker.metadata, command, now_ms=now_ms))


async def cancel_reassignment(broker: Broker, command: CancelReassignment) -> None:
    """Call back what is not there yet; what has moved stays where it is now."""
    admit_orders(broker)
    order_id = command.reassignment_id
    await broker.agreement.make(lambda: orders.cancel_reassignment(broker.metadata, order_id))


async def cancel_move(broker: Broker, command: CancelMove) -> None:
    """Call one partition back."""
    admit_orders(broker)
    await broker.agreement.make(lambda: orders.cancel_move(broker.metadata, command.source))


async def describe_reassignment(broker: Broker, command: DescribeReassignment) -> ReassignmentView:
    order = orders.reassignment(broker.metadata, command.reassignment_id)
    return await _view(broker, command.reassignment_id, order)


async def list_reassignments(broker: Broker, command: ListReassignments) -> list[ReassignmentView]:
    """The newest first."""
    known = [
        (order.ordered_ms, order_id, order)
        for order_id, order in broker.metadata.orders.items()
        if order.kind is OrderKind.REASSIGN
    ]
    return [await _view(broker, order_id, order) for _, order_id, order in sorted(known, reverse=True)]


async def list_moving(broker: Broker, command: ListMoving) -> list[Moving]:
    image = broker.metadata
    pending = {
        (move.topic_id, move.partition): move
        for order in image.orders.values()
        for move in order.moves
        if move.state is MoveState.PENDING and not order.ended_ms
    }
    if command.sources is None:
        on_their_way = [place for place, record in image.records.items() if is_moving(record)]
        places = sorted({*pending, *on_their_way}, key=str)
    else:
        places = [
            (image.topics[source.topic].topic_id, source.partition)
            for source in command.sources
            if source.topic in image.topics
        ]
    found = []
    for place in places:
        record, name = image.records.get(place), image.names.get(place[0])
        if record is None or name is None:
            continue
        source = TopicPartition(name, place[1])
        if is_moving(record):
            found.append(Moving(source, record.replicas, record.adding, record.removing))
        elif place in pending:
            wanted, now = pending[place].replicas, record.replicas
            adding = tuple(node for node in wanted if node not in now)
            removing = tuple(node for node in now if node not in wanted)
            found.append(Moving(source, (*wanted, *removing), adding, removing))
    return found


async def describe_copies(broker: Broker, command: DescribeCopies) -> CopiesView:
    """How far followers are. Raises NotLeader where that is not known."""
    partition = broker.partition(command.source)
    partition.admit_write()
    ends, sent_bytes = ({}, {}) if partition.copies is None else partition.copies.progress()
    return CopiesView(partition.log.start_offset, partition.log.end_offset, ends, sent_bytes)


def admit_orders(broker: Broker) -> None:
    """Raises NotSupported where there is one node, which has everything."""
    if not broker.is_one_of_several:
        raise NotSupported("there is one node, which has everything: nothing can be moved")


async def _view(broker: Broker, order_id: str, order: Order) -> ReassignmentView:
    moves = await asyncio.gather(*(_told(broker, move) for move in _moves(broker.metadata, order.moves)))
    return ReassignmentView(
        reassignment_id=order_id,
        state=state_of(order),
        moves=moves,
        throttle_bytes_per_s=order.throttle_bytes_per_s,
        timeout_ms=order.timeout_ms,
        ordered_ms=order.ordered_ms,
        ended_ms=order.ended_ms,
    )


def _moves(image: Metadata, moves: Iterable[Move]) -> Iterable[MoveView]:
    for move in moves:
        name = image.names.get(move.topic_id, TopicName(str(move.topic_id)))
        yield MoveView(
            source=TopicPartition(name, move.partition),
            replicas=move.replicas,
            before=move.before,
            state=move.state,
            begun_ms=move.begun_ms,
            ended_ms=move.ended_ms,
            reason=move.reason,
        )


async def _told(broker: Broker, move: MoveView) -> MoveView:
    """With what the leader says of it; there are never many that move at a time."""
    if move.state is not MoveState.CATCHING_UP or broker.forwarding is None:
        return move
    try:
        copies = await broker.forwarding.run(describe_copies, DescribeCopies(source=move.source))
    except GoQueueError:
        return move  # it changes its leader, or that one is away: told without it
    return replace(move, copies=copies)
