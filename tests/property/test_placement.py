"""Placement for all inputs: distinct nodes, as many racks as can be, nobody with much more than others."""

from collections import Counter
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.cluster.placement import Placement
from goqueue.model.cluster import NodeId, PartitionRecord

racks_of_nodes = st.dictionaries(
    st.sampled_from([NodeId(f"n{number}") for number in range(9)]),
    st.sampled_from(["", "a", "b", "c"]),
    min_size=1,
)
topic_ids = st.integers(min_value=0, max_value=2**64).map(lambda number: UUID(int=number))
replications = st.integers(min_value=1, max_value=5)


def place_all(
    racks: dict[NodeId, str], topic_id: UUID, partitions: int, replication: int
) -> list[tuple[NodeId, ...]]:
    placement = Placement(racks)
    return [placement.place(topic_id, number, replication) for number in range(partitions)]


@given(racks=racks_of_nodes, topic_id=topic_ids, replication=replications)
def test_replicas_are_distinct_nodes_in_as_many_racks_as_can_be(
    racks: dict[NodeId, str], topic_id: UUID, replication: int
) -> None:
    for replicas in place_all(racks, topic_id, 7, replication):
        assert len(set(replicas)) == len(replicas) == min(replication, len(racks))
        assert len({racks[node] for node in replicas}) == min(replication, len(set(racks.values())))


@given(
    nodes=st.integers(min_value=1, max_value=9),
    topic_id=topic_ids,
    partitions=st.integers(min_value=1, max_value=40),
    replication=replications,
)
def test_in_one_rack_nobody_holds_or_leads_much_more_than_another(
    nodes: int, topic_id: UUID, partitions: int, replication: int
) -> None:
    racks = {NodeId(f"n{number}"): "" for number in range(nodes)}
    placed = place_all(racks, topic_id, partitions, replication)
    held = Counter(node for replicas in placed for node in replicas)
    led = Counter(replicas[0] for replicas in placed)
    assert max(held[node] for node in racks) - min(held[node] for node in racks) <= 1
    assert max(led[node] for node in racks) - min(led[node] for node in racks) <= 2


@given(racks=racks_of_nodes, topic_id=topic_ids, replication=replications)
def test_the_same_nodes_are_chosen_in_whichever_order_they_are_known(
    racks: dict[NodeId, str], topic_id: UUID, replication: int
) -> None:
    backwards = dict(reversed(racks.items()))
    assert place_all(racks, topic_id, 5, replication) == place_all(backwards, topic_id, 5, replication)


@given(racks=racks_of_nodes, topic_id=topic_ids, count=replications, data=st.data())
def test_further_replicas_lie_beside_those_that_are_there(
    racks: dict[NodeId, str], topic_id: UUID, count: int, data: st.DataObject
) -> None:
    beside = data.draw(st.lists(st.sampled_from(sorted(racks)), unique=True))
    chosen = Placement(racks).choose(topic_id, 0, count, beside)
    assert not set(chosen) & set(beside)
    assert len(set(chosen)) == len(chosen) == min(count, len(racks) - len(beside))
    new_racks = {racks[node] for node in racks if node not in beside} - {racks[node] for node in beside}
    assert len({racks[node] for node in chosen} & new_racks) == min(len(chosen), len(new_racks))


def test_a_node_without_replicas_gets_the_next_ones() -> None:
    a, b = NodeId("a"), NodeId("b")
    held = PartitionRecord(leader=a, epoch=1, replicas=(a,), isr=(a,))
    placement = Placement({a: "", b: ""}, {(UUID(int=5), number): held for number in range(2)})
    assert [placement.place(UUID(int=3), number, 1) for number in range(2)] == [(b,), (b,)]


def test_partitions_without_a_choice_are_spread_by_hash_and_not_all_on_one_node() -> None:
    racks = {NodeId(f"n{number}"): "" for number in range(5)}
    first = {Placement(racks).place(UUID(int=number), 0, 1) for number in range(40)}
    assert len(first) == 5


def test_where_racks_are_used_alike_the_node_with_less_is_chosen_whoever_was_there_before() -> None:
    a1, a2, b1, b2 = (NodeId(name) for name in ("a1", "a2", "b1", "b2"))
    loaded = {
        (UUID(int=2), number): PartitionRecord(leader=node, epoch=1, replicas=(node,), isr=(node,))
        for number, node in enumerate((a2, a2, b1))
    }
    placement = Placement({a1: "a", a2: "a", b1: "b", b2: "b"}, loaded)
    assert placement.choose(UUID(int=1), 0, 2, beside=(a1,)) == (b2, b1)
