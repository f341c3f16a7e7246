"""Backups of what a broker knows of topics, groups and schemas: make them, look at them, bring them back."""

from datetime import datetime

import msgspec

from goqueue.client.call import BYTES, Call, body_of, json_of, path


class BackupStats(msgspec.Struct, frozen=True):
    """What a backup holds, counted. Messages and bytes are those of the topics: they are not in it."""

    topic_count: int
    partition_count: int
    total_messages: int
    total_bytes: int
    consumer_group_count: int
    schema_count: int
    tenant_count: int
    duration_ns: int
    duration_human: str


class BackupCreated(msgspec.Struct, frozen=True):
    backup_id: str
    timestamp: datetime
    broker_id: str
    cluster_id: str
    stats: BackupStats


class BackupListed(msgspec.Struct, frozen=True):
    """A backup in a line."""

    backup_id: str
    timestamp: datetime
    broker_id: str
    topics: int
    consumer_groups: int
    schemas: int


class BackupTopic(msgspec.Struct, frozen=True):
    name: str
    num_partitions: int


class BackupGroup(msgspec.Struct, frozen=True):
    group_id: str
    state: str


class BackupSchema(msgspec.Struct, frozen=True):
    subject: str
    version: int


class Backup(msgspec.Struct, frozen=True):
    """A backup with the names of what it holds."""

    backup_id: str
    version: str
    timestamp: datetime
    broker_id: str
    cluster_id: str
    topics: list[BackupTopic]
    consumer_groups: list[BackupGroup]
    schemas: list[BackupSchema]
    stats: BackupStats


class BackupRestored(msgspec.Struct, frozen=True):
    """What was brought back, and in words what was left as it is."""

    backup_id: str
    topics_restored: int
    groups_restored: int
    schemas_restored: int
    tenants_restored: int
    skipped: list[str]


class _BackupList(msgspec.Struct):
    backups: list[BackupListed]


def create(
    *, topics: bool = True, offsets: bool = True, schemas: bool = True, config: bool = True
) -> Call[BackupCreated]:
    """Keep what the broker knows now. Twice makes two, of which the older goes first."""
    return Call(
        method="POST",
        path="/admin/backup",
        decode=json_of(BackupCreated),
        body=body_of(
            include_topics=topics, include_offsets=offsets, include_schemas=schemas, include_config=config
        ),
        is_repeatable=False,
    )


def list_backups() -> Call[list[BackupListed]]:
    """All backups, the newest first."""
    decode = json_of(_BackupList)
    return Call(method="GET", path="/admin/backup", decode=lambda reply: decode(reply).backups)


def get(backup_id: str) -> Call[Backup]:
    """What a backup holds, by name."""
    return Call(method="GET", path=path("admin", "backup", backup_id), decode=json_of(Backup))


def download(backup_id: str) -> Call[bytes]:
    """The file of a backup, to be kept elsewhere."""
    return Call(
        method="GET", path=path("admin", "backup", backup_id, "metadata"), decode=lambda reply: reply.body
    )


def upload(backup_id: str, document: bytes) -> Call[BackupCreated]:
    """Bring the file of a backup that was kept elsewhere."""
    return Call(
        method="PUT",
        path=path("admin", "backup", backup_id),
        decode=json_of(BackupCreated),
        body=document,
        content_type=BYTES,
        is_repeatable=False,
    )


def delete(backup_id: str) -> Call[None]:
    """Delete a backup."""
    return Call(
        method="DELETE",
        path=path("admin", "backup", backup_id),
        decode=lambda reply: None,
        is_repeatable=False,
    )


def restore(
    backup_id: str, *, skip_existing: bool = False, data_follows: bool = False
) -> Call[BackupRestored]:
    """Bring back what is not there. What is there and differs is in the way, or left as it is.

    `data_follows`: messages will be restored into the topics before anybody uses them, so partitions begin
    where they began and groups stand where they stood.
    """
    return Call(
        method="POST",
        path=path("admin", "backup", backup_id, "restore"),
        decode=json_of(BackupRestored),
        body=body_of(skip_existing=skip_existing, data_follows=data_follows),
    )
