"""A backup in words: what a broker knows of its topics, groups and schemas, without a single message.

The fields bear the names that stand in `metadata.json`, because that file is a promise to whoever reads it:
what is added later has a default, and what is there keeps its meaning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from goqueue.model.places import Place, Seat
from goqueue.model.schemas import SchemaReference
from goqueue.model.tenants import Tenant

BACKUP_VERSION = "1.1"
"""1.0 is the Go edition's, which knows neither ids nor settings of topics; it can be restored, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPartition:
    """Where a partition began and ended."""

    id: int
    first_offset: int = 0
    last_offset: int = -1
    """The offset of the last message; one less than the first where there is none."""
    message_count: int = 0
    size_bytes: int = 0

    @property
    def end_offset(self) -> int:
        return max(self.last_offset + 1, self.first_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupTopic:
    name: str
    num_partitions: int
    created_at: datetime
    topic_id: UUID | None = None
    replication_factor: int = 1
    retention_hours: int = 0
    """For people and for files of version 1.0; `settings` has the exact value. 0 and -1: it says nothing."""
    compaction_enabled: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    """By Kafka's names, all of them: the broker that restores them may have other defaults."""
    partitions: tuple[BackupPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupGroup:
    """A group's offsets. Its members are not here: they join again."""

    group_id: str
    state: str = "Empty"
    kind: str = "classic"
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """The next offset, by topic and partition."""
    offset_metadata: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """The texts that were committed with offsets, where there are any."""
    last_seen_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSchema:
    """A version of a subject, deleted ones included as long as their ids can be read."""

    subject: str
    version: int
    id: int
    schema_type: str
    schema: str
    references: tuple[SchemaReference, ...] = ()
    compatibility: str = ""
    """The level that counted for the subject, for people; `registry` has those that were set."""
    is_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRegistry:
    """Settings of the schema registry by subject; those of the empty name are for all."""

    next_id: int = 1
    """Ids before it may stand in messages, also when their schemas are gone."""
    compatibility: Mapping[str, str] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    validation: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupStats:
    topic_count: int = 0
    partition_count: int = 0
    total_messages: int = 0
    total_bytes: int = 0
    consumer_group_count: int = 0
    schema_count: int = 0
    tenant_count: int = 0
    duration_ns: int = 0
    """How long it took to look at everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """All of it, as of one moment; of several nodes, as of the moment in which each was asked."""

    version: str
    timestamp: datetime
    broker_id: str
    cluster_id: str = ""
    topics: tuple[BackupTopic, ...] = ()
    consumer_groups: tuple[BackupGroup, ...] = ()
    schemas: tuple[BackupSchema, ...] = ()
    registry: BackupRegistry = BackupRegistry()
    tenants: tuple[Tenant, ...] = ()
    """Kept and restored with the topics, which they own by name. What they have used is not."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The broker's settings at that time. To be looked at: a restore leaves a broker's own settings alone."""
    stats: BackupStats = BackupStats()


class BackupListing(NamedTuple):
    """A backup in a list: what it is called, and how much is in it."""

    backup_id: str
    timestamp: datetime
    broker_id: str
    topic_count: int
    group_count: int
    schema_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateBackup:
    """Keep what the broker knows, or the parts of it that are named.

    Of several nodes the one that decides makes it and keeps it: so no id is given twice.
    """

    include_topics: bool = True
    include_offsets: bool = True
    include_schemas: bool = True
    include_config: bool = True

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeShare:
    """Tell what a node knows of what a backup keeps: partitions that it leads, groups that it coordinates."""

    wanted: CreateBackup
    journals: Sequence[int] | None = None
    """The journals of groups that it is asked for; None: all that there are here."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreBackup:
    """Bring a backup back. What is there and differs is refused, all of it at once, or left as it is."""

    backup_id: str
    skip_existing: bool = False
    data_follows: bool = False
    """Messages will be restored into the topics before anybody writes to them or reads from them.

    Then partitions begin where they began in the backup, and groups stand where they stood. Otherwise the
    messages are gone: partitions begin where they ended, so that no offset is given twice, and groups go on
    with what comes new. Several nodes do the latter alone.
    """

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore has brought back, and what it has left as it was."""

    backup_id: str
    topics_restored: int
    groups_restored: int
    schemas_restored: int
    tenants_restored: int
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListBackups:
    """All backups, the newest first."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBackup:
    """One backup."""

    backup_id: str

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBackup:
    """The file of a backup as it lies on the disk, to be kept elsewhere."""

    backup_id: str

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class BringBackup:
    """Take in the file of a backup that was kept elsewhere."""

    backup_id: str
    document: bytes

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteBackup:
    """Delete a backup for good."""

    backup_id: str

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE
