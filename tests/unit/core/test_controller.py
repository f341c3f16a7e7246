"""What the controller decides when nodes come, go and drain, and when somebody orders something."""

from collections import Counter
from dataclasses import replace
from uuid import UUID

from goqueue.core.cluster import values
from goqueue.core.cluster.controller import (
    MOVES_MAX,
    PUTS_MAX,
    STEPS_MAX,
    WantedTopic,
    bundle,
    decide,
    forget_orphans,
    new_records,
    orphans_of,
)
from goqueue.core.cluster.reassignments import ENDED_KEPT
from goqueue.core.cluster.values import Topic, node_key, part_key, topic_key
from goqueue.model.cluster import ABSENT, Guard, Member, MoveState, NodeId, NodeState, Order, OrderKind
from goqueue.model.ids import TopicName
from goqueue.model.settings import TopicSettings
from tests.unit.core.cluster_world import A, B, C, ClusterWorld, D


def world_of(*nodes: NodeId) -> ClusterWorld:
    world = ClusterWorld()
    for node in nodes:
        world.register(node)
    return world


def test_nothing_is_decided_where_everything_is_as_it_should_be() -> None:
    world = world_of(A, B, C)
    world.add_topic("orders", world.led_by(A, A, B, C))

    assert world.decide() == 0


def test_when_a_leader_is_gone_the_first_replica_in_sync_that_is_ready_leads() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", world.led_by(A, A, B, C))
    world.change_state(B, NodeState.STARTING)
    world.leave(A)

    world.decide()

    record = world.record(orders)
    assert (record.leader, record.epoch, record.isr, record.elr) == (C, 5, (B, C), ())
    assert record.incarnation == world.image.incarnation(C)
    assert world.decide() == 0


def test_an_election_rests_on_the_seat_the_record_and_the_registration_of_who_is_elected() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", world.led_by(A, A, B, C))
    world.leave(A)

    (step,) = decide(world.image)

    keys = (values.CONTROLLER, part_key(orders.topic_id, 0), node_key(B))
    assert step.guards == tuple(map(world.image.guard, keys))
    assert all(isinstance(guard, Guard) and guard.revision for guard in step.guards)


def test_a_follower_that_is_gone_leaves_the_isr_and_the_epoch_stays() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", world.led_by(A, A, B, C))
    world.leave(C)

    world.decide()

    assert world.record(orders) == replace(world.led_by(A, A, B, C), isr=(A, B))


def test_who_leaves_too_few_behind_may_still_be_elected() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", replace(world.led_by(A, A, B, C), isr=(A, B)))
    world.leave(B)
    world.decide()
    assert (world.record(orders).isr, world.record(orders).elr) == ((A,), (B,))
    world.leave(A)
    world.decide()
    assert (world.record(orders).leader, world.record(orders).isr) == (None, (A,))

    world.register(B)
    world.decide()

    record = world.record(orders)
    assert (record.leader, record.isr, record.elr) == (B, (B,), (A,))
    assert record.epoch == 6


def test_the_last_in_sync_stays_in_the_isr_and_leads_when_it_is_back() -> None:
    world = world_of(A)
    orders = world.add_topic("orders", world.led_by(A, A))
    world.leave(A)
    world.decide()
    assert (world.record(orders).leader, world.record(orders).epoch, world.record(orders).isr) == (
        None,
        5,
        (A,),
    )
    assert world.decide() == 0

    world.register(A)
    world.decide()

    assert (world.record(orders).leader, world.record(orders).epoch) == (A, 6)


def test_a_node_that_has_registered_anew_leads_only_by_a_new_election() -> None:
    world = world_of(A)
    orders = world.add_topic("orders", world.led_by(A, A))
    world.register(A)

    world.decide()

    assert (world.record(orders).leader, world.record(orders).epoch) == (A, 5)
    assert world.record(orders).incarnation == world.image.incarnation(A)


def test_a_draining_node_hands_over_and_stays_in_sync() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", world.led_by(A, A, B, C), world.led_by(A, A))
    world.change_state(A, NodeState.DRAINING)

    world.decide()

    assert (world.record(orders).leader, world.record(orders).epoch, world.record(orders).isr) == (
        B,
        5,
        (A, B, C),
    )
    assert world.record(orders, 1) == world.led_by(A, A)
    assert world.decide() == 0


def test_a_leader_that_has_resigned_leads_again_only_if_there_is_nobody_else() -> None:
    world = world_of(A, B)
    resigned = replace(world.led_by(A, A, B), leader=None, resigned=A)
    orders = world.add_topic("orders", resigned, replace(resigned, isr=(A,)))

    world.decide()

    assert (world.record(orders).leader, world.record(orders).resigned) == (B, None)
    assert (world.record(orders, 1).leader, world.record(orders, 1).resigned) == (A, None)


def test_only_an_order_lets_a_replica_lead_that_may_lack_something() -> None:
    world = world_of(A, B)
    orders = world.add_topic("orders", replace(world.led_by(A, A, B), isr=(A,)))
    world.leave(A)
    world.decide()
    assert world.record(orders).leader is None

    world.order("1", Order(kind=OrderKind.UNCLEAN, topic_id=orders.topic_id, partition=0))
    world.decide()

    assert (world.record(orders).leader, world.record(orders).isr) == (B, (B,))
    assert world.image.orders == {}


def test_an_unclean_order_waits_for_a_replica_and_does_nothing_where_somebody_leads() -> None:
    world = world_of(A, B)
    orders = world.add_topic("orders", world.led_by(A, A), world.led_by(B, B))
    world.leave(A)
    for number in range(2):
        world.order(str(number), Order(kind=OrderKind.UNCLEAN, topic_id=orders.topic_id, partition=number))

    world.decide()

    assert list(world.image.orders) == ["0"]
    assert world.record(orders, 1) == world.led_by(B, B)


def test_preferred_leaders_lead_again_where_too_much_is_led_by_others() -> None:
    world = world_of(A, B)
    led = [world.led_by(A, A, B)] * 9 + [world.led_by(B, A, B)]
    orders = world.add_topic("orders", *led)
    assert world.decide(balances=True) == 0

    world.set_record(orders, world.led_by(B, A, B))
    assert world.decide() == 0
    world.decide(balances=True)

    assert {world.record(orders, number).leader for number in range(10)} == {A}
    assert world.record(orders, 9).epoch == 5


def test_internal_topics_get_their_copies_as_nodes_come() -> None:
    world = world_of(A)
    records = [world.led_by(A, A)] * (MOVES_MAX + 5)
    offsets = world.add_topic("__offsets", *records)
    orders = world.add_topic("orders", world.led_by(A, A))
    world.register(B)
    world.register(C)
    world.register(D)

    world.decide()

    assert len(world.record(offsets).replicas) == 3
    assert {A, *world.record(offsets).adding} == set(world.record(offsets).replicas)
    assert world.record(orders).replicas == (A,)
    moving = [number for number in range(len(records)) if world.record(offsets, number).adding]
    assert len(moving) == MOVES_MAX
    for number in moving:
        record = world.record(offsets, number)
        world.set_record(offsets, replace(record, isr=record.replicas), number)
    world.decide()
    world.decide()
    assert all(len(world.record(offsets, number).replicas) == 3 for number in range(len(records)))
    assert world.record(offsets).adding == ()


def test_a_partition_moves_once_all_who_come_are_in_sync() -> None:
    world = world_of(A, B, C, D)
    orders = world.add_topic("orders", world.led_by(A, A, B))
    world.reassign("1", orders, {0: (C, D)})

    world.decide(now_ms=7)

    record = world.record(orders)
    assert (record.replicas, record.adding, record.removing) == ((C, D, A, B), (C, D), (A, B))
    assert (record.leader, record.isr) == (A, (A, B))
    world.decide(now_ms=8)
    assert [(move.state, move.begun_ms) for move in world.image.orders["1"].moves] == [("catching_up", 8)]
    world.set_record(orders, replace(record, isr=(C, A, B)))
    assert world.decide() == 0

    world.set_record(orders, replace(record, isr=(C, D, A, B)))
    world.decide()

    record = world.record(orders)
    assert (record.replicas, record.isr, record.adding, record.removing) == ((C, D), (C, D), (), ())
    assert (record.leader, record.epoch) == (C, 5)
    world.decide(now_ms=9)
    order = world.image.orders["1"]
    assert (order.moves[0].state, order.moves[0].ended_ms, order.ended_ms) == ("completed", 9, 9)
    assert world.decide() == 0


def test_a_move_that_is_cancelled_leaves_the_partition_where_it_was() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", world.led_by(A, A, B))
    world.reassign("1", orders, {0: (C, B)})
    world.decide()

    world.order("2", Order(kind=OrderKind.CANCEL, topic_id=orders.topic_id, partition=0))
    world.decide()

    record = world.record(orders)
    assert (set(record.replicas), record.adding, record.removing) == ({A, B}, (), ())
    assert (record.leader, record.epoch, list(world.image.orders)) == (A, 4, ["1"])


def test_a_partition_that_is_called_back_has_its_replicas_in_the_order_of_before() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", world.led_by(A, A, B))
    world.reassign("1", orders, {0: (C, B)}, throttle_bytes_per_s=1_000)
    world.decide()
    world.decide()
    assert world.record(orders).throttle_bytes_per_s == 1_000

    world.order("1", replace(world.image.orders["1"], is_canceled=True))
    world.decide()
    world.decide()

    record = world.record(orders)
    assert (record.replicas, record.adding, record.removing) == ((A, B), (), ())
    assert record.throttle_bytes_per_s == 0
    order = world.image.orders["1"]
    assert [move.state for move in order.moves] == ["canceled"]
    assert world.decide() == 0


def test_a_move_that_takes_too_long_is_called_off() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", world.led_by(A, A, B), world.led_by(A, A, B))
    world.reassign("1", orders, {0: (C, B), 1: (B, A)}, timeout_ms=2_000)
    for _ in range(3):
        world.decide(now_ms=10_000)
    assert world.decide(now_ms=12_000) == 0

    for _ in range(4):
        world.decide(now_ms=12_001)

    order = world.image.orders["1"]
    assert [move.state for move in order.moves] == ["failed", "completed"]
    assert order.moves[0].reason == "it took longer than 2 s"
    assert (world.record(orders).replicas, world.record(orders, 1).replicas) == ((A, B), (B, A))
    assert order.ended_ms == 12_001


def test_a_move_of_a_topic_that_is_gone_has_failed() -> None:
    world = world_of(A, B)
    orders = world.add_topic("orders", world.led_by(A, A))
    world.reassign("1", orders, {0: (B,)})
    world.drop(part_key(orders.topic_id, 0))

    world.decide()

    assert [move.state for move in world.image.orders["1"].moves] == ["failed"]
    assert world.decide() == 0


def test_who_is_moved_elsewhere_meanwhile_is_not_fought_over() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", world.led_by(A, A))
    world.reassign("1", orders, {0: (B,)})
    world.decide()
    world.decide()

    world.reassign("2", orders, {0: (C,)})
    for _ in range(5):
        world.decide()

    record = world.record(orders)
    assert (record.replicas, record.adding) == ((C, A), (C,))
    states = {name: order.moves[0].state for name, order in world.image.orders.items()}
    assert states == {"1": "canceled", "2": "catching_up"}
    assert world.decide() == 0


def test_a_move_does_not_leave_fewer_in_sync_than_there_must_be() -> None:
    world = world_of(A, B, C, D)
    orders = world.add_topic("orders", replace(world.led_by(A, A, B, C), isr=(A, C)))
    world.reassign("1", orders, {0: (B, C, D)})
    world.decide()
    record = world.record(orders)
    assert record.adding == (D,)
    world.leave(C)
    world.decide()
    world.set_record(orders, replace(world.record(orders), isr=(D, A)))

    world.decide()

    assert set(world.record(orders).replicas) == {A, B, C, D}, "only D would have everything"
    world.set_record(orders, replace(world.record(orders), isr=(B, D, A)))
    world.decide()
    assert world.record(orders).replicas == (B, C, D)


def test_the_preferred_replica_leads_by_order_if_it_is_in_sync() -> None:
    world = world_of(A, B, C)
    behind = replace(world.led_by(B, A, B, C), isr=(B, C))
    orders = world.add_topic("orders", world.led_by(B, A, B, C), behind)
    for number in (0, 1):
        world.order(str(number), Order(kind=OrderKind.PREFERRED, topic_id=orders.topic_id, partition=number))

    world.decide()

    assert (world.record(orders).leader, world.record(orders).epoch) == (A, 5)
    assert world.record(orders, 1) == behind
    assert world.image.orders == {}


def test_reassignments_that_are_over_are_kept_for_a_while() -> None:
    world = world_of(A, B)
    orders = world.add_topic("orders", world.led_by(A, A))
    for number in range(ENDED_KEPT + 3):
        world.reassign(f"{number:02}", orders, {0: (A,)})
        world.decide(now_ms=number + 1)

    while world.decide(now_ms=99):
        pass

    assert list(world.image.orders) == [f"{number:02}" for number in range(3, ENDED_KEPT + 3)]


def test_a_move_does_not_end_with_nobody_who_has_everything() -> None:
    world = world_of(A, B)
    moving = replace(world.led_by(A, A, B), replicas=(B, A), isr=(A,), removing=(A,))
    orders = world.add_topic("orders", moving)

    world.decide()

    assert world.record(orders) == moving


def test_a_node_is_retired_when_all_it_held_has_moved() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", world.led_by(C, C, A), world.led_by(A, A, B))
    world.order("1", Order(kind=OrderKind.DECOMMISSION, node=C))
    world.decide()
    record = world.record(orders)
    assert (record.replicas, record.adding, record.removing) == ((A, B, C), (B,), (C,))
    assert world.record(orders, 1) == world.led_by(A, A, B)

    world.set_record(orders, replace(record, isr=(A, B, C)))
    world.decide()
    assert (world.record(orders).replicas, world.record(orders).leader) == ((A, B), A)
    world.decide()

    assert world.image.members[C].is_retired
    assert world.image.orders == {}


def test_orders_for_partitions_that_are_gone_are_dropped() -> None:
    world = world_of(A)
    world.order("1", Order(kind=OrderKind.CANCEL, topic_id=UUID(int=9), partition=0))
    world.order("2", Order(kind=OrderKind.DECOMMISSION, node=NodeId("unknown")))

    world.decide()

    assert world.image.orders == {}


def test_new_partitions_lie_on_nodes_that_are_ready_and_stay() -> None:
    world = world_of(A, B, C, D)
    world.change_state(C, NodeState.DRAINING)
    world.order("1", Order(kind=OrderKind.DECOMMISSION, node=D))
    topic = Topic(TopicName("orders"), UUID(int=5), 4, TopicSettings(), 0, replication=3)

    records = dict(new_records(world.image, topic, range(4)))

    assert all(set(record.replicas) == set(record.isr) == {A, B} for record in records.values())
    assert sorted(str(record.leader) for record in records.values()) == ["a", "a", "b", "b"]
    assert all(record.epoch == 1 for record in records.values())


def test_many_steps_are_made_in_few_changes_that_a_store_takes() -> None:
    world = world_of(A, B)
    world.add_topic("orders", *[world.led_by(A, A, B)] * 130)
    world.leave(A)

    changes = list(bundle(decide(world.image)))

    assert [len(change.puts) for change in changes] == [PUTS_MAX, PUTS_MAX, 10]
    assert all(len(change.puts) + len(change.guards) <= 128 for change in changes)


JOURNALS = WantedTopic(TopicName("__journals"), 50, TopicSettings())


def test_what_brokers_need_for_themselves_is_made_with_as_many_copies_as_can_be() -> None:
    for nodes, copies in (((A,), 1), ((A, B), 2), ((A, B, C, D), 3)):
        world = world_of(*nodes)

        (step,) = decide(world.image, wanted=(JOURNALS,), now_ms=7)
        world.make(step)

        topic = world.image.topics[JOURNALS.name]
        assert (topic.partitions, topic.replication, topic.created_ms) == (50, copies, 7)
        records = [world.image.record(topic, number) for number in range(50)]
        assert {len(record.replicas) for record in records} == {copies}
        assert {record.leader for record in records} == set(nodes)
        assert decide(world.image, wanted=(JOURNALS,)) == []


def test_it_is_not_made_where_there_is_nobody_to_hold_it_and_once_whoever_decides() -> None:
    assert decide(world_of().image, wanted=(JOURNALS,)) == []
    first, second = (decide(world_of(A).image, wanted=(JOURNALS,)) for _ in range(2))
    assert first == second


def test_nodes_that_have_joined_and_are_not_ready_yet_are_waited_for_until_it_is_late() -> None:
    world = world_of(A)
    for node in (A, B):
        world.image.members[node] = Member(folder_id=node)

    assert decide(world.image, wanted=(JOURNALS,)) == []
    assert len(decide(world.image, wanted=(JOURNALS,), balances=True)) == 1
    world.image.members[B] = Member(folder_id=B, is_retired=True)
    assert len(decide(world.image, wanted=(JOURNALS,))) == 1


def test_making_it_rests_on_the_seat_the_name_and_who_is_to_lead() -> None:
    world = world_of(A, B)

    (step,) = decide(world.image, wanted=(JOURNALS,))

    keys = {guard.key for guard in step.guards}
    assert {values.CONTROLLER, values.name_key(JOURNALS.name), node_key(A), node_key(B)} < keys
    assert len(step.puts) <= PUTS_MAX


def test_what_one_node_led_alone_is_led_by_all_when_others_have_come() -> None:
    world = world_of(A)
    (step,) = decide(world.image, wanted=(JOURNALS,))
    world.make(step)
    topic = world.image.topics[JOURNALS.name]
    for node in (B, C):
        world.register(node)

    while world.decide():
        for number in range(50):
            record = world.record(topic, number)
            if record.adding:  # the new ones have caught up
                world.set_record(topic, replace(record, isr=record.replicas), number)

    first = Counter(world.record(topic, number).replicas[0] for number in range(50))
    assert max(first.values()) - min(first.values()) <= 1
    assert {len(world.record(topic, number).replicas) for number in range(50)} == {3}


def test_very_many_elections_are_decided_on_in_turns() -> None:
    world = world_of(A, B)
    orders = world.add_topic("orders", *[world.led_by(A, A, B)] * (STEPS_MAX + 20))
    world.leave(A)

    assert [world.decide(), world.decide(), world.decide()] == [STEPS_MAX, 20, 0]

    assert {world.record(orders, number).leader for number in range(STEPS_MAX + 20)} == {B}


def test_only_so_many_partitions_move_at_a_time_by_order() -> None:
    world = world_of(A, B)
    count = MOVES_MAX + 3
    orders = world.add_topic("orders", *[world.led_by(A, A)] * count)
    world.reassign("1", orders, dict.fromkeys(range(count), (B,)))

    world.decide()
    world.decide()

    assert sum(bool(world.record(orders, number).adding) for number in range(count)) == MOVES_MAX
    waiting = [move for move in world.image.orders["1"].moves if move.state is MoveState.PENDING]
    assert len(waiting) == 3
    assert world.decide() == 0


def test_records_of_a_topic_that_was_never_made_are_dropped_the_first_partition_first() -> None:
    world = world_of(A)
    orders = world.add_topic("orders", world.led_by(A, A))
    nobody = UUID(int=77)
    for number in range(PUTS_MAX + 5):
        world.put(part_key(nobody, number), world.led_by(A, A))
    assert orphans_of(world.image) == {nobody}

    first, second = bundle(forget_orphans(world.image, [nobody]))
    assert first.drops[0] == part_key(nobody, 0)
    assert Guard(topic_key(nobody), ABSENT) in first.guards
    world.make(first)
    world.make(second)

    assert [place[0] for place in world.image.records] == [orders.topic_id]


def test_moves_to_a_node_that_is_away_do_not_hold_up_others() -> None:
    world = world_of(A, B, C)
    orders = world.add_topic("orders", *[world.led_by(A, A)] * (MOVES_MAX + 1))
    world.reassign("1", orders, dict.fromkeys(range(MOVES_MAX), (B,)))
    world.decide()
    world.decide()
    world.reassign("2", orders, {MOVES_MAX: (C,)})
    world.decide()
    assert not world.record(orders, MOVES_MAX).adding

    world.leave(B)
    world.decide()

    assert world.record(orders, MOVES_MAX).adding == (C,)
