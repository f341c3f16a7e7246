"""The verbs on backups: create, list, look at, bring from elsewhere, delete.

Of several nodes the one that decides makes backups and takes in those that are brought, and each tells of
those it keeps. Messages are not in a backup, nor is what waits to be delivered later.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from goqueue.broker.backup.store import KeptBackup
from goqueue.broker.backup.taking import counted, take_share
from goqueue.broker.broker import Broker
from goqueue.log.partition_log import storage_error
from goqueue.model.backups import (
    BackupListing,
    BringBackup,
    CreateBackup,
    DeleteBackup,
    FetchBackup,
    GetBackup,
    ListBackups,
    TakeShare,
)
from goqueue.model.errors import BackupExists, ShuttingDown

P = ParamSpec("P")
T = TypeVar("T")


async def create_backup(broker: Broker, command: CreateBackup) -> KeptBackup:
    """Keep what the broker knows now; returns when the disk has it. The oldest make room."""
    admit_backups(broker)
    return await broker.carry_out(_create_backup(broker, command), broker.backups.lock)


async def _create_backup(broker: Broker, command: CreateBackup) -> KeptBackup:
    begun_ns = broker.clock.monotonic_ns()
    taken = await broker.at_home(take_share, TakeShare(wanted=command))
    backup = counted(taken, broker.clock.monotonic_ns() - begun_ns)
    backup_id = await on_disk(broker, broker.backups.add, backup, await _ids_elsewhere(broker))
    await on_disk(broker, broker.backups.thin, broker.config.backup_count_max, backup_id)
    return KeptBackup(backup_id, backup)


async def list_backups(broker: Broker, command: ListBackups) -> list[BackupListing]:
    """All backups, the newest first."""
    admit_backups(broker)
    return await on_disk(broker, broker.backups.listings)


async def get_backup(broker: Broker, command: GetBackup) -> KeptBackup:
    """One backup."""
    admit_backups(broker)
    return await on_disk(broker, broker.backups.get, command.backup_id)


async def backup_document(broker: Broker, command: FetchBackup) -> bytes:
    """The file of a backup as it lies on the disk, to be kept elsewhere."""
    admit_backups(broker)
    return await on_disk(broker, broker.backups.document, command.backup_id)


async def bring_backup(broker: Broker, command: BringBackup) -> KeptBackup:
    """Take in the file of a backup that was kept elsewhere."""
    admit_backups(broker)
    return await broker.carry_out(_bring_backup(broker, command), broker.backups.lock)


async def _bring_backup(broker: Broker, command: BringBackup) -> KeptBackup:
    if command.backup_id in await _ids_elsewhere(broker):
        raise BackupExists(command.backup_id)
    return await on_disk(broker, broker.backups.bring, command.backup_id, command.document)


async def delete_backup(broker: Broker, command: DeleteBackup) -> None:
    """Delete a backup for good."""
    admit_backups(broker)
    await broker.carry_out(on_disk(broker, broker.backups.remove, command.backup_id), broker.backups.lock)


async def _ids_elsewhere(broker: Broker) -> set[str]:
    """The backups that other nodes keep, and those of this one that can be read."""
    if not broker.is_one_of_several:
        return set()
    return {listing.backup_id for listing in await broker.at_home(list_backups, ListBackups())}


def admit_backups(broker: Broker) -> None:
    if not broker.is_open:
        raise ShuttingDown


async def on_disk(broker: Broker, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Work on the files of backups, in a thread, with the errors of the house."""
    try:
        return await broker.threads.run(work, *args, **kwargs)
    except OSError as error:
        raise storage_error(error, "the files of backups") from error
