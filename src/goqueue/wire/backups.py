"""Backups of what a broker knows."""

from typing import Generic

from msgspec import Struct

from goqueue.wire.times import Time


class BackupStats(Struct, frozen=True):
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


class BackupCreated(Struct, Generic[Time], frozen=True):
    """A backup that is on the disk, or was brought there."""

    backup_id: str
    timestamp: Time
    broker_id: str
    cluster_id: str
    stats: BackupStats


class BackupListed(Struct, Generic[Time], frozen=True):
    """A backup with what it holds, counted."""

    backup_id: str
    timestamp: Time
    broker_id: str
    topics: int
    consumer_groups: int
    schemas: int


class BackupList(Struct, Generic[Time], frozen=True):
    """All backups, the newest first."""

    backups: list[BackupListed[Time]]


class BackupTopic(Struct, frozen=True):
    name: str
    num_partitions: int


class BackupGroup(Struct, frozen=True):
    group_id: str
    state: str


class BackupSchema(Struct, frozen=True):
    subject: str
    version: int


class Backup(Struct, Generic[Time], frozen=True):
    """A backup with the names of what it holds."""

    backup_id: str
    version: str
    timestamp: Time
    broker_id: str
    cluster_id: str
    topics: list[BackupTopic]
    consumer_groups: list[BackupGroup]
    schemas: list[BackupSchema]
    stats: BackupStats


class BackupRestored(Struct, frozen=True):
    """What a restore has brought back, and what it has left as it was, in words."""

    backup_id: str
    topics_restored: int
    groups_restored: int
    schemas_restored: int
    tenants_restored: int
    skipped: list[str]


class WholeBackup(Struct, Generic[Time], frozen=True):
    """A whole backup, or one that is being made. Sizes are those of the files, before they are encrypted."""

    backup_id: str
    state: str
    """running, done or failed"""
    timestamp: Time
    """The moment that it is of."""
    partitions: int
    size_bytes: int
    new_bytes: int
    """What had to be written, beyond what earlier backups had."""
    total_bytes: int
    """While it runs: how much there is to do."""
    failure: str = ""


class WholeBackupList(Struct, Generic[Time], frozen=True):
    """The newest first; before them the one that is being made, or failed last."""

    backups: list[WholeBackup[Time]]
