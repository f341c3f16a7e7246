"""What may be ordered of a cluster: all of it is looked at before any of it stands."""

from dataclasses import replace

import pytest

from goqueue.core.cluster import orders
from goqueue.core.cluster.values import Topic, member_key
from goqueue.model.cluster import Member, MoveState, NodeId, NodeState, Order, OrderKind
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
    TopicNotFound,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.moving import Decommission, Reassign, WantedMove, WantedSpread
from tests.unit.core.cluster_world import A, B, C, ClusterWorld, D

ORDERS = TopicName("orders")
FIRST, SECOND = TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1)


@pytest.fixture
def world() -> ClusterWorld:
    made = ClusterWorld()
    for node in (A, B, C, D):
        made.register(node)
    return made


@pytest.fixture
def topic(world: ClusterWorld) -> Topic:
    return world.add_topic(ORDERS, world.led_by(A, A, B), world.led_by(B, B, A))


def order(world: ClusterWorld, *moves: WantedMove, replaces: bool = False, now_ms: int = 5) -> str:
    step = orders.reassign(world.image, Reassign(moves=moves, replaces=replaces), now_ms=now_ms)
    world._make(step.puts, step.drops)
    return step.value


def test_an_order_says_where_each_partition_was_and_is_to_be(world: ClusterWorld, topic: Topic) -> None:
    first = order(world, WantedMove(FIRST, (C, D), (B, A)))
    second = order(world, WantedMove(SECOND, (C,)))

    assert (first, second) == ("reassign-1", "reassign-2")
    [move] = world.image.orders[first].moves
    assert (move.topic_id, move.partition, move.replicas, move.before) == (topic.topic_id, 0, (C, D), (A, B))
    assert world.image.orders[first].ordered_ms == 5


@pytest.mark.parametrize(
    ("replicas", "problem"),
    [
        ((), "at least one node"),
        ((A, NodeId("e")), "no node e"),
        ((A, A), "named 2 times"),
        ((A, C), "node c is not ready"),
        ((A, D), "node d is being decommissioned"),
    ],
)
def test_nodes_that_cannot_hold_a_partition_are_refused_by_name(
    world: ClusterWorld, topic: Topic, replicas: tuple[NodeId, ...], problem: str
) -> None:
    world.change_state(C, NodeState.DRAINING)
    world.order(orders.DECOMMISSION + D, Order(kind=OrderKind.DECOMMISSION, node=D))

    with pytest.raises(InvalidAssignment, match=problem):
        order(world, WantedMove(FIRST, replicas))

    assert list(world.image.orders) == [orders.DECOMMISSION + D], "nothing is half done"


def test_a_retired_node_is_no_place(world: ClusterWorld, topic: Topic) -> None:
    world.put(member_key(D), Member(folder_id="f", is_retired=True))

    with pytest.raises(InvalidAssignment, match="was retired"):
        order(world, WantedMove(FIRST, (D,)))


def test_a_node_that_is_away_may_keep_what_it_holds(world: ClusterWorld, topic: Topic) -> None:
    world.leave(B)

    assert order(world, WantedMove(FIRST, (C, B)))


def test_one_bad_partition_refuses_the_whole_order(world: ClusterWorld, topic: Topic) -> None:
    good = WantedMove(FIRST, (C,))
    for bad, problem in [
        (WantedMove(TopicPartition(ORDERS, 2), (C,)), PartitionNotFound),
        (WantedMove(TopicPartition(TopicName("none"), 0), (C,)), TopicNotFound),
        (WantedMove(SECOND, (C,), before=(C, D)), InvalidAssignment),
        (good, Invalid),
    ]:
        with pytest.raises(problem):
            order(world, good, bad)
    with pytest.raises(Invalid, match="nothing to move"):
        order(world)

    assert world.image.orders == {}


def test_what_moves_already_is_refused_or_taken_over(world: ClusterWorld, topic: Topic) -> None:
    first = order(world, WantedMove(FIRST, (C, D)), WantedMove(SECOND, (C, D)))
    world.decide()
    world.decide()

    with pytest.raises(ReassignmentInProgress):
        order(world, WantedMove(FIRST, (A, C)))
    second = order(world, WantedMove(FIRST, (A, C)), replaces=True, now_ms=9)
    for _ in range(3):
        world.decide()

    states = [move.state for move in world.image.orders[first].moves]
    assert states == [MoveState.CANCELED, MoveState.CATCHING_UP]
    assert world.image.orders[second].moves[0].state is MoveState.CATCHING_UP
    assert set(world.record(topic).replicas) == {A, B, C}


def test_the_number_of_copies_stays_where_that_is_asked_for(world: ClusterWorld, topic: Topic) -> None:
    command = Reassign(moves=[WantedMove(FIRST, (C,))], keeps_copies=True)

    with pytest.raises(InvalidAssignment, match="has 2 copies, and 1 nodes"):
        orders.reassign(world.image, command, now_ms=0)


def test_one_partition_of_an_order_is_called_back_alone(world: ClusterWorld, topic: Topic) -> None:
    name = order(world, WantedMove(FIRST, (C, D)), WantedMove(SECOND, (C, D)))
    world.decide()
    world.decide()

    world._make(orders.cancel_move(world.image, FIRST).puts, ())
    for _ in range(3):
        world.decide()

    states = [move.state for move in world.image.orders[name].moves]
    assert states == [MoveState.CANCELED, MoveState.CATCHING_UP]
    assert world.record(topic).replicas == (A, B)
    with pytest.raises(ReassignmentNotFound):
        orders.cancel_move(world.image, FIRST)


def test_what_moves_by_no_order_is_called_back_too(world: ClusterWorld, topic: Topic) -> None:
    world.set_record(topic, replace(world.led_by(A, C, A, B), isr=(A, B), adding=(C,)))

    world._make(orders.cancel_move(world.image, FIRST).puts, ())
    world.decide()

    assert set(world.record(topic).replicas) == {A, B}
    assert world.image.orders == {}


def test_an_order_that_is_over_or_unknown_cannot_be_called_back(world: ClusterWorld, topic: Topic) -> None:
    name = order(world, WantedMove(FIRST, (A, B)))
    world.decide(now_ms=1)

    with pytest.raises(ReassignmentOver):
        orders.cancel_reassignment(world.image, name)
    with pytest.raises(ReassignmentNotFound):
        orders.cancel_reassignment(world.image, "reassign-9")


def test_a_topic_is_spread_with_as_little_moved_as_may_be(world: ClusterWorld) -> None:
    topic = world.add_topic(ORDERS, *[world.led_by(A, A, B)] * 4, *[world.led_by(B, B, A)] * 4)

    moves = orders.spread_moves(world.image, WantedSpread(ORDERS))

    wanted = {move.source.partition: move.replicas for move in moves}
    after = [wanted.get(number, world.record(topic, number).replicas) for number in range(8)]
    held = {node: sum(node in replicas for replicas in after) for node in (A, B, C, D)}
    assert held == {A: 4, B: 4, C: 4, D: 4}
    assert all(len(set(replicas)) == 2 for replicas in after)
    assert {node: sum(replicas[0] == node for replicas in after) for node in (A, B, C, D)}.keys() >= {C, D}


def test_a_topic_is_spread_over_the_nodes_that_were_named(world: ClusterWorld, topic: Topic) -> None:
    moves = orders.spread_moves(world.image, WantedSpread(ORDERS, (C, D), 1))

    assert sorted(move.replicas for move in moves) == [(C,), (D,)]
    with pytest.raises(InvalidAssignment, match="2 nodes cannot hold 3 copies"):
        orders.spread_moves(world.image, WantedSpread(ORDERS, (C, D), 3))


def test_a_node_is_not_emptied_where_copies_would_have_no_place(world: ClusterWorld) -> None:
    world.leave(D)
    world.leave(C)
    world.add_topic(ORDERS, world.led_by(A, A, B))
    for node, problem in [(B, InvalidAssignment), (NodeId("e"), NodeNotFound)]:
        with pytest.raises(problem):
            orders.decommission(world.image, Decommission(node=node), now_ms=0)

    fewer = Decommission(node=B, allows_fewer_copies=True)
    assert orders.decommission(world.image, fewer, now_ms=0).puts
    world.leave(A)
    with pytest.raises(InvalidAssignment, match="no other node is ready"):
        orders.decommission(world.image, fewer, now_ms=0)


def test_a_decommission_can_be_taken_back(world: ClusterWorld, topic: Topic) -> None:
    world._make(orders.decommission(world.image, Decommission(node=B), now_ms=0).puts, ())

    world._make({}, orders.cancel_decommission(world.image, B).drops)

    assert world.image.orders == {}
    with pytest.raises(ReassignmentNotFound):
        orders.cancel_decommission(world.image, B)


def test_an_election_is_ordered_only_where_it_can_come_to_something(world: ClusterWorld) -> None:
    behind = replace(world.led_by(B, A, B), isr=(B,))
    dead = replace(world.led_by(A, C), leader=None)
    world.add_topic(ORDERS, world.led_by(A, A, B), behind, dead)
    world.leave(C)

    with pytest.raises(ElectionNotNeeded):
        orders.election(world.image, FIRST, is_unclean=False)
    with pytest.raises(PreferredLeaderAway):
        orders.election(world.image, SECOND, is_unclean=False)
    with pytest.raises(ElectionNotNeeded):
        orders.election(world.image, FIRST, is_unclean=True)
    with pytest.raises(NoEligibleLeader):
        orders.election(world.image, TopicPartition(ORDERS, 2), is_unclean=True)
