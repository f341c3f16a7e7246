"""Whole simulated brokers that are one cluster: told to move partitions, killed, and looked into."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.moving.reassigning import describe_reassignment, reassign
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.model.cluster import NodeId, PartitionRecord
from goqueue.model.commands import Placed, Publish
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.moving import DescribeReassignment, Reassign, WantedMove
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.testing.whole.cluster_node import ClusterNode
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.lives import LoopOfLives
from goqueue.testing.world.network import NetworkFaults, SimulatedNetwork
from goqueue.testing.world.store import SimulatedStore

ORDERS = TopicName("orders")
A, B, C, D = (NodeId(name) for name in "abcd")
T = TypeVar("T")
FOLDER = f"logs/{ORDERS}/0"


class Town:
    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.disks: dict[NodeId, SimulatedDisk] = {}
        self.nodes: dict[NodeId, ClusterNode] = {}
        self.racks: dict[NodeId, str] = {}
        self._lives = 0
        self.store: SimulatedStore
        self._network: SimulatedNetwork

    def open(self) -> None:
        self.store = SimulatedStore(Random(1))
        self._network = SimulatedNetwork(Random(2), NetworkFaults())

    async def start(self, *nodes: NodeId) -> None:
        for node in nodes:
            self._lives += 1
            self.nodes[node] = ClusterNode(
                node,
                BrokerConfig(node_id=node),
                disk=self.disks.setdefault(node, SimulatedDisk(Random(f"disk {node}"))),
                clock=self.clock,
                store=self.store,
                network=self._network,
                chance=Random(f"life {self._lives}"),
                rack=self.racks.get(node, ""),
            )
            self.nodes[node].start()
        await self.until(lambda: all(self.nodes[node].is_ready for node in nodes))

    def kill(self, node: NodeId, *, loses_power: bool = True) -> None:
        disk = self.nodes[node].disk
        self.disks[node] = disk.crash() if loses_power else disk.kill()
        self._network.crash(node, is_power_cut=loses_power)
        self.nodes[node].life.end()
        membership = self.nodes[node].membership
        if membership is not None:
            membership.session.end()  # type: ignore[attr-defined]

    def end_session(self, node: NodeId) -> None:
        """The store believes no more that a node is there, which lives, and registers anew."""
        membership = self.nodes[node].membership
        assert membership is not None
        membership.session.end()  # type: ignore[attr-defined]

    def cut_off(self, node: NodeId) -> None:
        """Nothing reaches a node, nor comes from it, until all is healed."""
        for other in self.nodes:
            if other != node:
                self._network.cut(node, other)
                self._network.cut(other, node)

    def heal(self) -> None:
        self._network.heal_all()

    def broker(self, node: NodeId) -> Broker:
        return self.nodes[node].broker

    def at(self, node: NodeId, work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
        return self.nodes[node].life.begin(work)

    async def create(self, node: NodeId, *, copies: int, name: TopicName = ORDERS) -> None:
        await self.at(
            node, create_topic(self.broker(node), CreateTopic(name=name, partitions=1, replication=copies))
        )
        alive = [known for known in self.nodes.values() if known.is_ready and not known.life.is_over]
        await self.until(lambda: all(name in known.broker.topics for known in alive))

    def record(self, node: NodeId, name: TopicName = ORDERS) -> PartitionRecord:
        image = self.broker(node).metadata
        return image.record(image.topic(name), 0)

    async def publish(self, values: list[bytes], name: TopicName = ORDERS) -> list[int]:
        """Have messages acknowledged by whoever leads, tried again as a client does; their offsets."""
        offsets = []
        for value in values:
            while True:
                alive = [known for known in self.nodes.values() if known.is_ready and not known.life.is_over]
                node = alive[0].node
                leader = self.record(node, name).leader
                if leader in self.nodes and not self.nodes[leader].life.is_over:
                    command = Publish(topic=name, messages=[Message(value=value, partition=0)])
                    with suppress(GoQueueError):
                        [placed] = await self.at(leader, publish(self.broker(leader), command))
                        assert isinstance(placed, Placed)
                        offsets.append(placed.offset)
                        break
                await asyncio.sleep(0.1)
        return offsets

    async def move(self, node: NodeId, *replicas: NodeId) -> str:
        """Order the partition to be moved, at a node; the id of that."""
        wanted = WantedMove(TopicPartition(ORDERS, 0), replicas)
        return await self.at(node, reassign(self.broker(node), Reassign(moves=[wanted])))

    async def moved(self, node: NodeId, *replicas: NodeId) -> None:
        """The same, and wait until it is there."""
        ordered = await self.move(node, *replicas)
        command = DescribeReassignment(reassignment_id=ordered)
        while True:
            view = await self.at(node, describe_reassignment(self.broker(node), command))
            if view.state == "completed":
                return
            await asyncio.sleep(0.05)

    def has_folder(self, node: NodeId, folder: str = FOLDER) -> bool:
        parent, _, name = folder.rpartition("/")
        return name in self.disks[node].list(parent)

    async def clock_moves(self) -> None:
        """Let a moment pass in the simulated world."""
        await asyncio.sleep(0.2)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not holds():
                for node in self.nodes.values():
                    if node.failure is not None and not node.life.is_over:
                        raise node.failure
                await asyncio.sleep(0.05)


def live(story: Callable[[Town], Coroutine[object, object, None]]) -> None:
    """Let a story happen in a simulated world."""
    town = Town()
    loop = LoopOfLives(town.clock)
    asyncio.set_event_loop(loop)

    async def in_time() -> None:
        town.open()
        async with asyncio.timeout(1_200):
            await story(town)

    try:
        loop.run(in_time())
    finally:
        for node in town.nodes.values():
            node.disk.is_dead = True
            node.life.end()
        asyncio.set_event_loop(None)
        loop.abandon()
