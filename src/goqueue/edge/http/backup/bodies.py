"""The JSON of backups."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class CreateBackupBody(Struct):
    """What to keep; without a body everything is."""

    include_topics: bool = True
    include_offsets: bool = True
    include_schemas: bool = True
    include_config: Annotated[bool, Meta(description="The broker's settings, to be looked at.")] = True


class RestoreBody(Struct):
    skip_existing: Annotated[
        bool, Meta(description="Leave what is there and differs as it is, instead of refusing.")
    ] = False
    data_follows: Annotated[
        bool,
        Meta(
            description="Messages will be restored into the topics before anybody uses them: partitions "
            "begin where they began, not where they ended, and groups stand where they stood."
        ),
    ] = False


class BackupStatsBody(Struct):
    topic_count: int
    partition_count: int
    total_messages: int
    total_bytes: int
    consumer_group_count: int
    schema_count: int
    tenant_count: int
    duration_ns: int
    duration_human: str


class BackupCreated(Struct):
    """A backup that is on the disk, or was brought there."""

    backup_id: str
    timestamp: str
    broker_id: str
    cluster_id: str
    stats: BackupStatsBody


class BackupListed(Struct):
    """A backup with what it holds, counted."""

    backup_id: str
    timestamp: str
    broker_id: str
    topics: int
    consumer_groups: int
    schemas: int


class BackupList(Struct):
    """All backups, the newest first."""

    backups: list[BackupListed]


class BackupTopicBody(Struct):
    name: str
    num_partitions: int


class BackupGroupBody(Struct):
    group_id: str
    state: str


class BackupSchemaBody(Struct):
    subject: str
    version: int


class BackupBody(Struct):
    """A backup with the names of what it holds."""

    backup_id: str
    version: str
    timestamp: str
    broker_id: str
    cluster_id: str
    topics: list[BackupTopicBody]
    consumer_groups: list[BackupGroupBody]
    schemas: list[BackupSchemaBody]
    stats: BackupStatsBody


class BackupDeleted(Struct):
    backup_id: str
    message: str
    success: Literal[True] = True


class BackupRestored(Struct):
    """What a restore has brought back, and what it has left as it was, in words."""

    backup_id: str
    message: str
    topics_restored: int
    groups_restored: int
    schemas_restored: int
    tenants_restored: int
    skipped: list[str]
    success: Literal[True] = True
