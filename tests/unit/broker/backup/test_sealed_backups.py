"""Backups where the node has a key: nothing plain reaches the disk, and what lay there before is read."""

import asyncio
from pathlib import Path

import pytest

from goqueue.broker.backup.restore import restore_backup
from goqueue.broker.backup.verbs import (
    backup_document,
    bring_backup,
    create_backup,
    delete_backup,
    get_backup,
    list_backups,
)
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.backups import (
    BringBackup,
    CreateBackup,
    DeleteBackup,
    FetchBackup,
    GetBackup,
    ListBackups,
    RestoreBackup,
)
from goqueue.model.errors import Corrupt, Invalid
from goqueue.model.ports import SEALED
from goqueue.model.topics import CreateTopic
from goqueue.node.disk import FolderDisk
from goqueue.node.sealing import KeyRing
from tests.unit.broker.running import running

NAME = "a-name-that-nobody-may-read"
RING = KeyRing([bytes(32)])
OTHER = KeyRing([bytes([1] * 32)])


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "backups").rglob("*") if path.is_file()}


def test_a_sealed_backup_is_made_listed_restored_elsewhere_and_deleted(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(FolderDisk(tmp_path / "here"), sealer=RING) as broker:
            await create_topic(broker, CreateTopic(name=NAME, partitions=2))
            made = await create_backup(broker, CreateBackup())
            assert list(files(tmp_path / "here")) == ["metadata.sealed"]
            assert all(NAME.encode() not in data for data in files(tmp_path / "here").values())
            assert [each.backup_id for each in await list_backups(broker, ListBackups())] == [made.backup_id]
            document = await backup_document(broker, FetchBackup(backup_id=made.backup_id))
            assert document.startswith(SEALED)
            await delete_backup(broker, DeleteBackup(backup_id=made.backup_id))
            assert files(tmp_path / "here") == {}
        async with running(FolderDisk(tmp_path / "there"), sealer=RING) as broker:
            brought = await bring_backup(broker, BringBackup(backup_id=made.backup_id, document=document))
            restored = await restore_backup(broker, RestoreBackup(backup_id=brought.backup_id))
            assert restored.topics_restored == 1
            assert NAME in broker.topics

    asyncio.run(story())


def test_who_has_no_key_or_another_is_told_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(FolderDisk(tmp_path / "data"), sealer=RING) as broker:
            made = await create_backup(broker, CreateBackup())
            document = await backup_document(broker, FetchBackup(backup_id=made.backup_id))
        refusals = {"has no GOQUEUE_ENCRYPTION_KEYS": None, "none of those of this node": OTHER}
        for words, sealer in refusals.items():
            async with running(FolderDisk(tmp_path / "data"), sealer=sealer) as broker:
                with pytest.raises(Corrupt, match=words):
                    await get_backup(broker, GetBackup(backup_id=made.backup_id))
                assert await list_backups(broker, ListBackups()) == []
                with pytest.raises(Invalid, match=words):
                    await bring_backup(broker, BringBackup(backup_id="2026-01-31-020000", document=document))

    asyncio.run(story())


def test_what_was_plain_is_read_and_what_comes_plain_is_sealed(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            made = await create_backup(broker, CreateBackup())
            document = await backup_document(broker, FetchBackup(backup_id=made.backup_id))
            assert set(files(tmp_path)) == {"metadata.json"}
        async with running(FolderDisk(tmp_path), sealer=RING) as broker:
            assert (await get_backup(broker, GetBackup(backup_id=made.backup_id))).backup == made.backup
            await bring_backup(broker, BringBackup(backup_id="2026-01-31-020000", document=document))
            assert set(files(tmp_path)) == {"metadata.json", "metadata.sealed"}

    asyncio.run(story())
