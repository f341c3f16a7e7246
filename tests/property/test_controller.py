"""Whatever nodes do and people order: what the controller decides is sound, and it comes to rest."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import NodeId, NodeState, Order, OrderKind, PartitionRecord
from tests.unit.core.cluster_world import A, B, C, ClusterWorld, D

NODES = [A, B, C, D]
ROUNDS_MAX = 6
actions = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["register", "leave", "drain", "decommission"]), st.sampled_from(NODES)),
        st.tuples(st.just("join"), st.sampled_from(NODES)),
        st.tuples(st.just("resign"), st.none()),
        st.tuples(st.sampled_from(["cancel", "unclean", "preferred", "call back"]), st.none()),
        st.tuples(st.just("move"), st.lists(st.sampled_from(NODES), min_size=1, max_size=3, unique=True)),
    ),
    max_size=12,
)


def is_sound(record: PartitionRecord) -> bool:
    replicas = set(record.replicas)
    return (
        len(replicas) == len(record.replicas)
        and bool(record.isr)
        and set(record.isr) | set(record.elr) | set(record.adding) | set(record.removing) <= replicas
        and not set(record.isr) & set(record.elr)
        and not set(record.adding) & set(record.removing)
        and (record.leader is None or record.leader in record.isr)
    )


def act(world: ClusterWorld, topic: Topic, number: int, action: tuple[str, object]) -> None:
    record, order = world.record(topic), f"{number:02}"
    match action:
        case ("register", str(node)):
            world.register(NodeId(node))
        case ("leave", str(node)) if node in world.image.nodes:
            world.leave(NodeId(node))
        case ("drain", str(node)) if node in world.image.nodes:
            world.change_state(NodeId(node), NodeState.DRAINING)
        case ("decommission", str(node)):
            world.order(order, Order(kind=OrderKind.DECOMMISSION, node=NodeId(node)))
        case ("join", str(node)) if node in world.image.nodes and node in record.replicas and record.leader:
            isr = tuple(known for known in record.replicas if known in {*record.isr, node})
            world.set_record(topic, replace(record, isr=isr, elr=()))
        case ("resign", _) if record.leader:
            world.set_record(topic, replace(record, leader=None, resigned=record.leader))
        case ("cancel" | "unclean" | "preferred" as kind, _):
            world.order(order, Order(kind=OrderKind(kind), topic_id=topic.topic_id, partition=0))
        case ("move", list(nodes)):
            wanted = tuple(map(NodeId, nodes))
            world.reassign(order, topic, {0: wanted})
        case ("call back", _):
            for known, given in tuple(world.image.orders.items()):
                world.order(known, replace(given, is_canceled=True))


@given(story=actions, replicas=st.integers(min_value=1, max_value=3), is_internal=st.booleans())
def test_what_is_decided_is_sound_and_comes_to_rest(
    story: list[tuple[str, object]], replicas: int, is_internal: bool
) -> None:
    world = ClusterWorld()
    for node in NODES[:3]:
        world.register(node)
    topic = world.add_topic("__offsets" if is_internal else "orders", world.led_by(A, *NODES[:replicas]))
    for number, action in enumerate(story):
        act(world, topic, number, action)
        for _ in range(ROUNDS_MAX):
            before = world.record(topic)
            if world.decide() == 0:
                break
            after = world.record(topic)
            assert is_sound(after), after
            assert after.epoch >= before.epoch
            if after.leader != before.leader and after.leader is not None:
                assert after.epoch > before.epoch, "another leader means another epoch"
            if set(after.isr) - set(before.isr):
                assert after.epoch > before.epoch, "only an election takes somebody in"
        else:
            raise AssertionError("it does not come to rest")
        _check_at_rest(world, world.record(topic))


def _check_at_rest(world: ClusterWorld, record: PartitionRecord) -> None:
    ready = {node for node, known in world.image.nodes.items() if known.state is NodeState.READY}
    if set(record.isr) & ready:
        assert record.leader in world.image.nodes, "somebody could lead"
        assert record.incarnation == world.image.incarnation(NodeId(record.leader or ""))
