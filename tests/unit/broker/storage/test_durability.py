"""What an ack means, and what happens when the disk does not keep its side."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import alter_settings, create_topic, delete_records, describe_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Placed, Publish, ReadMessages
from goqueue.model.errors import ShuttingDown, StorageFailed, StorageFull
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import AlterSettings, CreateTopic, DeleteRecords, DescribeTopic, SettingChange
from goqueue.node.disk import DiskFile, FolderDisk
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import DIRECT, ORDERS, ORDERS_0, running, until


async def put(broker: Broker, value: bytes, acks: Acks = Acks.ALL) -> object:
    [result] = await publish(broker, Publish(topic=ORDERS, messages=[Message(value)], acks=acks))
    return result


def flushed_to(broker: Broker) -> int:
    return broker.partition(ORDERS_0).log.flushed_offset


def test_acks_all_returns_only_when_the_disk_has_it(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, b"x", Acks.ALL)
            assert flushed_to(broker) == 1

    asyncio.run(walk())


def test_acks_leader_does_not_wait_but_is_on_disk_soon_even_if_nothing_follows(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), BrokerConfig(flush_interval_ms=50)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, b"x", Acks.LEADER)
            assert flushed_to(broker) == 0
            await until(lambda: flushed_to(broker) == 1)

    asyncio.run(walk())


def test_one_fsync_covers_all_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[DiskFile] = []
    really_sync = DiskFile.sync

    def counted(file: DiskFile) -> None:
        syncs.append(file)
        really_sync(file)

    monkeypatch.setattr(DiskFile, "sync", counted)

    async def walk() -> None:
        async with running(FolderDisk(tmp_path), BrokerConfig(commit_log=DIRECT)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, b"first")
            syncs.clear()
            await asyncio.gather(*(put(broker, b"x") for _ in range(200)))
            assert flushed_to(broker) == 201
            assert 1 <= len(syncs) <= 3

    asyncio.run(walk())


def test_a_failed_fsync_refuses_the_ack_and_the_partition_comes_back_without_the_uncertain(
    tmp_path: Path,
) -> None:
    disk = SimulatedDisk(Random(3))

    async def walk() -> None:
        async with running(disk, BrokerConfig(upkeep_interval_ms=20, commit_log=DIRECT)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            assert await put(broker, b"safe") == Placed(0, 0)
            epoch = (await describe_topic(broker, DescribeTopic(name="orders"))).partitions[0].leader_epoch
            disk.faults.fail_syncs(1, under="logs/orders")
            assert isinstance(await put(broker, b"uncertain"), StorageFailed)
            await until(lambda: not broker.partition(ORDERS_0).is_failed)
            assert await put(broker, b"after") == Placed(0, 1)
            found = await read_messages(broker, ReadMessages(source=ORDERS_0))
            assert [m.value for m in found.messages] == [b"safe", b"after"]
            assert (await describe_topic(broker, DescribeTopic(name="orders"))).partitions[
                0
            ].leader_epoch > epoch

    asyncio.run(walk())


def test_a_full_disk_refuses_messages_and_changes_and_takes_them_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = SimulatedDisk(Random(4))

    async def walk() -> None:
        async with running(disk) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, b"before")
            disk.fill_up(after_bytes=50)
            assert isinstance(await put(broker, b"x" * 500), StorageFull)
            with pytest.raises(StorageFull):
                await alter_settings(
                    broker, AlterSettings(name="orders", changes=[SettingChange("retention.ms", "1234567")])
                )
            assert (
                await describe_topic(broker, DescribeTopic(name="orders"))
            ).settings.retention_ms != 1234567
            disk.faults.heal()
            assert await put(broker, b"after") == Placed(0, 1)

    asyncio.run(walk())

    told = [record.getMessage() for record in caplog.records]
    assert told.count("disk_full partition=orders/0") == 1
    assert told.count("disk_has_room partition=orders/0") == 1


def test_a_recovery_point_that_does_not_fit_on_the_disk_does_not_stop_a_partition() -> None:
    disk = SimulatedDisk(Random(5))

    async def walk() -> None:
        async with running(disk) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, b"before")
            disk.fill_up(after_bytes=0)
            with pytest.raises(StorageFull):
                await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=1))
            assert not broker.partition(ORDERS_0).is_failed
            disk.faults.heal()
            assert await put(broker, b"after") == Placed(0, 1)
            assert await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=1)) == 1

    asyncio.run(walk())


def test_a_journal_that_fails_ends_the_brokers_work_and_a_new_start_goes_by_the_disk() -> None:
    disk = SimulatedDisk(Random(6))

    async def walk() -> None:
        async with running(disk, BrokerConfig(commit_log=DIRECT)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            disk.faults.fail_syncs(1, under="logs/__metadata")
            with pytest.raises(StorageFailed):
                await alter_settings(
                    broker, AlterSettings(name="orders", changes=[SettingChange("retention.ms", "1234567")])
                )
            assert "journal" in str(await broker.failure)
            with pytest.raises(ShuttingDown):
                await put(broker, b"too late")
        async with running(disk.crash()) as broker:
            assert await put(broker, b"as ever") == Placed(0, 0)

    asyncio.run(walk())


def test_a_change_is_carried_through_when_whoever_asked_goes_away(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            for rest in range(12):
                name = f"topic-{rest}"
                asking = asyncio.ensure_future(create_topic(broker, CreateTopic(name=name, partitions=1)))
                for _ in range(rest):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.gather(asking, *broker.changes, return_exceptions=True)
                is_known = name in broker.metadata.topics
                assert is_known == (name in broker.topics)

    asyncio.run(walk())


def test_a_bug_in_a_flush_leaves_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(file: DiskFile) -> None:
        raise ZeroDivisionError

    async def walk() -> None:
        async with running(
            FolderDisk(tmp_path), BrokerConfig(upkeep_interval_ms=20, commit_log=DIRECT)
        ) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            with monkeypatch.context() as patched:
                patched.setattr(DiskFile, "sync", broken)
                assert isinstance(await put(broker, b"x"), StorageFailed)
            await until(lambda: not broker.partition(ORDERS_0).is_failed)
            assert await put(broker, b"y") == Placed(0, 0)

    asyncio.run(walk())
