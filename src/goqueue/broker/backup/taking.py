"""What a backup keeps, told by a node of what is its own: partitions that it leads, groups it coordinates.

Read in one go on the loop: no message, no commit and no change of a topic lies between the first line and the
last. One node alone knows everything; what several tell is put together by `joined_shares`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from goqueue.broker.broker import Broker
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.topics.settings import MIN_INSYNC
from goqueue.broker.topics.verbs import describe_settings
from goqueue.core.groups.groups import GroupRecord
from goqueue.core.schemas.events import CompatibilityChanged, ModeChanged, ValidationChanged
from goqueue.model.backups import (
    BACKUP_VERSION,
    Backup,
    BackupGroup,
    BackupPartition,
    BackupRegistry,
    BackupSchema,
    BackupStats,
    BackupTopic,
    CreateBackup,
    TakeShare,
)
from goqueue.model.errors import NoLeader, ShuttingDown
from goqueue.model.groups import TopicOffsets
from goqueue.model.settings import HOUR_MS, UNLIMITED, TopicSettings
from goqueue.model.topics import DescribeSettings


async def take_share(broker: Broker, command: TakeShare) -> Backup:
    """What this node knows, as of one moment."""
    if not broker.is_open:
        raise ShuttingDown
    if command.wanted.include_topics:
        # A leader that has just begun may know less than was acknowledged: it asks those in sync first.
        await commit_written(partition for partition in broker.all_partitions() if partition.is_leader)
    if command.wanted.include_schemas and broker.schemas.sharing is not None:
        await broker.schemas.sharing.catch_up()
    return take_backup(broker, command.wanted, command.journals)


def take_backup(broker: Broker, wanted: CreateBackup, journals: Sequence[int] | None = None) -> Backup:
    """The same without a wait: what is written and not yet committed is not there."""
    accounts = broker.tenants.accounts.values() if wanted.include_topics else ()
    return Backup(
        version=BACKUP_VERSION,
        timestamp=_time(broker.clock.wall_ms()),
        broker_id=broker.config.node_id,
        cluster_id=broker.cluster_id,
        topics=tuple(_topics(broker)) if wanted.include_topics else (),
        consumer_groups=tuple(_groups(broker, journals)) if wanted.include_offsets else (),
        schemas=tuple(_schemas(broker)) if wanted.include_schemas else (),
        registry=_registry(broker) if wanted.include_schemas else BackupRegistry(),
        tenants=tuple(account.tenant for account in accounts),
        config=_config(broker) if wanted.include_config else {},
    )


def joined_shares(own: Backup, of_leaders: Sequence[Backup], of_coordinators: Sequence[Backup]) -> Backup:
    """One backup of what several nodes have told. Raises NoLeader for a partition that nobody told of."""
    told: dict[object, dict[int, BackupPartition]] = {}
    for topic in (topic for share in of_leaders for topic in share.topics):
        told.setdefault(topic.topic_id, {}).update((one.id, one) for one in topic.partitions)
    groups = (group for share in of_coordinators for group in share.consumer_groups)
    return replace(
        own,
        topics=tuple(_joined_topic(topic, told[topic.topic_id]) for topic in own.topics),
        consumer_groups=tuple(sorted(groups, key=lambda group: group.group_id)),
    )


def _joined_topic(topic: BackupTopic, told: Mapping[int, BackupPartition]) -> BackupTopic:
    for number in range(topic.num_partitions):
        if number not in told:
            raise NoLeader(topic.name, number)
    return replace(topic, partitions=tuple(told[number] for number in range(topic.num_partitions)))


def counted(backup: Backup, duration_ns: int) -> Backup:
    """With the numbers of what it holds, and how long it took to look at everything."""
    partitions = [partition for topic in backup.topics for partition in topic.partitions]
    stats = BackupStats(
        topic_count=len(backup.topics),
        partition_count=len(partitions),
        total_messages=sum(partition.message_count for partition in partitions),
        total_bytes=sum(partition.size_bytes for partition in partitions),
        consumer_group_count=len(backup.consumer_groups),
        schema_count=len(backup.schemas),
        tenant_count=len(backup.tenants),
        duration_ns=duration_ns,
    )
    return replace(backup, stats=stats)


def _topics(broker: Broker) -> Iterator[BackupTopic]:
    # Thousands of topics share a few sets of settings, and nothing else runs meanwhile.
    texts: dict[TopicSettings, dict[str, str]] = {}
    for name in sorted(broker.topic_counts):
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
            replication_factor=known.replication,
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
                if partition.is_leader
            ),
        )


def _groups(broker: Broker, numbers: Sequence[int] | None) -> Iterator[BackupGroup]:
    journals = broker.coordinator.journals
    asked = journals if numbers is None else map(journals.numbered, numbers)
    records = [record for journal in asked if journal is not None for record in journal.groups]
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


def _config(broker: Broker) -> dict[str, object]:
    """The settings of the node that makes the backup, in the shapes in which they are read back."""
    return {"broker_config": msgspec.json.decode(msgspec.json.encode(broker.config))}


def _time(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)
