"""One node decides: who, when it goes, and that what is decided comes about whatever the store loses."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from uuid import UUID

import pytest

from goqueue.core.cluster import values
from goqueue.core.cluster.controller import PUTS_MAX, decide, new_records
from goqueue.core.cluster.values import Topic, encode, name_key, part_key, topic_key
from goqueue.model.cluster import Loaded, NodeId, PartitionRecord
from goqueue.model.errors import StoreUnreachable
from goqueue.model.ids import TopicName
from goqueue.model.settings import TopicSettings
from goqueue.testing.world.store import SimulatedSession, SimulatedStore, StoreFaults
from tests.unit.broker.cluster.village import Villager, new_disk, until, village

TOPIC = Topic(TopicName("orders"), UUID(int=7), 200, TopicSettings(), 0, replication=3)


def live(work: Callable[[SimulatedStore, list[Villager]], Awaitable[None]], seed: int = 1) -> None:
    async def walk() -> None:
        store = SimulatedStore(Random(seed))
        async with village(store, "a", "b", "c") as villagers:
            await until(lambda: controller_of(villagers) is not None)
            await work(store, villagers)

    asyncio.run(walk())


def controller_of(villagers: list[Villager]) -> Villager | None:
    (*deciding,) = (villager for villager in villagers if villager.controlling.is_deciding)
    assert len(deciding) <= 1
    return deciding[0] if deciding else None


async def make_topic(store: SimulatedStore, at: Villager) -> None:
    await until(lambda: all(record.state == "ready" for record in at.image.nodes.values()))
    records = new_records(at.image, TOPIC, range(TOPIC.partitions))
    puts = {part_key(TOPIC.topic_id, number): encode(record) for number, record in records}
    puts |= {name_key(TOPIC.name): encode(TOPIC.topic_id), topic_key(TOPIC.topic_id): encode(TOPIC)}
    revision = await store.change([], puts, [])
    await at.agreement.reached(revision)


def records(villager: Villager) -> list[PartitionRecord]:
    return list(villager.image.records.values())


def end_session(villager: Villager) -> None:
    session = villager.membership.session
    assert isinstance(session, SimulatedSession)
    session.end()


def test_one_of_them_decides_and_when_it_dies_another_does() -> None:
    async def work(store: SimulatedStore, villagers: list[Villager]) -> None:
        first = controller_of(villagers)
        assert first is not None
        assert all(villager.image.controller == first.node for villager in villagers if villager.image.nodes)
        await first.die()
        end_session(first)
        rest = [villager for villager in villagers if villager is not first]
        await until(lambda: controller_of(rest) is not None)
        assert controller_of(rest) is not first

    live(work)


@pytest.mark.parametrize("seed", range(5))
def test_what_a_dead_node_led_is_led_by_others_however_much_the_store_loses(seed: int) -> None:
    async def work(store: SimulatedStore, villagers: list[Villager]) -> None:
        await make_topic(store, villagers[0])
        dead, *rest = villagers[seed % 3 :] + villagers[: seed % 3]
        assert sum(record.leader == dead.node for record in records(villagers[0])) > PUTS_MAX
        store.faults = StoreFaults(lost_questions=0.1, lost_answers=0.1, late_ms=2)
        await dead.die()
        end_session(dead)
        await until(lambda: all(record.leader not in (None, dead.node) for record in records(rest[0])))
        await until(lambda: all(dead.node not in record.isr for record in records(rest[0])))
        assert {record.epoch for record in records(rest[0])} == {1, 2}
        store.faults = StoreFaults()
        await until(lambda: records(rest[0]) == records(rest[1]))
        assert decide(rest[0].image) == []

    live(work, seed)


async def at_rest(store: SimulatedStore) -> Loaded:
    """What stands in the store when whoever decides has nothing left to change."""
    before, now = None, await store.load(values.PARTS)
    while before != now.items:
        await asyncio.sleep(0.05)
        before, now = now.items, await store.load(values.PARTS)
    return now


def test_a_controller_that_was_replaced_changes_nothing_any_more() -> None:
    async def work(store: SimulatedStore, villagers: list[Villager]) -> None:
        first = controller_of(villagers)
        assert first is not None
        await make_topic(store, first)
        others = [villager for villager in villagers if villager is not first]
        # It hears of nothing any more, and goes on deciding on what it knew.
        first.agreement._following.cancel()  # type: ignore[union-attr]
        old = first.image
        end_session(first)
        await until(lambda: controller_of(others) is not None)
        await until(lambda: all(record.leader is not None for record in records(others[0])))
        settled = await at_rest(store)
        assert first.controlling.is_deciding, "so it believes"
        del old.nodes[others[0].node]
        first.controlling._changed.set()
        for _ in range(100):
            await asyncio.sleep(0)
        assert (await store.load(values.PARTS)).items == settled.items

    live(work)


def test_a_node_that_registers_anew_may_decide_again() -> None:
    async def work(store: SimulatedStore, villagers: list[Villager]) -> None:
        for _ in range(4):
            deciding = controller_of(villagers)
            assert deciding is not None
            before = deciding.membership.incarnation
            end_session(deciding)
            await until(lambda at=deciding, old=before: at.membership.incarnation > old)  # type: ignore[misc]
            await until(lambda: controller_of(villagers) is not None)
            await until(lambda: len(villagers[0].image.nodes) == 3)

    live(work)


def test_a_refused_change_does_not_hold_up_those_it_was_bundled_with() -> None:
    async def work(store: SimulatedStore, villagers: list[Villager]) -> None:
        await make_topic(store, villagers[0])
        first = controller_of(villagers)
        assert first is not None
        dead = next(villager for villager in villagers if villager is not first)
        await dead.die()
        busy = part_key(TOPIC.topic_id, 0)
        record = first.image.records[(TOPIC.topic_id, 0)]
        done = asyncio.Event()

        async def change_all_the_time() -> None:
            while not done.is_set():
                await store.change([], {busy: encode(record)}, [])
                await asyncio.sleep(0)

        changing = asyncio.ensure_future(change_all_the_time())
        end_session(dead)
        others = range(1, TOPIC.partitions)
        await until(
            lambda: all(
                dead.node not in first.image.records[(TOPIC.topic_id, number)].isr for number in others
            )
        )
        done.set()
        await changing
        assert NodeId(dead.node) not in first.image.nodes

    live(work)


def test_a_seat_that_was_taken_without_an_answer_is_sat_in() -> None:
    async def walk() -> None:
        store = SimulatedStore(Random(1))
        villager = Villager(store, "a", new_disk(), iter("xyz").__next__)
        await villager.join()
        store.faults = StoreFaults(lost_answers=1.0)
        working = asyncio.ensure_future(villager.work())
        await until(lambda: values.CONTROLLER in store.peek(""))
        store.faults = StoreFaults()
        await working
        await until(lambda: villager.controlling.is_deciding)
        await villager.die()

    asyncio.run(walk())


def test_a_seat_is_looked_for_until_the_store_answers() -> None:
    class Hushed(SimulatedStore):
        looks_lost = 2

        async def load(self, prefix: str) -> Loaded:
            if prefix == values.CONTROLLER and self.looks_lost:
                self.looks_lost -= 1
                raise StoreUnreachable((), "it is away for a while")
            return await super().load(prefix)

    async def walk() -> None:
        store = Hushed(Random(1))
        villager = Villager(store, "a", new_disk(), iter("xyz").__next__)
        await villager.join()
        store.faults = StoreFaults(lost_answers=1.0)
        working = asyncio.ensure_future(villager.work())
        await until(lambda: values.CONTROLLER in store.peek(""))
        store.faults = StoreFaults()
        await working
        await until(lambda: villager.controlling.is_deciding)
        assert not store.looks_lost
        await villager.die()

    asyncio.run(walk())
