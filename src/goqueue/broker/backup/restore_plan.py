"""What a restore would do: topics to make, schemas to bring, offsets to commit, and what stands in the way.

Made in one go before anything is changed. A topic of the same name and birth is the same topic, however it
has grown since: that is how a second restore, after a crash in the middle of the first, knows what is done.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.topics.settings import settings_from
from goqueue.core.schemas.restoring import plan_schemas
from goqueue.model.backups import Backup, BackupGroup, BackupSchema, BackupTopic, RestoreBackup
from goqueue.model.errors import (
    GoQueueError,
    InternalTopic,
    InvalidGroupName,
    InvalidPartitionCount,
    InvalidReplication,
)
from goqueue.model.groups import GroupState, OffsetRow, TopicCommit
from goqueue.model.ids import TopicName
from goqueue.model.names import checked_group_name, checked_topic_name, is_internal
from goqueue.model.schema_commands import RestoreSchemas
from goqueue.model.schemas import SchemaKind, SchemaText, SchemaVersion
from goqueue.model.settings import HOUR_MS
from goqueue.model.tenant_commands import CreateTenant
from goqueue.model.tenants import Tenant
from goqueue.model.topics import CreateTopic

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class RestorePlan:
    topics: list[CreateTopic] = field(default_factory=list)
    schemas: RestoreSchemas = field(default_factory=lambda: RestoreSchemas(backup_id=""))
    groups: dict[str, list[TopicCommit]] = field(default_factory=dict)
    tenants: list[Tenant] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    """What is here already, as the backup has it."""
    conflicts: list[str] = field(default_factory=list)
    """What cannot be restored, because something else is in its place."""


class _Span(NamedTuple):
    """Where a partition begins and ends."""

    start_offset: int
    end_offset: int


def plan_restore(broker: Broker, standing: Backup, backup: Backup, command: RestoreBackup) -> RestorePlan:
    """What is to be done so that the broker has what the backup has; `standing` is what there is now."""
    plan = RestorePlan()
    spans = {TopicName(topic.name): _spans(topic) for topic in standing.topics}
    for topic in backup.topics:
        known_spans = spans.get(TopicName(topic.name), [])
        spans[TopicName(topic.name)] = _plan_topic(broker, topic, known_spans, command, plan)
    _plan_schemas(broker, backup, command, plan)
    groups = {group.group_id: group for group in standing.consumer_groups}
    for group in backup.consumer_groups:
        _plan_group(group, groups.get(group.group_id), spans, command, plan)
    for tenant in backup.tenants:
        _plan_tenant(broker, tenant, plan)
    return plan


def _spans(topic: BackupTopic) -> list[_Span]:
    return [_Span(partition.first_offset, partition.end_offset) for partition in topic.partitions]


def _plan_topic(
    broker: Broker,
    topic: BackupTopic,
    known_spans: list[_Span],
    command: RestoreBackup,
    plan: RestorePlan,
) -> list[_Span]:
    """Where the topic's partitions begin and end once it is there; none when its old offsets mean nothing."""
    known = broker.metadata.topics.get(TopicName(topic.name))
    if known is not None:
        if known.created_ms == _created_ms(topic):
            plan.present.append(f"topic {topic.name} is here already")
            return known_spans
        plan.conflicts.append(f"topic {topic.name} is another one here, made {_time(known.created_ms)}")
        return []
    creation = _creation(broker, topic, data_follows=command.data_follows)
    try:
        _check(broker, creation)
    except GoQueueError as error:
        plan.conflicts.append(f"topic {topic.name} cannot be made here: {error}")
        return []
    plan.topics.append(creation)
    return [_Span(offset, offset) for offset in creation.first_offsets]


def _creation(broker: Broker, topic: BackupTopic, *, data_follows: bool) -> CreateTopic:
    settings = dict(topic.settings)
    if not settings and topic.retention_hours > 0:
        settings = {"retention.ms": str(topic.retention_hours * HOUR_MS)}
    first_offsets = [0] * topic.num_partitions
    for partition in topic.partitions:
        if 0 <= partition.id < topic.num_partitions:
            offset = partition.first_offset if data_follows else partition.end_offset
            first_offsets[partition.id] = max(offset, 0)
    return CreateTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication=_copies(broker, topic),
        settings=settings,
        # Quotas are for what tenants do: a topic that was there may come back.
        is_own=True,
        created_ms=_created_ms(topic),
        first_offsets=first_offsets,
    )


def _copies(broker: Broker, topic: BackupTopic) -> int:
    """As many as there were, where there are nodes enough; a single one says nothing: it was one node's."""
    if broker.shared_topics is None or topic.replication_factor <= 1:
        return -1
    try:
        return broker.shared_topics.copies(topic.replication_factor)
    except InvalidReplication:
        return -1


def _check(broker: Broker, creation: CreateTopic) -> None:
    """Refuse now what could not be created later."""
    if is_internal(checked_topic_name(creation.name)):
        raise InternalTopic(creation.name)
    count_max = broker.config.limits.partitions_per_topic
    if creation.partitions is None or not 1 <= creation.partitions <= count_max:
        raise InvalidPartitionCount(f"a topic has 1 to {count_max} partitions, not {creation.partitions}")
    settings_from(creation.settings, defaults=broker.config.topic_defaults)


def _plan_schemas(broker: Broker, backup: Backup, command: RestoreBackup, plan: RestorePlan) -> None:
    versions = []
    for schema in backup.schemas:
        try:
            versions.append(_version(schema))
        except ValueError as error:
            plan.conflicts.append(f"schema {schema.subject} version {schema.version}: {error}")
    registry = backup.registry
    plan.schemas = RestoreSchemas(
        backup_id=command.backup_id,
        versions=versions,
        compatibility=registry.compatibility,
        modes=registry.modes,
        validation=registry.validation,
        next_id=registry.next_id,
        skip_existing=command.skip_existing,
    )
    planned = plan_schemas(broker.schemas.registry, plan.schemas)
    plan.present += planned.present
    plan.conflicts += planned.conflicts


def _version(schema: BackupSchema) -> SchemaVersion:
    text = SchemaText(SchemaKind(schema.schema_type.upper()), schema.schema, schema.references)
    return SchemaVersion(schema.subject, schema.version, schema.id, text, schema.is_deleted)


def _plan_group(
    group: BackupGroup,
    known: BackupGroup | None,
    spans: Mapping[TopicName, list[_Span]],
    command: RestoreBackup,
    plan: RestorePlan,
) -> None:
    """The offsets that the group lacks. Those it has are either the same or in the way."""
    try:
        if known is None:
            checked_group_name(group.group_id)
    except InvalidGroupName as error:
        plan.conflicts.append(f"a group cannot be made here: {error}")
        return
    present = {} if known is None else {(topic, row[0]): row[1] for topic, row in _rows(known)}
    commits: dict[TopicName, list[OffsetRow]] = {}
    is_present = False
    for topic, row in _rows(group):
        span = _span_of(spans, topic, row[0])
        if span is None:
            plan.conflicts.append(f"group {group.group_id}: the backup's {topic}/{row[0]} is not here")
            continue
        # Beyond the end, messages still to be published would be passed over.
        offset = row[1] if command.data_follows else min(max(row[1], span.start_offset), span.end_offset)
        stands_at = present.get((topic, row[0]))
        if stands_at is None:
            commits.setdefault(topic, []).append((row[0], offset, -1, row[3]))
        elif stands_at == offset:
            is_present = True
        else:
            plan.conflicts.append(
                f"group {group.group_id} stands at {stands_at} in {topic}/{row[0]} here, not at {offset}"
            )
    if is_present:
        plan.present.append(f"offsets of group {group.group_id} are here already")
    if not commits:
        return
    if known is not None and known.state != GroupState.EMPTY.value:
        plan.conflicts.append(f"group {group.group_id} has members; offsets are restored while it has none")
        return
    plan.groups[group.group_id] = [TopicCommit(topic, rows) for topic, rows in commits.items()]


def _plan_tenant(broker: Broker, tenant: Tenant, plan: RestorePlan) -> None:
    """As with topics: one of the same id and birth is the same."""
    known = broker.tenants.accounts.get(tenant.tenant_id)
    if known is not None and known.tenant.created_ms == tenant.created_ms:
        plan.present.append(f"tenant {tenant.tenant_id} is here already")
        return
    try:
        broker.tenants.create(CreateTenant(name=tenant.name, tenant_id=tenant.tenant_id), now_ms=0)
    except GoQueueError as error:
        plan.conflicts.append(f"tenant {tenant.tenant_id} cannot be made here: {error}")
    else:
        plan.tenants.append(tenant)


def _rows(group: BackupGroup) -> Iterator[tuple[TopicName, OffsetRow]]:
    for topic, offsets in group.offsets.items():
        texts = group.offset_metadata.get(topic, {})
        for partition, offset in offsets.items():
            yield TopicName(topic), (partition, offset, -1, texts.get(partition, ""))


def _span_of(spans: Mapping[TopicName, list[_Span]], topic: TopicName, partition: int) -> _Span | None:
    of_topic = spans.get(topic, [])
    return of_topic[partition] if 0 <= partition < len(of_topic) else None


def _created_ms(topic: BackupTopic) -> int | None:
    """When the topic was made; None for a file that does not know."""
    created_at = topic.created_at if topic.created_at.tzinfo else topic.created_at.replace(tzinfo=UTC)
    return None if created_at <= _EPOCH else (created_at - _EPOCH) // timedelta(milliseconds=1)


def _time(time_ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(timespec="seconds")
