"""Setting from outside where a group reads on."""

import asyncio
from pathlib import Path

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets, fetch_offsets
from goqueue.broker.groups.reset_offsets import reset_offsets
from goqueue.broker.groups.verbs import describe_group, join_group, sync_group
from goqueue.broker.topics.verbs import create_topic, delete_records
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish, Spot
from goqueue.model.errors import (
    GroupNotEmpty,
    GroupNotFound,
    OffsetOutOfRange,
    PartitionNotFound,
    TopicNotFound,
)
from goqueue.model.group_commands import (
    CommitOffsets,
    DescribeGroup,
    FetchOffsets,
    JoinGroup,
    ResetOffsets,
    SyncGroup,
)
from goqueue.model.groups import Membership, TopicCommit
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Message
from goqueue.model.settings import BrokerConfig, GroupConfig
from goqueue.model.topics import CreateTopic, DeleteRecords
from goqueue.node.disk import FolderDisk
from tests.unit.broker.running import ORDERS, ORDERS_0, running

HOUR_MS = 3_600_000
CONFIG = BrokerConfig(groups=GroupConfig(initial_delay_ms=0))
ORDERS_1 = TopicPartition(ORDERS, 1)


async def three_orders(broker: Broker) -> int:
    """Partition 0 holds messages of three, two and one hours ago; the group has read two. Gives now."""
    now_ms = broker.clock.wall_ms()
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
    messages = [Message(b"x", partition=0, timestamp_ms=now_ms - hours * HOUR_MS) for hours in (3, 2, 1)]
    await publish(broker, Publish(topic=ORDERS, messages=messages))
    commit = TopicCommit(ORDERS, [(0, 2, -1, "")])
    assert await commit_offsets(broker, CommitOffsets(Membership("readers", "", -1), [commit])) == {}
    return now_ms


async def join(broker: Broker) -> None:
    joined = await join_group(
        broker,
        JoinGroup(
            group="readers",
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(("range", b""),),
        ),
    )
    command = SyncGroup(group="readers", member_id=joined.member_id, generation=joined.generation)
    await sync_group(broker, command)


async def committed(broker: Broker) -> dict[int, int]:
    return {
        row[0]: row[1]
        for topic in await fetch_offsets(broker, FetchOffsets(group="readers", wanted=None))
        for row in topic.rows
    }


def test_a_group_can_be_sent_to_the_start_the_end_and_a_time(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            now_ms = await three_orders(broker)
            await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=1))

            resets = await reset_offsets(broker, ResetOffsets(group="readers", spot=Spot.EARLIEST))
            assert resets == [(ORDERS, 0, 2, 1), (ORDERS, 1, -1, 0)]
            resets = await reset_offsets(broker, ResetOffsets(group="readers", spot=Spot.LATEST))
            assert resets == [(ORDERS, 0, 1, 3), (ORDERS, 1, 0, 0)]
            time_ms = now_ms - 2 * HOUR_MS + 1
            resets = await reset_offsets(broker, ResetOffsets(group="readers", spot=time_ms))
            assert resets == [(ORDERS, 0, 3, 2), (ORDERS, 1, 0, 0)]
            resets = await reset_offsets(broker, ResetOffsets(group="readers", spot=now_ms))
            assert resets == [(ORDERS, 0, 2, 3), (ORDERS, 1, 0, 0)]
        async with running(FolderDisk(tmp_path)) as broker:
            assert await committed(broker) == {0: 3, 1: 0}

    asyncio.run(walk())


def test_offsets_can_be_given_one_by_one_and_must_be_in_the_log(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await three_orders(broker)

            resets = await reset_offsets(broker, ResetOffsets(group="readers", offsets={ORDERS_0: 1}))
            assert resets == [(ORDERS, 0, 2, 1)]
            with pytest.raises(OffsetOutOfRange):
                await reset_offsets(broker, ResetOffsets(group="readers", offsets={ORDERS_0: 3, ORDERS_1: 1}))
            with pytest.raises(PartitionNotFound):
                beyond = TopicPartition(ORDERS, 2)
                await reset_offsets(broker, ResetOffsets(group="readers", offsets={beyond: 0}))
            with pytest.raises(TopicNotFound):
                await reset_offsets(broker, ResetOffsets(group="readers", topics=["never-was"]))
            assert await committed(broker) == {0: 1}

    asyncio.run(walk())


def test_a_dry_run_tells_and_changes_nothing(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await three_orders(broker)

            resets = await reset_offsets(broker, ResetOffsets(group="readers", is_dry_run=True))

            assert resets == [(ORDERS, 0, 2, 0), (ORDERS, 1, -1, 0)]
            assert await committed(broker) == {0: 2}

    asyncio.run(walk())


def test_a_group_with_members_is_reset_only_by_force(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), CONFIG) as broker:
            await three_orders(broker)
            await join(broker)

            for is_dry_run in (True, False):
                with pytest.raises(GroupNotEmpty):
                    await reset_offsets(broker, ResetOffsets(group="readers", is_dry_run=is_dry_run))
            assert await committed(broker) == {0: 2}
            await reset_offsets(broker, ResetOffsets(group="readers", is_forced=True))
            assert await committed(broker) == {0: 0, 1: 0}

    asyncio.run(walk())


def test_no_group_begins_by_a_reset(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await three_orders(broker)

            for command in (
                ResetOffsets(group="new"),
                ResetOffsets(group="new", topics=[ORDERS], spot=Spot.LATEST),
                ResetOffsets(group="new", topics=[ORDERS], spot=Spot.LATEST, is_dry_run=True),
            ):
                with pytest.raises(GroupNotFound):
                    await reset_offsets(broker, command)
            with pytest.raises(GroupNotFound):
                describe_group(broker, DescribeGroup(group="new"))

    asyncio.run(walk())
