"""The verbs on backups: create, list, look at, bring from elsewhere, delete.

A backup is what the broker knows, read in one go on the loop: no message, no commit and no change of a
topic lies between its first line and its last. Messages themselves are not in it, nor is what waits to be
delivered later.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar

import msgspec

from goqueue.broker.backup.store import KeptBackup
from goqueue.broker.broker import Broker
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.topics.settings import MIN_INSYNC
from goqueue.broker.topics.verbs import describe_settings
from goqueue.core.groups.groups import GroupRecord
from goqueue.core.schemas.events import CompatibilityChanged, ModeChanged, ValidationChanged
from goqueue.log.partition_log import storage_error
from goqueue.model.backups import (
    BACKUP_VERSION,
    Backup,
    BackupGroup,
    BackupPartition,
    BackupRegistry,
    BackupSchema,
    BackupStats,
    BackupTopic,
    BringBackup,
    CreateBackup,
    DeleteBackup,
    FetchBackup,
    GetBackup,
    ListBackups,
)
from goqueue.model.errors import ShuttingDown
from goqueue.model.groups import TopicOffsets
from goqueue.model.settings import HOUR_MS, UNLIMITED, TopicSettings
from goqueue.model.topics import DescribeSettings

P = ParamSpec("P")
T = TypeVar("T")


async def create_backup(broker: Broker, command: CreateBackup) -> KeptBackup:
    """Keep what the broker knows now; returns when the disk has it. The oldest make room."""
    admit_backups(broker)
    broker.admit_alone("backups")  # one of several nodes knows but its own groups and partitions
    return await broker.carry_out(_create_backup(broker, command), broker.backups.lock)


async def _create_backup(broker: Broker, command: CreateBackup) -> KeptBackup:
    await commit_written(broker.all_partitions())
    backup = take_backup(broker, command)
    backup_id = await on_disk(broker, broker.backups.add, backup)
    await on_disk(broker, broker.backups.thin, broker.config.backup_count_max, backup_id)
    return KeptBackup(backup_id, backup)


async def list_backups(broker: Broker, command: ListBackups) -> list[KeptBackup]:
    """All backups, the newest first."""
    admit_backups(broker)
    return await on_disk(broker, broker.backups.all)


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
    change = on_disk(broker, broker.backups.bring, command.backup_id, command.document)
    return await broker.carry_out(change, broker.backups.lock)


async def delete_backup(broker: Broker, command: DeleteBackup) -> None:
    """Delete a backup for good."""
    admit_backups(broker)
    await broker.carry_out(on_disk(broker, broker.backups.remove, command.backup_id), broker.backups.lock)


def admit_backups(broker: Broker) -> None:
    if not broker.is_open:
        raise ShuttingDown


async def on_disk(broker: Broker, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Work on the files of backups, in a thread, with the errors of the house."""
    try:
        return await broker.threads.run(work, *args, **kwargs)
    except OSError as error:
        raise storage_error(error, "the files of backups") from error


def take_backup(broker: Broker, command: CreateBackup) -> Backup:
    """What the broker knows, as of this moment."""
    begun_ns = broker.clock.monotonic_ns()
    topics = tuple(_topics(broker)) if command.include_topics else ()
    groups = tuple(_groups(broker)) if command.include_offsets else ()
    schemas = tuple(_schemas(broker)) if command.include_schemas else ()
    accounts = broker.tenants.accounts.values() if command.include_topics else ()
    tenants = tuple(account.tenant for account in accounts)
    partitions = [partition for topic in topics for partition in topic.partitions]
    stats = BackupStats(
        topic_count=len(topics),
        partition_count=len(partitions),
        total_messages=sum(partition.message_count for partition in partitions),
        total_bytes=sum(partition.size_bytes for partition in partitions),
        consumer_group_count=len(groups),
        schema_count=len(schemas),
        tenant_count=len(tenants),
    )
    backup = Backup(
        version=BACKUP_VERSION,
        timestamp=_time(broker.clock.wall_ms()),
        broker_id=broker.config.node_id,
        cluster_id=broker.cluster_id,
        topics=topics,
        consumer_groups=groups,
        schemas=schemas,
        registry=_registry(broker) if command.include_schemas else BackupRegistry(),
        tenants=tenants,
        config={"broker_config": msgspec.to_builtins(broker.config)} if command.include_config else {},
    )
    return replace(backup, stats=replace(stats, duration_ns=broker.clock.monotonic_ns() - begun_ns))


def _topics(broker: Broker) -> Iterator[BackupTopic]:
    # Thousands of topics share a few sets of settings, and nothing else runs meanwhile.
    texts: dict[TopicSettings, dict[str, str]] = {}
    for name in sorted(broker.topics):
        known = broker.metadata.topics[name]
        retention_ms = known.settings.retention_ms
        if known.settings not in texts:
            texts[known.settings] = {
                view.name: view.value
                for view in describe_settings(broker, DescribeSettings(name=name))
                # How many copies must agree goes by how many there are, unless somebody has said it.
                if view.name != MIN_INSYNC or not view.is_default
            }
        yield BackupTopic(
            name=name,
            num_partitions=known.partitions,
            created_at=_time(known.created_ms),
            topic_id=known.topic_id,
            retention_hours=UNLIMITED if retention_ms == UNLIMITED else retention_ms // HOUR_MS,
            settings=texts[known.settings],
            # A partition that the disk has failed does not know where it ends: then there is no backup.
            partitions=tuple(
                BackupPartition(
                    id=number,
                    first_offset=partition.log.start_offset,
                    last_offset=partition.commit_mark - 1,
                    message_count=partition.commit_mark - partition.log.start_offset,
                    size_bytes=partition.log.size_bytes,
                )
                for number, partition in enumerate(broker.topics[name].partitions)
            ),
        )


def _groups(broker: Broker) -> Iterator[BackupGroup]:
    records = [record for journal in broker.coordinator.journals for record in journal.groups]
    for record in sorted(records, key=lambda record: record.membership.name):
        topics = list(live_offsets(broker, record))
        yield BackupGroup(
            group_id=record.membership.name,
            state=record.membership.state.value,
            kind=record.kind.value,
            offsets={topic: {row[0]: row[1] for row in rows} for topic, _, rows, _ in topics},
            offset_metadata={
                topic: texts
                for topic, _, rows, _ in topics
                if (texts := {row[0]: row[3] for row in rows if row[3]})
            },
            last_seen_at=_time(record.seen_ms) if record.seen_ms else None,
        )


def live_offsets(broker: Broker, record: GroupRecord) -> Iterator[TopicOffsets]:
    """What a group has committed, without topics that are gone or were made anew since."""
    for offsets in record.offsets.topics():
        known = broker.metadata.topics.get(offsets.topic)
        if known is not None and known.topic_id == offsets.topic_id:
            yield offsets


def _schemas(broker: Broker) -> Iterator[BackupSchema]:
    registry = broker.schemas.registry
    for place in registry.all_versions():
        yield BackupSchema(
            subject=place.subject,
            version=place.version,
            id=place.schema_id,
            schema_type=place.schema.kind.value,
            schema=place.schema.text,
            references=place.schema.references,
            compatibility=registry.settings.compatibility(place.subject).value,
            is_deleted=place.is_deleted,
        )


def _registry(broker: Broker) -> BackupRegistry:
    compatibility, modes, validation = {}, {}, {}
    for event in broker.schemas.registry.settings.whole_state():
        match event:
            case CompatibilityChanged():
                compatibility[event.subject] = event.level or ""
            case ModeChanged():
                modes[event.subject] = event.mode or ""
            case ValidationChanged():
                validation[event.subject] = bool(event.is_enabled)
    return BackupRegistry(
        next_id=broker.schemas.registry.next_id,
        compatibility=compatibility,
        modes=modes,
        validation=validation,
    )


def _time(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)
