"""Copies that somebody places by hand: on the nodes that were named, or refused with the reason."""

from collections.abc import Sequence

import pytest

from goqueue.broker.topics.verbs import add_partitions, create_topic
from goqueue.model.cluster import NodeId
from goqueue.model.errors import InvalidAssignment
from goqueue.model.topics import AddPartitions, CreateTopic
from tests.unit.broker.remote.several import ORDERS, Several, several

N0, N1, N2 = NodeId("n0"), NodeId("n1"), NodeId("n2")


def placed(world: Several) -> list[tuple[NodeId, ...]]:
    image = world.nodes[N0].broker.metadata
    topic = image.topic(ORDERS)
    return [image.record(topic, number).replicas for number in range(topic.partitions)]


def test_a_topic_is_made_and_grows_on_the_nodes_that_are_named() -> None:
    async def story(world: Several) -> None:
        wanted = [(N2, N0), (N1, N2), (N2, N1)]
        command = CreateTopic(name=ORDERS, partitions=3, replicas=wanted)
        await world.run(N0, create_topic, command)
        assert placed(world) == wanted
        assert [world.leader(ORDERS, number) for number in range(3)] == [N2, N1, N2]

        await world.run(N1, add_partitions, AddPartitions(name=ORDERS, total=4, replicas=[(N0, N1)]))

        await world.until(lambda: len(placed(world)) == 4)
        assert placed(world) == [*wanted, (N0, N1)]
        await world.run(N1, add_partitions, AddPartitions(name=ORDERS, total=5))
        await world.until(lambda: len(placed(world)) == 5)
        assert len(placed(world)[4]) == 2, "those that the cluster places have as many copies"

    several(story)


@pytest.mark.parametrize(
    ("replicas", "reason"),
    [
        ([(N0, N1)], "2 partitions are new"),
        ([(N0, N1), (N0,)], "all partitions have 2 copies"),
        ([(N0, N0), (N0, N1)], "node n0 is named 2 times"),
        ([(N0, NodeId("n9")), (N0, N1)], "no node n9"),
        ([(), ()], "at least one node"),
    ],
)
def test_what_cannot_be_placed_is_refused(replicas: Sequence[Sequence[NodeId]], reason: str) -> None:
    async def story(world: Several) -> None:
        for validate_only in (True, False):
            command = CreateTopic(name=ORDERS, partitions=2, replicas=replicas, validate_only=validate_only)
            with pytest.raises(InvalidAssignment, match=reason):
                await world.run(N0, create_topic, command)
        assert ORDERS not in world.nodes[N0].broker.metadata.topics
        await world.run(N0, create_topic, CreateTopic(name=ORDERS, partitions=1, replicas=[(N0, N1)]))
        for validate_only in (True, False):
            more = AddPartitions(name=ORDERS, total=3, replicas=replicas, validate_only=validate_only)
            with pytest.raises(InvalidAssignment, match=reason):
                await world.run(N0, add_partitions, more)
        assert placed(world) == [(N0, N1)]

    several(story)
