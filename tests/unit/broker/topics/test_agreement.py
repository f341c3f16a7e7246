"""One way to change what is agreed: decided on the image, guarded, and looked for where no answer came."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from uuid import UUID

import pytest

from goqueue.broker.metadata_state import TRIES_MAX, Agreement
from goqueue.core.access.tenants import Tenants
from goqueue.core.cluster.metadata import Metadata
from goqueue.model.cluster import Step
from goqueue.model.errors import Outdated, ShuttingDown, StoreUnreachable, TopicExists, Unknown
from goqueue.model.ids import TopicName
from goqueue.model.settings import TopicSettings
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.store import SimulatedStore, StoreFaults

LOSSY = StoreFaults(lost_questions=0.2, lost_answers=0.2, late_ms=50)


Work = Callable[[SimulatedStore, "list[Node]"], Awaitable[None]]


class Node:
    """One of several nodes at a store."""

    def __init__(self, store: SimulatedStore, name: str, chance: Random) -> None:
        self.metadata = Metadata(name)
        self.agreement = Agreement(store, self.metadata, Tenants())
        self.chance = chance

    async def start(self) -> None:
        """A node whose first question is lost is started again."""
        while True:
            with suppress(StoreUnreachable):
                await self.agreement.load()
                break
        self.agreement.begin_following(pytest.fail)

    def stop(self) -> None:
        self.agreement.stop(ShuttingDown())

    async def take_ids(self) -> range:
        taken_by = str(self.chance.getrandbits(64))
        return await self.agreement.make(lambda: self.metadata.reserve_producer_ids(taken_by))

    async def create(self, name: str) -> None:
        topic = self.metadata.new_topic(
            TopicName(name),
            topic_id=UUID(int=self.chance.getrandbits(128)),
            partitions=1,
            settings=TopicSettings(),
            partitions_max=10,
            now_ms=1,
        )
        await self.agreement.make(lambda: self.metadata.create_topic(topic))


def walk(
    work: Callable[[SimulatedStore, list[Node]], Awaitable[None]], seed: int, faults: StoreFaults
) -> None:
    async def open_and_work() -> None:
        chance = Random(seed)
        store = SimulatedStore(chance, faults)
        nodes = [Node(store, f"node-{at}", chance) for at in range(3)]
        for node in nodes:
            await node.start()
        await work(store, nodes)
        for node in nodes:
            node.stop()

    loop = SimulatedLoop(SimulatedClock())
    try:
        loop.run(open_and_work())
    finally:
        loop.abandon()


@pytest.mark.parametrize("seed", range(30))
def test_no_producer_id_is_given_twice_whatever_gets_lost(seed: int) -> None:
    async def work(store: SimulatedStore, nodes: list[Node]) -> None:
        async def take(node: Node) -> list[range]:
            taken = []
            for _ in range(5):
                # Others may be quicker, or nobody may answer, too often.
                with suppress(Outdated, Unknown):
                    taken.append(await node.take_ids())
            return taken

        found = await asyncio.gather(*(take(node) for node in nodes for _ in range(2)))
        starts = [block.start for taken in found for block in taken]
        assert len(starts) == len(set(starts)) > 10

    walk(work, seed, LOSSY)


@pytest.mark.parametrize("seed", range(30))
def test_of_several_nodes_that_create_a_topic_one_does_and_all_see_the_same(seed: int) -> None:
    async def work(store: SimulatedStore, nodes: list[Node]) -> None:
        async def create(node: Node) -> bool:
            try:
                await node.create("orders")
            except (TopicExists, Outdated, Unknown):
                return False
            assert "orders" in node.metadata.topics, "whoever has made a change sees it"
            return True

        made = await asyncio.gather(*(create(node) for node in nodes))
        assert made.count(True) <= 1
        store.faults = StoreFaults()
        loaded = await store.load("")
        while any(node.metadata.revision < loaded.revision for node in nodes):
            await asyncio.sleep(0.01)
        assert len({str(node.metadata.topics) for node in nodes}) == 1

    walk(work, seed, LOSSY)


def test_whoever_is_too_far_behind_loads_anew_and_hears_what_is_gone() -> None:
    async def work(store: SimulatedStore, nodes: list[Node]) -> None:
        first, second = nodes[:2]
        await first.create("orders")
        while "orders" not in second.metadata.topics:
            await asyncio.sleep(0.01)
        gone: list[TopicName] = []
        second.agreement.on_topics_gone = gone.extend
        second.stop()
        await first.agreement.make(lambda: first.metadata.delete_topic("orders"))
        await first.create("bills")
        store.compact()
        await asyncio.gather(second.agreement.load(), second.agreement.load())
        assert (list(second.metadata.topics), gone) == (["bills"], ["orders"])

    walk(work, 1, StoreFaults())


def test_a_store_that_is_away_is_not_waited_for_and_has_made_a_change_or_not() -> None:
    async def work(store: SimulatedStore, nodes: list[Node]) -> None:
        store.go_away()
        asked = asyncio.ensure_future(nodes[0].create("orders"))
        await asyncio.sleep(10)
        assert asked.done()
        with pytest.raises(Unknown):
            await asked
        store.come_back()
        await nodes[0].create("orders")
        assert "orders" in nodes[0].metadata.topics

    walk(work, 1, StoreFaults())


def test_whoever_waits_for_the_image_is_answered_when_it_is_given_up() -> None:
    async def work(store: SimulatedStore, nodes: list[Node]) -> None:
        agreement = nodes[0].agreement
        assert agreement._following is not None
        agreement._following.cancel()  # so that no news come
        asked = asyncio.ensure_future(nodes[0].take_ids())
        while not agreement._waiting:
            await asyncio.sleep(0)
        nodes[0].stop()
        for answer in (asked, nodes[0].take_ids()):
            with pytest.raises(ShuttingDown):
                await answer

    walk(work, 3, StoreFaults())


def test_a_step_that_never_fits_is_given_up() -> None:
    async def work(store: SimulatedStore, nodes: list[Node]) -> None:
        tries = 0
        stale = nodes[0].metadata.reserve_producer_ids("me")
        await nodes[1].take_ids()

        def decide() -> Step[range]:
            nonlocal tries
            tries += 1
            return stale

        with pytest.raises(Outdated):
            await nodes[0].agreement.make(decide)
        assert tries == TRIES_MAX

    walk(work, 1, StoreFaults())
