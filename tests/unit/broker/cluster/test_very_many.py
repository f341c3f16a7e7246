"""A node with very many partitions: that it registers anew holds up nobody, its session least of all."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from goqueue.broker.topics.verbs import create_topic
from goqueue.core.cluster.members import placeable
from goqueue.core.cluster.values import node_key
from goqueue.model.cluster import NodeId
from goqueue.model.ids import TopicName
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.node.clock import SystemClock
from goqueue.testing.whole.cluster_node import ClusterNode
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.holds import HOLD_MS_MAX, longest_hold
from goqueue.testing.world.network import SimulatedNetwork
from goqueue.testing.world.store import SimulatedStore

A = NodeId("a")
TOPIC = TopicName("many")
PARTITIONS = 2_000


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.slow
def test_a_node_that_registers_anew_takes_its_partitions_in_bit_by_bit() -> None:
    async def story() -> None:
        store = SimulatedStore(Random(1))
        node = ClusterNode(
            A,
            BrokerConfig(node_id=A),
            disk=SimulatedDisk(Random(2)),
            clock=SystemClock(),
            store=store,
            network=SimulatedNetwork(Random(3)),
            chance=Random(4),
        )
        node.start()
        await until(lambda: node.is_ready and bool(placeable(node.broker.metadata)))
        await create_topic(node.broker, CreateTopic(name=TOPIC, partitions=PARTITIONS))
        partitions = node.broker.topics[TOPIC].partitions
        await until(lambda: all(partition.is_leader for partition in partitions))

        async def lose_the_session() -> None:
            key = node_key(A)
            before = node.membership.incarnation if node.membership is not None else None
            await store.end_session(key, store.peek(key)[key].revision)
            await until(lambda: node.membership is not None and node.membership.incarnation != before)
            await until(lambda: partitions[-1].is_leader)

        assert await longest_hold(lose_the_session, runs=4, enough_ms=HOLD_MS_MAX) < HOLD_MS_MAX
        await node.stop()

    asyncio.run(story())
