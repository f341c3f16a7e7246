"""Whole backups: what a broker held at one moment comes back in another folder, and goes on there."""

import asyncio
from pathlib import Path

import pytest

from goqueue.broker.backup.whole.bringing_back import bring_back, check
from goqueue.broker.backup.whole.catalogue import Catalogue
from goqueue.broker.backup.whole.disk_objects import WHOLE_FOLDER, DiskObjects
from goqueue.broker.backup.whole.verbs import (
    KEPT_FOLDER,
    begin_whole_backup,
    delete_whole_backup,
    list_whole_backups,
)
from goqueue.broker.broker import Broker
from goqueue.broker.topics.verbs import create_topic, delete_records, delete_topic
from goqueue.model.errors import BackupNotFound, BackupUnderWay, Corrupt
from goqueue.model.ports import Disk, Sealer
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic, DeleteRecords, DeleteTopic
from goqueue.model.whole_backups import (
    BeginWholeBackup,
    DeleteWholeBackup,
    ListWholeBackups,
    WholeListing,
    WholeState,
)
from goqueue.node.disk import FolderDisk
from goqueue.node.sealing import KeyRing
from tests.unit.broker.queue.queue_steps import Consumer, ack, join, orders, put, stored, take, values
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until

RING = KeyRing([bytes(32)])


async def backed_up(broker: Broker) -> WholeListing:
    begun = await begin_whole_backup(broker, BeginWholeBackup())
    assert begun.state is WholeState.RUNNING
    await until(lambda: broker.whole_backups.copying is None)
    newest, *_ = await list_whole_backups(broker, ListWholeBackups())
    assert (newest.backup_id, newest.state, newest.failure) == (begun.backup_id, WholeState.DONE, "")
    return newest


def brought_back(source: Disk, target: Disk, backup_id: str, sealer: Sealer | None = None) -> None:
    catalogue = Catalogue(DiskObjects(source, WHOLE_FOLDER), sealer)
    manifest = catalogue.manifest(backup_id)
    assert check(catalogue, manifest, lambda _: None) == []
    bring_back(catalogue, manifest, target, lambda _: None)


async def texts(broker: Broker) -> list[str]:
    return [(message.value or b"").decode() for message in await stored(broker, ORDERS)]


@pytest.mark.parametrize("sealer", [None, RING])
def test_messages_offsets_and_leases_come_back_as_they_were_at_the_moment(
    tmp_path: Path, sealer: Sealer | None
) -> None:
    here, there = FolderDisk(tmp_path / "here"), FolderDisk(tmp_path / "there")

    async def before() -> tuple[str, Consumer]:
        async with running(here, sealer=sealer) as broker:
            await orders(broker)
            await put(broker, "a", "b", "c", "d")
            await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=1))
            worker = await join(broker)
            taken = await take(broker, worker, 2, visibility_ms=1_800_000)
            assert values(taken) == ["b", "c"]
            await ack(broker, taken[:1])
            backup = await backed_up(broker)
            await ack(broker, taken[1:])
            await put(broker, "later")
            return backup.backup_id, worker

    async def after(worker: Consumer) -> None:
        async with running(there) as broker:
            assert await texts(broker) == ["b", "c", "d"]
            taken = await take(broker, worker)
            assert values(taken) == ["d"], "b is acknowledged, c is out with somebody"
            await put(broker, "e")
            assert await texts(broker) == ["b", "c", "d", "e"]

    backup_id, worker = asyncio.run(before())
    brought_back(here, there, backup_id, sealer)
    asyncio.run(after(worker))


def test_what_goes_while_it_is_copied_is_in_it_all_the_same(tmp_path: Path) -> None:
    here, there = FolderDisk(tmp_path / "here"), FolderDisk(tmp_path / "there")

    async def before() -> str:
        async with running(here) as broker:
            await orders(broker)
            await put(broker, "a", "b")
            begun = await begin_whole_backup(broker, BeginWholeBackup())
            # Nothing is copied before this: the task has not had its turn.
            await delete_topic(broker, DeleteTopic(name=ORDERS))
            await orders(broker)
            await put(broker, "another")
            await until(lambda: broker.whole_backups.copying is None)
            return begun.backup_id

    async def after() -> None:
        async with running(there) as broker:
            assert await texts(broker) == ["a", "b"]

    backup_id = asyncio.run(before())
    assert not (tmp_path / "here" / KEPT_FOLDER).exists()
    brought_back(here, there, backup_id)
    asyncio.run(after())


def test_a_second_backup_copies_what_is_new_and_outlives_the_first(tmp_path: Path) -> None:
    here, there = FolderDisk(tmp_path / "here"), FolderDisk(tmp_path / "there")

    async def before() -> str:
        async with running(here) as broker:
            await orders(broker, partitions=1)
            for _ in range(20):
                await put(broker, *["x" * 100_000] * 5)
            first = await backed_up(broker)
            second = await backed_up(broker)
            assert second.size_bytes >= first.size_bytes > 10_000_000
            assert second.new_bytes < first.new_bytes / 20
            assert second.backup_id > first.backup_id
            await delete_whole_backup(broker, DeleteWholeBackup(backup_id=first.backup_id))
            listed = await list_whole_backups(broker, ListWholeBackups())
            assert [each.backup_id for each in listed] == [second.backup_id]
            return second.backup_id

    async def after() -> None:
        async with running(there) as broker:
            assert broker.topics[ORDERS].partitions[0].commit_mark == 100

    backup_id = asyncio.run(before())
    brought_back(here, there, backup_id)
    asyncio.run(after())


def test_only_the_newest_are_kept_and_nothing_of_the_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(FolderDisk(tmp_path), BrokerConfig(backup_count_max=2)) as broker:
            await orders(broker)
            made = []
            for number in range(4):
                await put(broker, str(number))
                made.append((await backed_up(broker)).backup_id)
            listed = await list_whole_backups(broker, ListWholeBackups())
            assert [each.backup_id for each in listed] == made[:1:-1]
            catalogue = broker.whole_backups.catalogue
            for each in listed:
                assert check(catalogue, catalogue.manifest(each.backup_id), lambda _: None) == []
            with pytest.raises(BackupNotFound):
                await delete_whole_backup(broker, DeleteWholeBackup(backup_id=made[0]))

    asyncio.run(story())


def test_there_is_one_at_a_time(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await begin_whole_backup(broker, BeginWholeBackup())
            with pytest.raises(BackupUnderWay):
                await begin_whole_backup(broker, BeginWholeBackup())
            with pytest.raises(BackupUnderWay):
                await delete_whole_backup(broker, DeleteWholeBackup(backup_id="2026-01-01-000000"))
            await until(lambda: broker.whole_backups.copying is None)

    asyncio.run(story())


def test_a_byte_that_has_changed_is_found_before_anything_counts(tmp_path: Path) -> None:
    here, there = FolderDisk(tmp_path / "here"), FolderDisk(tmp_path / "there")

    async def before() -> str:
        async with running(here) as broker:
            await orders(broker)
            await put(broker, "a")
            return (await backed_up(broker)).backup_id

    backup_id = asyncio.run(before())
    path = tmp_path / "here" / WHOLE_FOLDER / backup_id / "000001"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    catalogue = Catalogue(DiskObjects(here, WHOLE_FOLDER), None)
    manifest = catalogue.manifest(backup_id)
    assert check(catalogue, manifest, lambda _: None) != []
    with pytest.raises(Corrupt):
        bring_back(catalogue, manifest, there, lambda _: None)


def test_a_backup_that_was_broken_off_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goqueue.broker.backup.whole.copying.SAVE_EVERY_BYTES", 1_000_000)

    async def begun() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=8))
            for _ in range(16):
                await put(broker, *["x" * 50_000] * 10)
            await begin_whole_backup(broker, BeginWholeBackup())
            copying = broker.whole_backups.copying
            assert copying is not None
            await until(lambda: copying.done_bytes > 3_000_000)

    async def gone_on() -> WholeListing:
        async with running(FolderDisk(tmp_path)) as broker:
            return await backed_up(broker)

    asyncio.run(begun())
    backup = asyncio.run(gone_on())
    assert backup.new_bytes < backup.size_bytes
