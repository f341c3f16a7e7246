"""How far a reassignment is, told from the records of its partitions: the next state of an order.

A record and the order are never changed together: what is begun or called off is seen in the record first,
and then noted in the order. So whatever happens in between, the next look comes to the same end.
"""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from goqueue.core.cluster.moves import is_moving, is_moving_to
from goqueue.model.cluster import Move, MoveState, Order, PartitionRecord

ENDED_KEPT = 20
"""So many reassignments that are over can be looked at; older ones are forgotten."""
GONE = "the topic was deleted"
ELSEWHERE = "it was moved elsewhere meanwhile"


def noted(order: Order, records: Mapping[tuple[UUID, int], PartitionRecord], *, now_ms: int) -> Order:
    """The order with its moves as the records show them."""
    moves = tuple(
        move
        if move.state.is_over
        else _noted(move, order, records.get((move.topic_id, move.partition)), now_ms)
        for move in order.moves
    )
    is_over = all(move.state.is_over for move in moves)
    return replace(order, moves=moves, ended_ms=order.ended_ms or (now_ms if is_over else 0))


def is_called_off(order: Order, move: Move) -> bool:
    """Whether a partition that is on its way is to go back."""
    return order.is_canceled or move.is_canceled or bool(move.reason)


def outdated_orders(orders: Mapping[str, Order]) -> list[str]:
    """Those that are over and beyond what is kept, by their ids."""
    ended = sorted((order.ended_ms, order_id) for order_id, order in orders.items() if order.ended_ms)
    return [order_id for _, order_id in ended[: max(0, len(ended) - ENDED_KEPT)]]


def state_of(order: Order) -> str:
    """In one word: pending, in_progress, completed, failed or canceled."""
    states = {move.state for move in order.moves}
    if not order.ended_ms:
        return "pending" if states <= {MoveState.PENDING} else "in_progress"
    for state in (MoveState.FAILED, MoveState.CANCELED):
        if state in states:
            return state
    return MoveState.COMPLETED


def _noted(move: Move, order: Order, record: PartitionRecord | None, now_ms: int) -> Move:
    if record is None:
        return replace(move, state=MoveState.FAILED, ended_ms=now_ms, reason=GONE)
    is_there = is_moving_to(record, move.replicas)
    if is_there and not is_moving(record) and record.replicas == move.replicas:
        return replace(move, state=MoveState.COMPLETED, ended_ms=now_ms, reason="")
    if is_there and is_moving(record):
        begun_ms = move.begun_ms or now_ms
        is_late = bool(order.timeout_ms) and now_ms - begun_ms > order.timeout_ms
        reason = f"it took longer than {order.timeout_ms // 1000} s" if is_late else move.reason
        return replace(move, state=MoveState.CATCHING_UP, begun_ms=begun_ms, reason=reason)
    if move.reason:
        return replace(move, state=MoveState.FAILED, ended_ms=now_ms)
    if order.is_canceled or move.is_canceled:
        return replace(move, state=MoveState.CANCELED, ended_ms=now_ms)
    if move.state is MoveState.CATCHING_UP:
        return replace(move, state=MoveState.CANCELED, ended_ms=now_ms, reason=ELSEWHERE)
    return move
