"""What nodes tell of their cluster in numbers."""

from goqueue.broker.measures.cluster import CLUSTER
from goqueue.broker.measures.view import View
from goqueue.model.cluster import NodeId
from tests.unit.broker.moving.town import ORDERS, A, B, C, Town, live

PREFIX = "goqueue_cluster_"


async def told(town: Town, node: NodeId) -> dict[str, dict[tuple[str, ...], float]]:
    view = await town.at(node, View(town.broker(node)).look())
    return {family.name.removeprefix(PREFIX): dict(family.read(view)) for family in CLUSTER}  # type: ignore[arg-type]


def test_nodes_leaders_and_copies_are_counted() -> None:
    async def story(town: Town) -> None:
        await town.start(A, B, C)
        await town.create(A, copies=3)
        await town.publish([b"x" * 1000] * 5)
        leader = town.record(A).leader
        assert leader is not None
        settled = {"under_replicated_partitions": 0, "offline_partitions": 0, "reassigning_partitions": 0}
        while {name: (await told(town, A))[name][()] for name in settled} != settled:
            await town.clock_moves()

        tells = {node: await told(town, node) for node in (A, B, C)}

        for numbers in tells.values():
            assert numbers["nodes_total"][()] == numbers["nodes_healthy"][()] == 3
            assert numbers["isr_size"][ORDERS,] == 3
            assert numbers["under_min_isr_partitions"][()] == 0
        assert sum(numbers["is_controller"][()] for numbers in tells.values()) == 1
        assert sum(numbers["controller_elections_total"][()] for numbers in tells.values()) == 1
        assert tells[leader]["leader_elections_total"][ORDERS, "first"] == 1
        assert tells[leader]["bytes_replicated_total"][ORDERS,] > 2 * 5 * 1000
        assert {lag for (topic, _), lag in tells[leader]["replication_lag"].items() if topic == ORDERS} == {0}

    live(story)


def test_a_node_that_dies_is_seen_in_the_numbers_of_the_others() -> None:
    async def story(town: Town) -> None:
        await town.start(A, B, C)
        await town.create(A, copies=2)
        await town.publish([b"first"])
        leader, follower = town.record(A).replicas
        [free] = {A, B, C} - {leader, follower}
        town.kill(leader)
        await town.until(lambda: town.record(free).leader == follower)

        numbers = await told(town, follower)

        assert (numbers["nodes_total"][()], numbers["nodes_healthy"][()]) == (3, 2)
        assert numbers["node_state"][leader, "dead"] == 1
        assert numbers["node_state"][follower, "healthy"] == 1
        assert numbers["under_replicated_partitions"][()] > 0
        assert numbers["preferred_leader_imbalance"][()] > 0
        assert numbers["leader_elections_total"][ORDERS, "failover"] == 1
        assert numbers["unclean_leader_elections_total"][()] == 0
        before = numbers["isr_expands_total"].get((ORDERS,), 0)
        await town.start(leader)
        await town.until(lambda: len(town.record(free).isr) == 2)
        assert (await told(town, follower))["isr_expands_total"][ORDERS,] == before + 1

    live(story)
