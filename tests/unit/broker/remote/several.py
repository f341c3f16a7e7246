"""Several simulated nodes that are well, for stories about what one of them does with what others hold."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from random import Random
from typing import Any, TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.queue.poll import poll
from goqueue.broker.queue.settle import settle
from goqueue.broker.remote.partition import RemotePartition
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.transactions.verbs import end_transaction
from goqueue.broker.write.publish import publish
from goqueue.model.cluster import NodeId
from goqueue.model.commands import Placed, Publish
from goqueue.model.delivery import Action, Poll, Receipt, Settle, SettleOutcome
from goqueue.model.errors import TransactionBusy
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.groups import Sharing
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.model.transaction_commands import EndTransaction
from goqueue.model.transactions import Marker, ProducerEpoch
from goqueue.testing.whole.cluster_node import SESSION_MS, ClusterNode
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.lives import LoopOfLives
from goqueue.testing.world.network import NetworkFaults, SimulatedNetwork
from goqueue.testing.world.store import SimulatedStore, StoreFaults

T = TypeVar("T")
ORDERS = TopicName("orders")
GROUP = "workers"
START_S = ANSWER_S = 60
AGAIN_S = 0.05


class Several:
    def __init__(self, count: int, clock: SimulatedClock) -> None:
        chance = Random(7)
        self.clock = clock
        self.store = SimulatedStore(chance, StoreFaults())
        self.network = SimulatedNetwork(chance, NetworkFaults())
        self.nodes: dict[NodeId, ClusterNode] = {}
        self._disks: dict[NodeId, SimulatedDisk] = {}
        self._lives = 0
        for number in range(count):
            self.start(NodeId(f"n{number}"))

    def start(self, name: NodeId) -> None:
        self._lives += 1
        self.nodes[name] = ClusterNode(
            name,
            BrokerConfig(node_id=name),
            disk=self._disks.setdefault(name, SimulatedDisk(Random(f"disk {name}"))),
            clock=self.clock,
            store=self.store,
            network=self.network,
            chance=Random(f"node {self._lives}"),
        )
        self.nodes[name].start()

    def kill(self, name: NodeId) -> None:
        node = self.nodes.pop(name)
        self._disks[name] = node.disk.kill()
        self.network.crash(name, is_power_cut=False)
        node.life.end()
        assert node.membership is not None
        session = node.membership.session
        asyncio.get_running_loop().call_later(SESSION_MS / 1_000, session.end)  # type: ignore[attr-defined]

    async def until(self, holds: Callable[[], bool], wait_s: float = START_S) -> None:
        deadline_s = asyncio.get_running_loop().time() + wait_s
        while not holds():
            assert asyncio.get_running_loop().time() < deadline_s
            await asyncio.sleep(0.01)

    async def run(self, name: NodeId, verb: Callable[[Broker, Any], Awaitable[T]], command: Any) -> T:
        """What a client hears that asks a node."""
        node = self.nodes[name]

        async def asked() -> T:
            return await at_home(node.broker, verb, command)

        return await asyncio.wait_for(node.life.begin(asked()), ANSWER_S)

    def begin(self, name: NodeId, work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
        return self.nodes[name].life.begin(work)

    # Topics, and who has what.

    def has_journals(self) -> bool:
        """Whether every node knows who coordinates, and that the journals have all their copies."""
        copies = min(len(self.nodes), 3)
        return all(
            OFFSETS_TOPIC in image.topics
            and all(record.leader and len(record.isr) >= copies for record in image.records.values())
            for image in (node.broker.metadata for node in self.nodes.values())
        )

    async def create(self, *, partitions: int = 1, copies: int = 1, **settings: str) -> None:
        texts = {f"goqueue.{name.replace('_', '.')}": value for name, value in settings.items()}
        command = CreateTopic(name=ORDERS, partitions=partitions, replication=copies, settings=texts)
        node = next(iter(self.nodes.values()))
        await asyncio.wait_for(node.life.begin(create_topic(node.broker, command)), ANSWER_S)
        await self.until(lambda: all(ORDERS in node.broker.topics for node in self.nodes.values()))
        await self.until(lambda: all(self.leader(ORDERS, number) for number in range(partitions)))

    def leader(self, topic: TopicName = ORDERS, number: int = 0) -> NodeId | None:
        image = next(iter(self.nodes.values())).broker.metadata
        return image.record(image.topic(topic), number).leader

    def coordinator(self, group: str = GROUP) -> NodeId:
        leader = self.leader(OFFSETS_TOPIC, journal_number(group))
        assert leader is not None
        return leader

    def group_apart(self, number: int = 0) -> str:
        """A group whose coordinator holds nothing of a partition."""
        image = next(iter(self.nodes.values())).broker.metadata
        replicas = image.record(image.topic(ORDERS), number).replicas
        names = (f"{GROUP}-{at}" for at in range(1_000))
        return next(name for name in names if self.coordinator(name) not in replicas)

    def remote(self, name: NodeId, number: int = 0) -> RemotePartition:
        """A partition as a node reads it that does not hold it."""
        partition = self.nodes[name].broker.readable(TopicPartition(ORDERS, number))
        assert isinstance(partition, RemotePartition)
        return partition

    # Clients.

    async def put(self, *values: str, number: int = 0) -> None:
        name = next(iter(self.nodes))
        messages = [Message(value.encode(), partition=number) for value in values]
        placed = await self.run(name, publish, Publish(topic=ORDERS, messages=messages))
        assert all(isinstance(one, Placed) for one in placed), placed

    async def end(self, name: NodeId, transactional_id: str, producer: ProducerEpoch, marker: Marker) -> None:
        """End a transaction; ask again while it is carried to a place that is just being taken over."""
        command = EndTransaction(
            transactional_id=transactional_id, producer=producer, marker=marker, until_complete=True
        )
        async with asyncio.timeout(ANSWER_S):
            while True:
                try:
                    return await self.run(name, end_transaction, command)
                except TransactionBusy:
                    await asyncio.sleep(AGAIN_S)


class Member:
    """A consumer of a group, who asks one node."""

    def __init__(self, several: Several, name: NodeId, group: str) -> None:
        self._several = several
        self.name = name
        self.group = group
        self.member_id = ""

    async def join(self) -> "Member":
        command = JoinAssigned(
            group=self.group,
            client_id="ann",
            topics=[ORDERS],
            sharing=Sharing.SHARED,
            session_timeout_ms=1_800_000,
        )
        self.member_id = (await self._several.run(self.name, join_assigned, command)).member_id
        return self

    async def take(self, limit: int = 100, *, wait_ms: int = 0) -> list[tuple[str, str]]:
        """Values and receipts."""
        command = Poll(group=self.group, member_id=self.member_id, generation=0, limit=limit, wait_ms=wait_ms)
        polled = await self._several.run(self.name, poll, command)
        taken = []
        for source, nonce, messages, counts in polled.parts:
            for message in messages:
                count = counts.get(message.offset, 1)
                receipt = Receipt(source.topic, source.partition, message.offset, count, nonce)
                taken.append(((message.value or b"").decode(), str(receipt)))
        return taken

    async def settle(self, action: Action, taken: Iterable[tuple[str, str]], **more: Any) -> SettleOutcome:
        command = Settle(action=action, receipts=[receipt for _, receipt in taken], **more)
        outcome = await self._several.run(self.name, settle, command)
        assert not outcome.refusals, outcome.refusals
        return outcome


def values(taken: Iterable[tuple[str, str]]) -> list[str]:
    return [value for value, _ in taken]


def several(work: Callable[[Several], Coroutine[object, object, None]], *, count: int = 3) -> None:
    """Run a story with so many nodes that are ready."""
    clock = SimulatedClock()
    loop = LoopOfLives(clock)
    asyncio.set_event_loop(loop)
    gc.disable()
    world: list[Several] = []

    async def live() -> None:
        one = Several(count, clock)
        world.append(one)
        await one.until(lambda: all(node.is_ready for node in one.nodes.values()))
        await one.until(one.has_journals)
        await work(one)
        for node in one.nodes.values():
            assert node.failure is None, node.failure

    try:
        loop.run(live())
    finally:
        for one in world:
            for node in one.nodes.values():
                node.disk.is_dead = True
                node.life.end()
        asyncio.set_event_loop(None)
        loop.abandon()
        gc.enable()
        gc.collect()
