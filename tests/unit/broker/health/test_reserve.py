"""A disk without a free byte: the broker starts, reads and deletes all the same."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.health.reserve import RESERVE_FILE, Reserve
from goqueue.broker.opening import open_broker
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic, delete_records, delete_topic
from goqueue.broker.upkeep import keep_up_partition
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Placed, Publish, ReadMessages
from goqueue.model.errors import StorageFull
from goqueue.model.messages import Message
from goqueue.model.settings import HOUR_MS, BrokerConfig, KiB
from goqueue.model.topics import CreateTopic, DeleteRecords, DeleteTopic
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.threads import SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand
from tests.unit.broker.running import ORDERS, ORDERS_0

T = TypeVar("T")
RESERVE_BYTES = 256 * KiB


class Lives:
    """Brokers on one disk, one after the other, each killed at its end."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.disk = SimulatedDisk(Random(1))
        self._chance = Random(1)

    def live(self, work: Callable[[Broker], Awaitable[T]], *, reserve_bytes: int = RESERVE_BYTES) -> T:
        async def open_and_work() -> T:
            threads = SimulatedThreads(Random(1))
            reserve = Reserve(self.disk, threads, size_bytes=reserve_bytes)
            async with reserve.lent():
                broker = await open_broker(
                    config=BrokerConfig(),
                    disk=self.disk,
                    clock=self.clock,
                    threads=threads,
                    workshop=WorkshopAtHand(),
                    chance=self._chance,
                    reserve=reserve,
                )
            return await work(broker)

        loop = SimulatedLoop(self.clock)
        try:
            return loop.run(open_and_work())
        finally:
            capacity_bytes = self.disk.faults.capacity_bytes
            self.disk = self.disk.kill()
            self.disk.faults.capacity_bytes = capacity_bytes
            loop.abandon()

    def reserved_bytes(self) -> int:
        return len(self.disk.stored(RESERVE_FILE).content)


async def fill(broker: Broker) -> None:
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=1, settings={"segment.bytes": "16384"}))
    await put(broker, 40)


async def put(broker: Broker, count: int) -> None:
    for _ in range(count):
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x" * 2_000)]))


@pytest.fixture
def full() -> Lives:
    """A broker has written some messages, and then the disk was filled to its last byte."""
    lives = Lives()
    lives.live(fill)
    lives.disk.fill_up(after_bytes=0)
    return lives


def test_without_a_reserve_a_full_disk_stops_the_start(full: Lives) -> None:
    full.disk.remove(RESERVE_FILE)
    full.disk.fill_up(after_bytes=0)

    with pytest.raises(StorageFull):
        full.live(lambda broker: asyncio.sleep(0), reserve_bytes=0)


def test_a_full_disk_lets_the_broker_start_and_read_but_not_write(full: Lives) -> None:
    async def walk(broker: Broker) -> int:
        [outcome] = await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x" * 2_000)]))
        assert isinstance(outcome, StorageFull)
        found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=0, limit=100))
        return len(found.messages)

    assert full.live(walk) == 40


def test_what_a_start_leaves_of_the_reserve_is_taken_back(full: Lives) -> None:
    for _ in range(5):
        full.live(lambda broker: asyncio.sleep(0))

    assert full.disk.space().free_bytes == 0
    assert RESERVE_BYTES - 32 * KiB < full.reserved_bytes() < RESERVE_BYTES


def test_a_topic_can_be_deleted_from_a_full_disk(full: Lives) -> None:
    async def walk(broker: Broker) -> None:
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        await fill(broker)

    full.live(walk)

    assert full.reserved_bytes() == RESERVE_BYTES


def test_records_can_be_deleted_from_a_full_disk(full: Lives) -> None:
    async def walk(broker: Broker) -> None:
        assert await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=30)) == 30
        [outcome] = await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x")]))
        assert isinstance(outcome, Placed)

    full.live(walk)


def test_retention_makes_room_on_a_full_disk(full: Lives) -> None:
    async def walk(broker: Broker) -> None:
        full.clock.advance_ms(200 * HOUR_MS)
        await keep_up_partition(broker, broker.partition(ORDERS_0))
        assert broker.partition(ORDERS_0).log.start_offset > 0
        assert full.disk.space().free_bytes > 0

    full.live(walk)


def test_a_bad_disk_costs_the_reserve_and_not_the_work() -> None:
    lives = Lives()

    async def walk(broker: Broker) -> None:
        await fill(broker)
        lives.disk.remove(RESERVE_FILE)
        lives.disk.faults.fail_syncs(under=RESERVE_FILE)
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        assert ORDERS not in broker.topics

    lives.live(walk)


def test_a_disk_with_room_is_left_alone() -> None:
    lives = Lives()
    lives.live(fill)
    before = lives.disk.stored(RESERVE_FILE)

    lives.live(lambda broker: delete_topic(broker, DeleteTopic(name=ORDERS)))

    assert lives.disk.stored(RESERVE_FILE) is before
    assert len(before.content) == RESERVE_BYTES
