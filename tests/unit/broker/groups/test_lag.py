"""How far groups are behind, in messages and in time."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups import lag as lag_module
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.topics.verbs import create_topic, delete_records
from goqueue.broker.write.publish import publish
from goqueue.log.partition_log import PartitionLog
from goqueue.model.commands import Publish
from goqueue.model.errors import GroupNotFound
from goqueue.model.group_commands import CommitOffsets, DescribeLag
from goqueue.model.groups import Membership, TopicCommit
from goqueue.model.ids import TopicName
from goqueue.model.messages import Message
from goqueue.model.topics import CreateTopic, DeleteRecords
from goqueue.node.disk import FolderDisk
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import ORDERS, ORDERS_0, running

READER = Membership("readers", "", -1)
HOUR_MS = 3_600_000


async def commit(broker: Broker, offsets: dict[int, int], topic: TopicName = ORDERS) -> None:
    rows = [(partition, offset, -1, "") for partition, offset in offsets.items()]
    assert await commit_offsets(broker, CommitOffsets(READER, [TopicCommit(topic, rows)])) == {}


async def store(broker: Broker, *ages_ms: int, partition: int = 0) -> None:
    """Messages of one batch that are so old."""
    now_ms = broker.clock.wall_ms()
    messages = [Message(b"x", partition=partition, timestamp_ms=now_ms - age_ms) for age_ms in ages_ms]
    await publish(broker, Publish(topic=ORDERS, messages=messages))


async def orders(broker: Broker, partitions: int = 2) -> None:
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=partitions))


def test_a_group_is_as_far_behind_as_its_first_unread_message_is_old(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await orders(broker)
            await store(broker, 5 * HOUR_MS, 2 * HOUR_MS, HOUR_MS)
            await store(broker, 0, partition=1)
            await commit(broker, {0: 1, 1: 1})

            behind = await group_lag(broker, DescribeLag(group="readers"))

            first, second = behind.partitions
            assert (first.committed_offset, first.end_offset, first.lag) == (1, 3, 2)
            assert 2 * HOUR_MS <= first.lag_ms < 2 * HOUR_MS + 60_000
            assert (second.committed_offset, second.end_offset, second.lag, second.lag_ms) == (1, 1, 0, 0)
            assert (behind.total, behind.ms_max) == (2, first.lag_ms)

    asyncio.run(walk())


def test_what_retention_has_removed_is_not_behind(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await orders(broker)
            await store(broker, 3 * HOUR_MS, 2 * HOUR_MS, HOUR_MS)
            await commit(broker, {0: 0})
            await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=2))

            (left,) = (await group_lag(broker, DescribeLag(group="readers"))).partitions

            assert left.lag == 1
            assert HOUR_MS <= left.lag_ms < HOUR_MS + 60_000

    asyncio.run(walk())


def test_a_group_that_stands_still_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    look_up = lag_module._stored_ms

    def counting(log: PartitionLog, offset: int) -> int:
        looked_up.append(offset)
        return look_up(log, offset)

    monkeypatch.setattr(lag_module, "_stored_ms", counting)

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await orders(broker)
            await store(broker, HOUR_MS, HOUR_MS, HOUR_MS)
            await commit(broker, {0: 1})
            assert (await group_lag(broker, DescribeLag(group="readers"))).total == 2
            await store(broker, 0)
            assert (await group_lag(broker, DescribeLag(group="readers"))).total == 3
            await commit(broker, {0: 2})
            assert (await group_lag(broker, DescribeLag(group="readers"))).total == 2

    asyncio.run(walk())
    assert looked_up == [1, 2]


def test_a_look_at_many_partitions_lets_others_run_in_between() -> None:
    async def walk() -> None:
        async with running(SimulatedDisk(Random(1))) as broker:
            await orders(broker, partitions=200)
            messages = [Message(b"x", partition=n) for n in range(200)]
            await publish(broker, Publish(topic=ORDERS, messages=messages))
            await commit(broker, dict.fromkeys(range(200), 0))
            turns = 0

            async def somebody_else() -> None:
                nonlocal turns
                while True:
                    await asyncio.sleep(0)
                    turns += 1

            other = asyncio.get_running_loop().create_task(somebody_else())
            behind = await group_lag(broker, DescribeLag(group="readers"))
            other.cancel()

            assert behind.total == 200
            assert turns >= 200 // 32

    asyncio.run(walk())


def test_an_unknown_group_has_no_lag(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            with pytest.raises(GroupNotFound):
                await group_lag(broker, DescribeLag(group="nobody"))

    asyncio.run(walk())
