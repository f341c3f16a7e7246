"""The broker's view of itself, on a simulated disk that is full, slow, broken or hung."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.health.condition import LOOK_MS, TICK_MS, keep_watch
from goqueue.broker.opening import open_broker
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.core.telemetry.checks import Verdict
from goqueue.model.commands import Publish
from goqueue.model.messages import Message
from goqueue.model.ports import P, T, Threads
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.workshop import WorkshopAtHand
from tests.unit.broker.running import DIRECT, ORDERS

R = TypeVar("R")
MS = 1_000_000


class PromptThreads(Threads):
    """Work is done at once, unless the disk hangs."""

    def __init__(self) -> None:
        self.hung: asyncio.Future[None] | None = None
        self.waiting: list[str] = []

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.hung is not None:
            self.waiting.append(work.__name__)
            await self.hung
        return work(*args, **kwargs)


class World:
    """A broker on a simulated disk, clock and loop."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.disk = SimulatedDisk(Random(1))
        self.threads = PromptThreads()

    def live(self, work: Callable[[Broker], Awaitable[R]]) -> R:
        async def open_and_work() -> R:
            broker = await open_broker(
                config=BrokerConfig(commit_log=DIRECT),
                disk=self.disk,
                clock=self.clock,
                threads=self.threads,
                workshop=WorkshopAtHand(),
                chance=Random(1),
            )
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            return await work(broker)

        loop = SimulatedLoop(self.clock)
        try:
            return loop.run(open_and_work())
        finally:
            loop.abandon()


async def put(broker: Broker, partition: int = 0) -> None:
    await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x", partition=partition)]))


def test_a_healthy_broker_passes_every_check() -> None:
    async def look(broker: Broker) -> dict[str, Verdict]:
        return {name: check.verdict for name, check in (await broker.health.check(broker)).items()}

    assert World().live(look) == dict.fromkeys(
        ["storage", "disk_space", "fsync_latency", "loop_lag", "partitions", "damage", "scrub", "journals"],
        Verdict.PASS,
    )


def test_a_full_disk_is_not_ready_until_it_has_room(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    caplog.set_level(logging.INFO, "goqueue.broker.health.condition")

    async def walk(broker: Broker) -> None:
        world.disk.fill_up(after_bytes=0)
        await broker.health.check(broker)
        assert broker.health.problems[0].startswith("disk_space: the data disk is 100 % full")
        assert broker.health.space is not None
        assert broker.health.space.free_bytes == 0

        await broker.health.check(broker)
        world.disk.faults.heal()
        await broker.health.check(broker)
        assert broker.health.problems == []

    world.live(walk)

    told = [record for record in caplog.records if record.msg.startswith("health_changed")]
    assert [(record.levelname, record.args[:2]) for record in told if isinstance(record.args, tuple)] == [
        ("ERROR", ("disk_space", "fail")),
        ("INFO", ("disk_space", "pass")),
    ]


def test_slow_flushes_are_seen_in_what_publishers_wait_for() -> None:
    world = World()

    async def walk(broker: Broker) -> None:
        world.disk.faults.slow_syncs(lambda: world.clock.advance_ms(300))
        for _ in range(3):
            await put(broker)
        check = (await broker.health.check(broker))["fsync_latency"]
        assert check.verdict is Verdict.WARN
        assert check.took_ns is not None
        assert check.took_ns >= 300 * MS

        world.disk.faults.slow_syncs(lambda: world.clock.advance_ms(6_000))
        await put(broker)
        assert (await broker.health.check(broker))["fsync_latency"].verdict is Verdict.FAIL

        await asyncio.sleep(61)
        assert (await broker.health.check(broker))["fsync_latency"].verdict is Verdict.PASS

    world.live(walk)


def test_a_disk_at_rest_is_probed_only_when_asked_and_not_often() -> None:
    world = World()
    syncs = 0

    def count() -> None:
        nonlocal syncs
        syncs += 1

    async def walk(broker: Broker) -> None:
        await asyncio.sleep(61)
        world.disk.faults.slow_syncs(count)
        await broker.health.check(broker)
        assert syncs == 0

        first = await broker.health.check(broker, may_probe=True)
        await broker.health.check(broker, may_probe=True)

        assert syncs == 1
        assert first["fsync_latency"].message.startswith("1 flushes")
        assert not [name for name in world.disk.list("") if "probe" in name]

    world.live(walk)


def test_a_probe_of_a_full_disk_says_no_more_than_that_it_is_full() -> None:
    world = World()

    async def walk(broker: Broker) -> None:
        await asyncio.sleep(61)
        world.disk.fill_up(after_bytes=0)

        checks = await broker.health.check(broker, may_probe=True)

        assert [name for name, check in checks.items() if check.verdict is Verdict.FAIL] == ["disk_space"]

    world.live(walk)


def test_a_partition_that_the_disk_has_failed_is_told_until_it_is_back() -> None:
    world = World()

    async def walk(broker: Broker) -> None:
        world.disk.faults.fail_syncs(under=f"logs/{ORDERS}/1")
        world.disk.faults.fail_reads(under=f"logs/{ORDERS}/1")  # so that it is not back at once
        failed = asyncio.ensure_future(put(broker, partition=1))
        await asyncio.wait({failed})
        partition = broker.topics[ORDERS].partitions[1]
        assert partition.is_failed
        check = (await broker.health.check(broker))["partitions"]
        assert (check.verdict, "orders/1" in check.message) == (Verdict.WARN, True)
        assert broker.health.problems == []

        while partition.is_failed:
            await asyncio.sleep(1)
        assert (await broker.health.check(broker))["partitions"].verdict is Verdict.PASS

    world.live(walk)


def test_a_journal_that_the_disk_has_failed_makes_the_broker_unready() -> None:
    world = World()

    async def walk(broker: Broker) -> None:
        world.disk.faults.fail_syncs(under="logs/__metadata")
        created = asyncio.ensure_future(create_topic(broker, CreateTopic(name="more")))
        await asyncio.wait({created})
        check = (await broker.health.check(broker))["journals"]
        assert (check.verdict, "__metadata" in check.message) == (Verdict.FAIL, True)

    world.live(walk)


def test_a_disk_that_hangs_holds_up_one_look_and_is_told() -> None:
    world = World()

    async def walk(broker: Broker) -> None:
        world.threads.hung = asyncio.get_running_loop().create_future()
        for _ in range(3):
            checks = await broker.health.check(broker)
            assert checks["storage"].verdict is Verdict.FAIL
        assert world.threads.waiting.count("_look_at") == 1

        world.threads.hung.set_result(None)
        world.threads.hung = None
        assert (await broker.health.check(broker))["storage"].verdict is Verdict.PASS

    world.live(walk)


def test_a_probe_that_fails_fails_the_storage_check() -> None:
    world = World()

    async def walk(broker: Broker) -> None:
        await asyncio.sleep(61)
        world.disk.faults.fail_syncs()
        checks = await broker.health.check(broker, may_probe=True)
        assert checks["storage"].verdict is Verdict.FAIL
        assert "cannot be used" in checks["storage"].message

        world.disk.faults.fail_syncs()
        checks = await broker.health.check(broker, may_probe=True)
        assert checks["storage"].verdict is Verdict.PASS  # it was not written to again so soon

    world.live(walk)


def test_the_watch_measures_how_late_the_loop_runs() -> None:
    world = World()

    async def walk(broker: Broker) -> None:
        keep_watch(broker)
        await asyncio.sleep(30)
        calm = broker.health.loop_lag.summary(now_ns=world.clock.monotonic_ns())
        assert calm.worst_ns < MS
        assert calm.count >= 29_000 // TICK_MS

        world.clock.advance_ms(5_000)  # something on the loop that does not let go
        await asyncio.sleep(1)
        late = broker.health.loop_lag.summary(now_ns=world.clock.monotonic_ns())
        # As many ticks were missed as had been due meanwhile: more than a hundredth of the minute.
        assert late.worst_ns >= 4_800 * MS
        assert late.p99_ns >= 2_000 * MS

    world.live(walk)


def test_the_watch_keeps_the_last_checks_at_hand_and_says_when_they_are_old() -> None:
    world = World()

    async def walk(broker: Broker) -> None:
        assert broker.health.problems == []
        keep_watch(broker)
        world.disk.fill_up(after_bytes=0)
        await asyncio.sleep(LOOK_MS / 1000 + 1)
        assert broker.health.problems[0].startswith("disk_space:")

        world.disk.faults.heal()
        await asyncio.sleep(LOOK_MS / 1000 + 1)
        assert broker.health.problems == []

        world.clock.advance_ms(31_000)
        assert broker.health.problems == ["health: the checks have not been made for too long"]

    world.live(walk)
