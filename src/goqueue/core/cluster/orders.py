"""What may be ordered, decided on the image: a step that puts the order down, or the reason why not.

All of an order is looked at before any of it stands: what is refused leaves nothing behind.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from goqueue.core.cluster.elections import candidates
from goqueue.core.cluster.members import alive_nodes, placeable
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.cluster.moves import is_moving
from goqueue.core.cluster.placement import Placement
from goqueue.core.cluster.reassignments import ELSEWHERE
from goqueue.core.cluster.values import encode, order_key
from goqueue.model.cluster import Move, MoveState, NodeId, Order, OrderKind, PartitionRecord, Step
from goqueue.model.errors import (
    ElectionNotNeeded,
    Invalid,
    InvalidAssignment,
    NodeNotFound,
    NoEligibleLeader,
    PartitionNotFound,
    PreferredLeaderAway,
    ReassignmentInProgress,
    ReassignmentNotFound,
    ReassignmentOver,
)
from goqueue.model.ids import INTERNAL_PREFIX, TopicName, TopicPartition
from goqueue.model.moving import Decommission, Reassign, WantedMove, WantedSpread

MOVES_ORDERED_MAX = 1_000
"""So many partitions can be moved by one order, which is one value in the store."""
REASSIGNMENT = "reassign-"
DECOMMISSION = "decommission-"
ELECTION = "elect-"


def record_of(image: Metadata, source: TopicPartition) -> PartitionRecord:
    topic = image.topic(source.topic)
    if not 0 <= source.partition < topic.partitions:
        raise PartitionNotFound(*source)
    return image.record(topic, source.partition)


def reassign(image: Metadata, command: Reassign, *, now_ms: int) -> Step[str]:
    """Order partitions to be moved; the id of that."""
    wanted = [*command.moves, *(move for spread in command.spreads for move in spread_moves(image, spread))]
    if not wanted:
        raise Invalid("there is nothing to move: every partition is where it should be")
    if len(wanted) > MOVES_ORDERED_MAX:
        raise Invalid(f"one order moves {MOVES_ORDERED_MAX} partitions at most, not {len(wanted)}")
    for source, count in Counter(move.source for move in wanted).items():
        if count > 1:
            raise Invalid(f"{source} is named {count} times")
    moves = [_checked(image, move, keeps_copies=command.keeps_copies) for move in wanted]
    replaced = _replaced(image, wanted, now_ms=now_ms, may=command.replaces)
    order = Order(
        kind=OrderKind.REASSIGN,
        moves=tuple(moves),
        throttle_bytes_per_s=max(0, command.throttle_bytes_per_s),
        timeout_ms=command.timeout_ms,
        ordered_ms=now_ms,
    )
    numbers = [
        int(known.removeprefix(REASSIGNMENT)) for known in image.orders if known.startswith(REASSIGNMENT)
    ]
    order_id = f"{REASSIGNMENT}{max(numbers, default=0) + 1}"
    puts = {order_key(known): encode(given) for known, given in {**replaced, order_id: order}.items()}
    return Step(order_id, tuple(map(image.guard, puts)), puts)


def cancel_reassignment(image: Metadata, order_id: str) -> Step[None]:
    order = reassignment(image, order_id)
    if order.ended_ms:
        raise ReassignmentOver(f"{order_id} is over: there is nothing to cancel")
    return _put(image, order_id, replace(order, is_canceled=True))


def cancel_move(image: Metadata, source: TopicPartition) -> Step[None]:
    """Let one partition stay where it was."""
    record = record_of(image, source)
    topic_id = image.topic(source.topic).topic_id
    for order_id, order in _open_reassignments(image):
        for at, move in enumerate(order.moves):
            if (move.topic_id, move.partition) == (topic_id, source.partition) and not move.state.is_over:
                moves = (*order.moves[:at], replace(move, is_canceled=True), *order.moves[at + 1 :])
                return _put(image, order_id, replace(order, moves=moves))
    if not is_moving(record):
        raise ReassignmentNotFound(f"{source} is not being moved")
    order = Order(kind=OrderKind.CANCEL, topic_id=topic_id, partition=source.partition)
    return _put(image, f"cancel-{topic_id}-{source.partition}", order)


def reassignment(image: Metadata, order_id: str) -> Order:
    order = image.orders.get(order_id)
    if order is None or order.kind is not OrderKind.REASSIGN:
        raise ReassignmentNotFound(f"there is no reassignment {order_id}")
    return order


def decommission(image: Metadata, command: Decommission, *, now_ms: int) -> Step[None]:
    """Order a node to be emptied and retired."""
    node = NodeId(command.node)
    member = image.members.get(node)
    if member is None:
        raise NodeNotFound(command.node)
    if member.is_retired:
        raise InvalidAssignment(f"node {node} was retired already")
    stay = placeable(image).keys() - {node}
    if not stay:
        raise InvalidAssignment(f"no other node is ready: {node} cannot be emptied")
    for (topic_id, number), record in image.records.items():
        name = image.names.get(topic_id, TopicName(INTERNAL_PREFIX))
        is_own = name.startswith(INTERNAL_PREFIX)  # these have as many copies as there are nodes
        if node in record.replicas and not is_own and not command.allows_fewer_copies:
            others = {holder for holder in record.replicas if holder != node} | stay
            if len(others) < len(record.replicas):
                raise InvalidAssignment(
                    f"{name}/{number} has {len(record.replicas)} copies, and {len(others)} nodes would be "
                    "left to hold them; bring another node, move it to fewer, or allow fewer copies"
                )
    order = Order(
        kind=OrderKind.DECOMMISSION,
        node=node,
        throttle_bytes_per_s=max(0, command.throttle_bytes_per_s),
        ordered_ms=now_ms,
    )
    return _put(image, DECOMMISSION + node, order)


def cancel_decommission(image: Metadata, name: str) -> Step[None]:
    order_id = DECOMMISSION + name
    if order_id not in image.orders:
        raise ReassignmentNotFound(f"node {name} is not being decommissioned")
    return taken_back(image, order_id)


def taken_back(image: Metadata, order_id: str) -> Step[None]:
    """The step by which an order stands no more."""
    key = order_key(order_id)
    return Step(None, (image.guard(key),), {}, (key,))


def election(image: Metadata, source: TopicPartition, *, is_unclean: bool) -> Step[str]:
    """Order a leader for a partition; the id of that. Raises why there is nothing to elect, or nobody."""
    record, topic = record_of(image, source), image.topic(source.topic)
    nodes, preferred = alive_nodes(image), record.replicas[0]
    if is_unclean:
        if record.leader is not None:
            raise ElectionNotNeeded(*source, record.leader)
        if not any(node in nodes and nodes[node].is_ready for node in record.replicas):
            raise NoEligibleLeader(*source)
    elif record.leader == preferred:
        raise ElectionNotNeeded(*source, preferred)
    elif preferred not in candidates(record, nodes):
        raise PreferredLeaderAway(*source, preferred)
    kind = OrderKind.UNCLEAN if is_unclean else OrderKind.PREFERRED
    order_id = f"{ELECTION}{topic.topic_id}-{source.partition}"
    order = Order(kind=kind, topic_id=topic.topic_id, partition=source.partition)
    step = _put(image, order_id, order)
    return Step(order_id, step.guards, step.puts)


def spread_moves(image: Metadata, spread: WantedSpread) -> list[WantedMove]:
    """Where the partitions of a topic go so that each node has its share; what may stay, stays."""
    topic = image.topic(spread.topic)
    racks = placeable(image)
    nodes = spread.nodes or tuple(sorted(racks))
    _check_nodes(image, nodes, ())
    records = [image.record(topic, number) for number in range(topic.partitions)]
    copies = [spread.copies or len(record.replicas) for record in records]
    if max(copies) > len(nodes):
        raise InvalidAssignment(f"{len(nodes)} nodes cannot hold {max(copies)} copies of {topic.name}")
    share = -(-sum(copies) // len(nodes))
    placement = Placement({node: racks[node] for node in nodes})
    held: Counter[NodeId] = Counter()
    moves = []
    for number, (record, count) in enumerate(zip(records, copies, strict=True)):
        stay = [node for node in record.replicas if node in nodes and held[node] < share][:count]
        placement.note(stay)
        chosen = (*stay, *placement.choose(topic.topic_id, number, count - len(stay), stay))
        held.update(chosen)
        wanted = placement.led_first(topic.topic_id, number, chosen)
        if wanted != record.replicas:
            moves.append(WantedMove(TopicPartition(topic.name, number), wanted))
    return moves


def _checked(image: Metadata, wanted: WantedMove, *, keeps_copies: bool) -> Move:
    source, replicas, before = wanted
    record, topic = record_of(image, source), image.topic(source.topic)
    now = tuple(node for node in record.replicas if node not in record.adding)
    if before and set(before) != set(now):
        raise InvalidAssignment(f"{source} is on {', '.join(now)}, not on {', '.join(before)}")
    if keeps_copies and len(replicas) != len(now):
        raise InvalidAssignment(f"{source} has {len(now)} copies, and {len(replicas)} nodes are named")
    try:
        _check_nodes(image, replicas, record.replicas)
    except InvalidAssignment as error:
        raise InvalidAssignment(f"{source}: {error}") from error
    return Move(topic_id=topic.topic_id, partition=source.partition, replicas=replicas, before=now)


def check_placement(
    image: Metadata, replicas: Sequence[Sequence[NodeId]], *, partitions: int, copies: int
) -> None:
    """Refuse what new partitions cannot be placed on. Raises InvalidAssignment."""
    if len(replicas) != partitions:
        raise InvalidAssignment(f"{partitions} partitions are new, and nodes are named for {len(replicas)}")
    for nodes in replicas:
        _check_nodes(image, nodes, ())
        if len(nodes) != copies:
            raise InvalidAssignment(f"all partitions have {copies} copies, and {len(nodes)} nodes are named")


def _check_nodes(image: Metadata, nodes: Sequence[NodeId], held_by: Iterable[NodeId]) -> None:
    if not nodes:
        raise InvalidAssignment("a partition needs at least one node")
    for node, count in Counter(nodes).items():
        if count > 1:
            raise InvalidAssignment(f"node {node} is named {count} times")
    may = placeable(image)
    for node in nodes:
        member = image.members.get(node)
        if member is None and node not in image.nodes:
            raise InvalidAssignment(f"the cluster has no node {node}")
        if member is not None and member.is_retired:
            raise InvalidAssignment(f"node {node} was retired")
        if DECOMMISSION + node in image.orders:
            raise InvalidAssignment(f"node {node} is being decommissioned")
        if node not in may and node not in held_by:
            raise InvalidAssignment(f"node {node} is not ready")


def _replaced(image: Metadata, wanted: Iterable[WantedMove], *, now_ms: int, may: bool) -> dict[str, Order]:
    """Orders that others stand in the place of, as far as their partitions are named anew."""
    places = {
        (image.topic(move.source.topic).topic_id, move.source.partition): move.source for move in wanted
    }
    replaced = {}
    for order_id, order in _open_reassignments(image):
        named = [
            move
            for move in order.moves
            if not move.state.is_over and (move.topic_id, move.partition) in places
        ]
        if named and not may:
            raise ReassignmentInProgress(*places[named[0].topic_id, named[0].partition])
        if named:
            moves = tuple(
                replace(move, state=MoveState.CANCELED, ended_ms=now_ms, reason=ELSEWHERE)
                if move in named
                else move
                for move in order.moves
            )
            replaced[order_id] = replace(order, moves=moves)
    for place, source in places.items():
        if not may and is_moving(image.records[place]):
            raise ReassignmentInProgress(*source)
    return replaced


def _open_reassignments(image: Metadata) -> list[tuple[str, Order]]:
    return [
        (order_id, order)
        for order_id, order in sorted(image.orders.items())
        if order.kind is OrderKind.REASSIGN and not order.ended_ms
    ]


def _put(image: Metadata, order_id: str, order: Order) -> Step[None]:
    key = order_key(order_id)
    return Step(None, (image.guard(key),), {key: encode(order)})
