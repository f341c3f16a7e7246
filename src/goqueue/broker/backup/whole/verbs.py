"""Whole backups of a node that goes on: begin one, see how far it is, delete one."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime

from goqueue.broker.backup.verbs import admit_backups, on_disk
from goqueue.broker.backup.whole.copying import Copying, Cut
from goqueue.broker.backup.whole.state import WholeBackups
from goqueue.broker.broker import Broker
from goqueue.model.errors import BackupUnderWay, GoQueueError, Invalid
from goqueue.model.whole_backups import (
    BeginWholeBackup,
    DeleteWholeBackup,
    ListWholeBackups,
    Manifest,
    PartitionCut,
    WholeListing,
    WholeState,
)

log = logging.getLogger(__name__)

KEPT_FOLDER = "backups/.kept"
_ID_FORMAT = "%Y-%m-%d-%H%M%S"
_NS_PER_S = 1_000_000_000


async def begin_whole_backup(broker: Broker, command: BeginWholeBackup) -> WholeListing:
    """Note the moment; copying goes on by itself. One at a time."""
    admit_backups(broker)
    whole = broker.whole_backups
    if broker.is_one_of_several:
        raise Invalid("a whole backup of several nodes cannot be made yet: back up what they know")
    if whole.copying is not None:
        raise BackupUnderWay("a backup is being made: wait until it is done")
    for partition in broker.all_partitions():
        partition.admit_read()  # a backup of what is damaged would hide it
    newest = await on_disk(broker, whole.catalogue.newest_id)
    if whole.copying is not None:
        raise BackupUnderWay("a backup is being made: wait until it is done")
    backup_id = _new_id(broker, newest)
    await on_disk(broker, broker.disk.keep_removed, KEPT_FOLDER)
    # No await from here to the cut: one turn of the loop is the moment.
    cut = take_cut(broker, backup_id)
    whole.copying = Copying(broker.disk, whole.catalogue, cut)
    whole.last_failure = None
    whole.last_taken_ms = cut.taken_ms
    broker.keep(asyncio.get_running_loop().create_task(_copy(broker, whole, whole.copying)))
    return _progress(whole.copying)


def take_cut(broker: Broker, backup_id: str) -> Cut:
    """Where all partitions are now."""
    return Cut(
        backup_id=backup_id,
        taken_ms=broker.clock.wall_ms(),
        node_id=broker.config.node_id,
        cluster_id=broker.metadata.cluster_id,
        partitions=[
            PartitionCut(
                folder=partition.folder,
                topic_id=str(partition.topic_id),
                start_offset=partition.log.start_offset,
                end_offset=partition.commit_mark,
                gaps=partition.log.gaps,
            )
            for partition in broker.all_partitions()
        ],
    )


async def list_whole_backups(broker: Broker, command: ListWholeBackups) -> list[WholeListing]:
    """All that are whole, the newest first; before them the one under way, or that failed last."""
    admit_backups(broker)
    whole = broker.whole_backups
    copying, failed = whole.copying, whole.last_failure
    first = [_progress(copying)] if copying is not None else [failed] if failed is not None else []
    return first + [_listing(each) for each in await on_disk(broker, whole.catalogue.manifests)]


async def delete_whole_backup(broker: Broker, command: DeleteWholeBackup) -> None:
    """Delete one, with what no other refers to."""
    admit_backups(broker)
    whole = broker.whole_backups
    if whole.copying is not None:
        raise BackupUnderWay("a backup is being made, which may refer to this one: wait until it is done")
    await broker.carry_out(on_disk(broker, whole.catalogue.remove, command.backup_id), whole.lock)


async def keep_up_backups(broker: Broker) -> None:
    """Begin one when the last is old enough, as the settings say."""
    whole, interval_ms = broker.whole_backups, broker.config.backup_interval_ms
    if not interval_ms or whole.copying is not None or broker.is_one_of_several:
        return
    if whole.last_taken_ms is None:
        manifests = await on_disk(broker, whole.catalogue.manifests)
        whole.last_taken_ms = max((each.taken_ms for each in manifests), default=0)
    if broker.clock.wall_ms() - whole.last_taken_ms >= interval_ms:
        await begin_whole_backup(broker, BeginWholeBackup())


async def _copy(broker: Broker, whole: WholeBackups, copying: Copying) -> None:
    """Step by step to the end, at most at the rate that the settings allow."""
    steps = copying.steps()
    begun_ns = broker.clock.monotonic_ns()
    read_bytes = 0
    try:
        while (step := await broker.threads.run(next, steps, None)) is not None:
            read_bytes += step
            due_ns = begun_ns + read_bytes * _NS_PER_S // broker.config.backup_bytes_per_s
            await asyncio.sleep(max(due_ns - broker.clock.monotonic_ns(), 0) / _NS_PER_S)
        async with whole.lock:
            await broker.threads.run(whole.catalogue.thin, broker.config.backup_count_max)
        log.info("backup_made id=%s bytes=%d", copying.cut.backup_id, copying.new_bytes)
    except (OSError, GoQueueError) as error:
        log.warning("backup_failed id=%s reason=%s", copying.cut.backup_id, error)
        whole.last_failure = replace(_progress(copying), state=WholeState.FAILED, failure=str(error))
    finally:
        whole.copying = None
        await broker.threads.run(broker.disk.forget_removed)


def _new_id(broker: Broker, newest: str) -> str:
    """Greater than all before, also where the clock was set back: the newest is found by its name."""
    second = datetime.fromtimestamp(broker.clock.wall_ms() // 1000, UTC).strftime(_ID_FORMAT)
    if second > newest:
        return second
    before, number = newest[: len(second)], newest[len(second) + 1 :]
    return f"{before}-{int(number or 1) + 1:04}"


def _progress(copying: Copying) -> WholeListing:
    return WholeListing(
        backup_id=copying.cut.backup_id,
        state=WholeState.RUNNING,
        taken_ms=copying.cut.taken_ms,
        partition_count=len(copying.cut.partitions),
        size_bytes=copying.done_bytes,
        new_bytes=copying.new_bytes,
        total_bytes=copying.total_bytes,
    )


def _listing(manifest: Manifest) -> WholeListing:
    return WholeListing(
        backup_id=manifest.backup_id,
        state=WholeState.DONE,
        taken_ms=manifest.taken_ms,
        partition_count=len(manifest.partitions),
        size_bytes=manifest.size_bytes,
        new_bytes=manifest.new_bytes,
        total_bytes=manifest.size_bytes,
    )
