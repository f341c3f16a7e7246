"""Offsets of groups that nobody has used for long are forgotten; those of groups with members are not."""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.groups.upkeep import expire_offsets
from goqueue.broker.groups.verbs import join_group, list_groups, sync_group
from goqueue.broker.opening import open_broker
from goqueue.broker.queue.redrive import redrive
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.delivery import Redrive
from goqueue.model.errors import TopicExists
from goqueue.model.group_commands import CommitOffsets, JoinGroup, ListGroups, SyncGroup
from goqueue.model.groups import Membership, TopicCommit
from goqueue.model.settings import MINUTE_MS, BrokerConfig, GroupConfig
from goqueue.model.topics import CreateTopic
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.threads import SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand
from tests.unit.broker.queue.queue_steps import join as join_queue
from tests.unit.broker.queue.queue_steps import orders, put, reject, take
from tests.unit.broker.running import ORDERS

RETENTION_MS = 60 * MINUTE_MS
CONFIG = BrokerConfig(
    upkeep_interval_ms=MINUTE_MS,
    groups=GroupConfig(initial_delay_ms=0, offsets_retention_ms=RETENTION_MS),
)


class Machine:
    """A disk and a clock that outlive a broker."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(Random(1))
        self.clock = SimulatedClock()

    async def open(self) -> Broker:
        threads = SimulatedThreads(Random(1))
        return await open_broker(
            config=CONFIG,
            disk=self.disk,
            clock=self.clock,
            threads=threads,
            workshop=WorkshopAtHand(),
            chance=Random(1),
        )


async def commit(broker: Broker, group: str) -> None:
    with suppress(TopicExists):
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
    commit = TopicCommit(ORDERS, [(0, 0, -1, "")])
    assert await commit_offsets(broker, CommitOffsets(Membership(group, "", -1), [commit])) == {}


async def join(broker: Broker, group: str, *, session_timeout_ms: int = 1_800_000) -> None:
    joined = await join_group(
        broker,
        JoinGroup(
            group=group,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(("range", b""),),
        ),
    )
    command = SyncGroup(group=group, member_id=joined.member_id, generation=joined.generation)
    await sync_group(broker, command)


def names(broker: Broker) -> list[str]:
    return [listing.name for listing in list_groups(broker, ListGroups())]


def test_offsets_without_members_end_after_the_retention_and_not_before() -> None:
    machine = Machine()

    async def walk() -> None:
        broker = await machine.open()
        await commit(broker, "early")
        await asyncio.sleep(RETENTION_MS / 2 / 1000)
        await commit(broker, "late")
        await asyncio.sleep(RETENTION_MS / 2 / 1000)
        assert names(broker) == ["early", "late"]
        await asyncio.sleep(RETENTION_MS / 4 / 1000)
        assert names(broker) == ["late"]
        await asyncio.sleep(RETENTION_MS / 2 / 1000)
        assert names(broker) == []

    SimulatedLoop(machine.clock).run(walk())


def test_members_keep_the_offsets_of_their_group_and_the_time_counts_from_the_last_of_them() -> None:
    machine = Machine()

    async def walk() -> None:
        broker = await machine.open()
        await commit(broker, "readers")
        for _ in range(3):
            await join(broker, "readers")  # each stays for half an hour of silence
            await asyncio.sleep(31 * 60)
        assert names(broker) == ["readers"]
        await asyncio.sleep(RETENTION_MS / 2 / 1000)
        assert names(broker) == ["readers"]
        await asyncio.sleep(RETENTION_MS / 1000)
        assert names(broker) == []

    SimulatedLoop(machine.clock).run(walk())


def test_a_restart_does_not_begin_the_retention_anew() -> None:
    machine = Machine()

    async def first_life() -> None:
        await commit(await machine.open(), "readers")

    async def second_life() -> None:
        broker = await machine.open()
        assert names(broker) == ["readers"]
        await asyncio.sleep(RETENTION_MS / 2 / 1000)
        assert names(broker) == []

    SimulatedLoop(machine.clock).run(first_life())
    machine.disk = machine.disk.kill()
    machine.clock.advance_ms(RETENTION_MS * 3 // 4)
    SimulatedLoop(machine.clock).run(second_life())


def test_a_full_disk_only_puts_it_off(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()

    async def walk() -> None:
        broker = await machine.open()
        await commit(broker, "readers")
        machine.clock.advance_ms(RETENTION_MS * 2)
        machine.disk.fill_up(after_bytes=0)
        await expire_offsets(broker)
        assert names(broker) == ["readers"]
        machine.disk.faults.heal()
        await expire_offsets(broker)
        assert names(broker) == []

    SimulatedLoop(machine.clock).run(walk())
    assert "offsets_not_expired" in caplog.text


def test_what_was_sent_back_from_the_dead_letters_is_remembered_for_as_long_as_they_are_kept() -> None:
    machine = Machine()

    async def walk() -> None:
        broker = await machine.open()
        await orders(broker)
        await put(broker, "a")
        await reject(broker, await take(broker, await join_queue(broker)))
        assert (await redrive(broker, Redrive(topic=ORDERS))).moved == 1
        await asyncio.sleep(3 * RETENTION_MS / 1000)

        assert (await redrive(broker, Redrive(topic=ORDERS))).moved == 0

    SimulatedLoop(machine.clock).run(walk())
