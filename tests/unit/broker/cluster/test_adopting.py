"""The folder of a node that was alone becomes that of a cluster's first node, with all that it holds."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import delay_stats
from goqueue.broker.member.adopting import adopt
from goqueue.broker.opening import close_broker, open_broker
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.model.cluster import NodeId
from goqueue.model.commands import Publish, ReadMessages
from goqueue.model.delays import CountDelayed
from goqueue.model.errors import CannotJoin
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Message
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.model.transactions import Marker
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.lives import LoopOfLives
from goqueue.testing.world.store import SimulatedStore, StoreFaults
from goqueue.testing.world.threads import SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand
from tests.unit.broker.remote.several import ORDERS, Several
from tests.unit.broker.transactions.test_delays import begun, put
from tests.unit.broker.transactions.transaction_steps import WRITER, Writer

ME = NodeId("n0")
SOURCE = TopicPartition(ORDERS, 0)
SOON_MS = 60_000


class Alone:
    """A folder, and a node that was alone in it."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.clock = clock
        self.disk = SimulatedDisk(Random(1))
        self.threads = SimulatedThreads(Random(2))

    async def open(self) -> Broker:
        return await open_broker(
            config=BrokerConfig(node_id=ME),
            disk=self.disk,
            clock=self.clock,
            threads=self.threads,
            workshop=WorkshopAtHand(),
            chance=Random(3),
        )

    async def adopt(self, store: SimulatedStore) -> bool:
        return await adopt(store, self.disk, self.threads, ME, open_alone=self.open, draw_id=lambda: "folder")


def run(story: Callable[[SimulatedClock], Coroutine[object, object, None]]) -> None:
    clock = SimulatedClock()
    loop = LoopOfLives(clock)
    asyncio.set_event_loop(loop)
    gc.disable()
    try:
        loop.run(story(clock))
    finally:
        asyncio.set_event_loop(None)
        loop.abandon()
        gc.enable()


async def worked(alone: Alone) -> Writer:
    """A node has messages, delayed ones of which one has come, and an open transaction."""
    broker = await alone.open()
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
    now_ms = alone.clock.wall_ms()
    messages = [
        Message(b"a", partition=0),
        Message(b"came", partition=0, due_ms=now_ms + 1_000),
        Message(b"later", partition=0, due_ms=now_ms + SOON_MS),
    ]
    await publish(broker, Publish(topic=ORDERS, messages=messages))
    await asyncio.sleep(10)
    writer = await begun(broker, timeout_ms=900_000)
    await put(writer, "in transaction", None)
    await put(writer, "held", 1_000)
    await close_broker(broker)
    return writer


async def values(nodes: Several) -> list[bytes | None]:
    read = await nodes.run(ME, read_messages, ReadMessages(source=SOURCE, limit=100))
    return [message.value for message in read.messages]


async def joined(alone: Alone, store: SimulatedStore, count: int) -> Several:
    nodes = Several(0, alone.clock)
    nodes.store = store
    nodes._disks[ME] = alone.disk
    for number in range(count):
        nodes.start(NodeId(f"n{number}"))
    await nodes.until(lambda: all(node.is_ready for node in nodes.nodes.values()))
    await nodes.until(lambda: _are_copied(nodes))
    return nodes


def _are_copied(nodes: Several) -> bool:
    """Whether everything is led, and all nodes have what is the cluster's own."""
    for node in nodes.nodes.values():
        image = node.broker.metadata
        for (topic_id, _), record in image.records.items():
            wanted = len(nodes.nodes) if image.names[topic_id].startswith("__") else 1
            if record.leader is None or len(record.isr) < wanted:
                return False
    return True


async def commit(nodes: Several, writer: Writer) -> None:
    await nodes.end(next(reversed(nodes.nodes)), WRITER, writer.producer, Marker.COMMIT)


async def ended(nodes: Several) -> None:
    for node in nodes.nodes.values():
        await node.life.begin(node.stop())


def test_all_that_a_lone_node_holds_is_there_and_goes_on() -> None:
    async def story(clock: SimulatedClock) -> None:
        alone, store = Alone(clock), SimulatedStore(Random(4), StoreFaults())
        writer = await worked(alone)
        assert await alone.adopt(store)
        assert not await alone.adopt(store)  # once is enough
        nodes = await joined(alone, store, 3)
        assert nodes.leader() == ME
        assert await values(nodes) == [b"a", b"came"]
        await commit(nodes, writer)
        await asyncio.sleep(5)
        assert await values(nodes) == [b"a", b"came", b"in transaction", b"held"]
        await asyncio.sleep(SOON_MS / 1_000)
        assert await values(nodes) == [b"a", b"came", b"in transaction", b"held", b"later"]
        await ended(nodes)

    run(story)


def test_a_cluster_that_has_nodes_is_refused_and_the_folder_stays_as_it_is() -> None:
    async def story(clock: SimulatedClock) -> None:
        nodes = Several(1, clock)
        await nodes.until(lambda: all(node.is_ready for node in nodes.nodes.values()))
        alone = Alone(clock)
        await worked(alone)
        with pytest.raises(CannotJoin, match="has nodes already"):
            await adopt(
                nodes.store,
                alone.disk,
                alone.threads,
                NodeId("n7"),
                open_alone=alone.open,
                draw_id=lambda: "folder",
            )
        broker = await alone.open()
        assert delay_stats(broker, CountDelayed()).pending == 1
        await close_broker(broker)
        await ended(nodes)

    run(story)


def test_wherever_the_power_is_cut_the_folder_is_adopted_by_the_next_start_with_all_it_holds() -> None:
    cuts = 0
    while _is_cut(60 * cuts):
        cuts += 1
    assert cuts > 3


def _is_cut(cut_after: int) -> bool:
    """Whether the power was cut before all was done, so many changes of the disk on."""
    is_cut = True

    async def story(clock: SimulatedClock) -> None:
        nonlocal is_cut
        alone, store = Alone(clock), SimulatedStore(Random(4), StoreFaults())
        writer = await worked(alone)
        cut = asyncio.get_running_loop().create_future()
        alone.disk.faults.cut_power(after_changes=cut_after, on_power_cut=lambda: cut.set_result(None))
        adopting = asyncio.ensure_future(alone.adopt(store))
        await asyncio.wait({adopting, cut}, return_when=asyncio.FIRST_COMPLETED)
        is_cut = not adopting.done() or adopting.exception() is not None
        alone.disk = alone.disk.crash()
        await alone.adopt(store)
        nodes = await joined(alone, store, 1)
        await commit(nodes, writer)
        await asyncio.sleep(SOON_MS / 1_000)
        found = sorted(value or b"" for value in await values(nodes))
        assert found == [b"a", b"came", b"held", b"in transaction", b"later"], cut_after
        await ended(nodes)

    run(story)
    return is_cut
