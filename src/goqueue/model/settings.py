"""Settings that more than one room speaks of: a topic's own, and the bounds on what may come in."""

import re
from dataclasses import dataclass
from enum import StrEnum

from goqueue.model.schemas import OnInvalid, SchemaValidation, SubjectStrategy

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

UNLIMITED = -1
AS_THE_NODE = -1.0
BY_COPIES = 0
ANY_TIME = 2**63 - 1


def require(condition: bool, problem: str) -> None:
    """Refuse a settings object that could not work."""
    if not condition:
        raise ValueError(problem)


class AcksWaitFor(StrEnum):
    """What a publish with acks=all is answered behind. Readers see what is fsynced, whatever it is."""

    FSYNCED = "fsynced"
    """All copies in sync have it on their disks."""
    WRITTEN = "written"
    """They have it in memory: what loses power before the next fsync may lose it."""


class Partitioner(StrEnum):
    """How a key finds its partition where the broker, our client or Spark's sink choose it."""

    MURMUR3 = "murmur3"
    """x86, 32 bits, seed 0."""
    MURMUR2 = "murmur2"
    """As Java's clients, aiokafka and kafka-python do."""
    CRC32 = "crc32"
    """As librdkafka does, if nobody tells it otherwise."""


class CleanupPolicy(StrEnum):
    """What becomes of old messages."""

    DELETE = "delete"
    COMPACT = "compact"
    """The newest message of each key stays."""
    BOTH = "compact,delete"


class CompressionType(StrEnum):
    """How a topic's batches are compressed, by Kafka's words."""

    PRODUCER = "producer"
    """As they came."""
    UNCOMPRESSED = "uncompressed"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class TimestampType(StrEnum):
    """Whose time a message has, by Kafka's words."""

    CREATE = "CreateTime"
    """Its producer's."""
    LOG_APPEND = "LogAppendTime"
    """That at which the broker stored it."""


PARTITIONER_SETTING = "goqueue.partitioner"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """What a topic's owner may choose. Survives restarts in the metadata journal."""

    cleanup_policy: CleanupPolicy = CleanupPolicy.DELETE
    retention_ms: int = 168 * HOUR_MS
    retention_bytes: int = UNLIMITED
    segment_bytes: int = 64 * MiB
    max_message_bytes: int = 16 * MiB
    inspect_compressed: bool = False
    """Open compressed batches, to check them and for `goqueue-` headers; otherwise they pass unopened."""
    inspect_records: bool = False
    """Check every record of uncompressed batches; otherwise the first, and those like it in large batches."""
    visibility_ms: int = 30_000
    """How long a message that was polled stays hidden from others of its group."""
    retries_max: int = 3
    """How often a message is delivered again before it goes to the dead letters."""
    retry_backoff_ms: int = 1_000
    """How long a message waits after its first nack; twice as long after each further one."""
    retry_backoff_max_ms: int = 60_000
    ttl_ms: int = UNLIMITED
    """A message older than this is not delivered to groups any more, if it does not say otherwise."""
    ttl_dead_letters: bool = False
    """Such messages go to the dead letters instead of being passed over."""
    lane_weights: str = "50,25,15,7,3"
    """How many messages each lane hands out in its turn, critical first."""
    lane_wait_max_ms: int = 30_000
    """A lane that has waited this long goes first."""
    partitioner: Partitioner = Partitioner.MURMUR3
    schema_validation: SchemaValidation = SchemaValidation.NONE
    schema_subject_strategy: SubjectStrategy = SubjectStrategy.TOPIC_NAME
    schema_on_invalid: OnInvalid = OnInvalid.REFUSE
    tracing_sampling: float = AS_THE_NODE
    """Which part of the messages is traced, 0 to 1; AS_THE_NODE: as many as the node's settings say."""
    acks_all_wait_for: AcksWaitFor = AcksWaitFor.FSYNCED
    min_insync_replicas: int = BY_COPIES
    """So many copies must hold a message before acks=all is answered; BY_COPIES: 2 of three, else 1."""

    segment_ms: int = 168 * HOUR_MS
    """A segment whose first message is older than this is sealed, in a topic that is compacted."""
    delete_retention_ms: int = 24 * HOUR_MS
    """How long what deletes a key stays once compaction has met it."""
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = 2**63 - 1
    min_cleanable_dirty_ratio: float = 0.5
    compression_type: CompressionType = CompressionType.PRODUCER
    timestamp_type: TimestampType = TimestampType.CREATE
    timestamp_before_max_ms: int = ANY_TIME
    """A message's time may be so long ago, where producers say it; ANY_TIME: whatever it is."""
    timestamp_after_max_ms: int = ANY_TIME
    """The same of times to come."""
    noted: tuple[tuple[str, str], ...] = ()
    """Settings that other brokers have and this one does without: kept as they were given, and shown."""

    @property
    def is_compacted(self) -> bool:
        return self.cleanup_policy is not CleanupPolicy.DELETE

    @property
    def is_deleting(self) -> bool:
        """Whether age and size of a log are bounded."""
        return self.cleanup_policy is not CleanupPolicy.COMPACT

    @property
    def bounds_times(self) -> bool:
        """Whether the times that producers give are looked at."""
        bounds_ms = self.timestamp_before_max_ms, self.timestamp_after_max_ms
        return bounds_ms != (ANY_TIME, ANY_TIME) and self.timestamp_type is TimestampType.CREATE

    @property
    def asks_of_batches(self) -> bool:
        """Whether batches of clients are looked at for more than that they are sound."""
        return (
            self.compression_type is not CompressionType.PRODUCER
            or self.timestamp_before_max_ms != ANY_TIME
            or self.timestamp_after_max_ms != ANY_TIME
        )

    def __post_init__(self) -> None:
        require(self.retention_ms == UNLIMITED or self.retention_ms >= 0, "retention.ms must be -1 or more")
        require(self.retention_bytes >= UNLIMITED, "retention.bytes must be -1 or more")
        require(4 * KiB <= self.segment_bytes < 2**31, "segment.bytes must be between 4096 and 2147483647")
        require(0 < self.max_message_bytes < 2**31, "max.message.bytes must be between 1 and 2147483647")
        require(self.visibility_ms > 0, "goqueue.visibility.ms must be above 0")
        require(self.retries_max >= 0, "goqueue.retries.max must be 0 or more")
        require(
            0 <= self.retry_backoff_ms <= self.retry_backoff_max_ms,
            "goqueue.retry.backoff.ms must be 0 or more and not above goqueue.retry.backoff.max.ms",
        )
        require(self.ttl_ms == UNLIMITED or self.ttl_ms > 0, "goqueue.ttl.ms must be -1 or above 0")
        require(
            re.fullmatch(r"[1-9]\d{0,5}(,[1-9]\d{0,5}){4}", self.lane_weights) is not None,
            "goqueue.lane.weights must be five numbers above 0 with commas between them",
        )
        require(self.lane_wait_max_ms > 0, "goqueue.lane.wait.max.ms must be above 0")
        require(self.min_insync_replicas >= BY_COPIES, "min.insync.replicas must be 1 or more")
        require(self.segment_ms > 0, "segment.ms must be above 0")
        require(self.delete_retention_ms >= 0, "delete.retention.ms must be 0 or more")
        require(self.min_compaction_lag_ms >= 0, "min.compaction.lag.ms must be 0 or more")
        require(self.max_compaction_lag_ms > 0, "max.compaction.lag.ms must be above 0")
        require(
            self.min_compaction_lag_ms <= self.max_compaction_lag_ms,
            "min.compaction.lag.ms must not be above max.compaction.lag.ms",
        )
        require(0 <= self.min_cleanable_dirty_ratio <= 1, "min.cleanable.dirty.ratio must be from 0 to 1")
        require(
            0 <= self.timestamp_before_max_ms <= ANY_TIME, "message.timestamp.before.max.ms must be 0 or more"
        )
        require(
            0 <= self.timestamp_after_max_ms <= ANY_TIME, "message.timestamp.after.max.ms must be 0 or more"
        )
        require(
            self.tracing_sampling == AS_THE_NODE or 0 <= self.tracing_sampling <= 1,
            "goqueue.tracing.sampling must be -1 or from 0 to 1",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what outside traffic can fill."""

    message_bytes: int = 16 * MiB
    request_bytes: int = 64 * MiB
    partitions_per_topic: int = 10_000
    partitions: int = 100_000
    """Of all topics together. Each takes a folder, files and memory, whether it is used or not."""
    topics: int = 100_000

    def __post_init__(self) -> None:
        require(self.message_bytes > 0, "a message must have room for at least a byte")
        require(self.message_bytes <= self.request_bytes, "a request must have room for a whole message")
        require(self.request_bytes < 2**31, "a request must stay below 2 GiB")
        require(self.partitions_per_topic > 0, "a topic must have room for a partition")
        require(self.partitions > 0, "there must be room for a partition")
        require(self.topics > 0, "there must be room for a topic")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """How the broker treats consumer groups."""

    initial_delay_ms: int = 1_000
    """How long the first member of an empty group waits for others, so that a start is one rebalance."""
    session_ms_min: int = 1_000
    session_ms_max: int = 1_800_000
    consumer_session_ms: int = 45_000
    """Kafka clients that the broker assigns to do not choose their session, nor how often they heartbeat."""
    consumer_heartbeat_ms: int = 5_000
    members_max: int = 2_000
    groups_max: int = 100_000
    """So many groups a node keeps: each takes memory, and any client can begin one."""
    """Members of one group, those counted that have been given an id and are still to come back with it."""
    metadata_bytes_max: int = 4 * KiB
    """The text that goes with a committed offset."""
    in_flight_max: int = 1_000
    """Messages that one consumer may have out with leases; a poll for more waits until some are settled."""
    offsets_retention_ms: int = 7 * 24 * HOUR_MS
    """How long the offsets of a group without members are kept after its last commit or member."""

    def __post_init__(self) -> None:
        require(self.initial_delay_ms >= 0, "the initial delay of a group must be 0 or more")
        require(
            0 < self.session_ms_min <= self.session_ms_max,
            "the shortest session must be above 0 and not above the longest",
        )
        require(
            0 < self.consumer_heartbeat_ms < self.consumer_session_ms,
            "consumers must heartbeat more often than their session ends",
        )
        require(self.members_max > 0, "a group must have room for a member")
        require(self.groups_max > 0, "there must be room for a group")
        require(self.metadata_bytes_max >= 0, "the room for metadata of an offset must be 0 or more")
        require(self.in_flight_max > 0, "a consumer must be able to have a message out")
        require(self.offsets_retention_ms > 0, "committed offsets must be kept for a while")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """How the broker treats transactions."""

    timeout_ms: int = MINUTE_MS
    """How long a transaction may stay open when its producer does not say."""
    timeout_ms_max: int = 15 * MINUTE_MS
    session_ms: int = 30_000
    """How long a producer that sends heartbeats may be silent; then its open transaction is aborted."""
    id_expiry_ms: int = 7 * 24 * HOUR_MS
    """How long a transactional id is remembered after its last transaction."""

    def __post_init__(self) -> None:
        require(
            0 < self.timeout_ms <= self.timeout_ms_max,
            "the time-out of transactions must be above 0 and not above the longest",
        )
        require(self.timeout_ms_max < 2**31, "the longest time-out of transactions must be below 25 days")
        require(self.session_ms > 0, "a producer must be able to send a heartbeat in time")
        require(self.id_expiry_ms > 0, "transactional ids must be remembered for a while")


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayConfig:
    """How the broker keeps delayed messages. With small numbers a test meets what large ones would hide."""

    fresh_max: int = 64 * KiB
    """Entries that are kept in memory before they go into a run on the disk; a restart reads as many back."""
    runs_max: int = 8
    wasted_entries_max: int = 16 * KiB
    wasted_bytes_max: int = 128 * MiB
    """So much that is done with may lie about, or as much as is still pending, before it is cleared away."""
    round_max: int = 2_000
    """So many messages are delivered before others get their turn on the loop."""

    def __post_init__(self) -> None:
        require(self.fresh_max > 0, "there must be room for a delayed message")
        require(self.runs_max > 0, "there must be room for a run of delayed messages")
        require(self.wasted_entries_max >= 0, "waste cannot be below 0")
        require(self.wasted_bytes_max >= 0, "waste cannot be below 0")
        require(self.round_max > 0, "a round must deliver something")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsConfig:
    """How much of the metrics is told apart."""

    topics_max: int = 1_000
    """So many topics have numbers of their own; those of the others are summed up under `_other`."""
    groups_max: int = 1_000
    """The same for consumer groups, and for pairs of a group and a topic."""
    by_partition: bool = False
    """Whether offsets, sizes and lag are told of each partition, instead of summed over a topic."""

    def __post_init__(self) -> None:
        require(self.topics_max >= 0, "the number of topics with metrics of their own must be 0 or more")
        require(self.groups_max >= 0, "the number of groups with metrics of their own must be 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthConfig:
    """From where on the broker warns, and from where on it counts as not ready."""

    disk_warn_percent: int = 85
    disk_fail_percent: int = 90
    disk_enough_bytes: int = 5 * GiB
    """With so much free a disk has room, however full it is."""
    fsync_warn_ms: int = 100
    fsync_fail_ms: int = 5_000
    loop_lag_warn_ms: int = 100
    loop_lag_fail_ms: int = 2_000

    def __post_init__(self) -> None:
        require(
            0 < self.disk_warn_percent <= self.disk_fail_percent <= 100,
            "a disk must warn at above 0 % and fail at no less than that and at most 100 %",
        )
        require(self.disk_enough_bytes >= 0, "the room that is enough must be 0 bytes or more")
        require(
            0 < self.fsync_warn_ms <= self.fsync_fail_ms,
            "slow flushes must warn above 0 ms and fail no earlier",
        )
        require(
            0 < self.loop_lag_warn_ms <= self.loop_lag_fail_ms,
            "a late loop must warn above 0 ms and fail no earlier",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingConfig:
    """How much of what happens to messages is recorded, and how far a search for a trace goes."""

    is_enabled: bool = True
    sampling: float = 1.0
    """Which part of the messages is traced in topics that do not say otherwise."""
    events_max: int = 100_000
    """Events that are kept in memory; an event tells of a whole batch."""
    search_bytes: int = 256 * MiB
    """So much of the log is looked through for a trace id that a producer made."""

    def __post_init__(self) -> None:
        require(0 <= self.sampling <= 1, "the sampling of traces must be from 0 to 1")
        require(self.events_max > 0, "there must be room for an event")
        require(self.search_bytes >= 0, "a search for a trace cannot look through less than nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaConfig:
    """What of schemas a broker takes, and how many it keeps ready to check messages."""

    text_max: int = MiB
    """Characters of a schema."""
    check_limit_ms: int = 1_000
    """CPU time of a helper process to check data for which nobody could tell how long it takes."""
    checkers_max: int = 1_000
    """Schemas that are kept ready to check messages; the one used longest ago goes first."""
    checkers_bytes: int = 32 * MiB
    """The same by what they are made from."""

    def __post_init__(self) -> None:
        require(self.text_max > 0, "a schema must have some characters")
        require(self.check_limit_ms > 0, "checking a message must have some time")
        require(self.checkers_max > 0, "there must be room for a schema that checks messages")
        require(self.checkers_bytes > 0, "there must be room for a schema that checks messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkshopConfig:
    """The helper processes that do what may take long (`docs/schemas.md`)."""

    process_count: int = 2
    """So many at most; each is started when there is work for it."""
    memory_bytes: int = 512 * MiB
    """Address space of one."""
    job_limit_ms: int = 5_000
    """CPU time of one job."""
    waiting_max: int = 64
    """Jobs that may wait for a free process."""
    wait_ms: int = 10_000
    """How long one of them waits before it is given up."""
    idle_ms: int = MINUTE_MS
    """How long a process without work stays."""

    def __post_init__(self) -> None:
        require(self.process_count > 0, "there must be a helper process")
        require(self.memory_bytes >= 128 * MiB, "a helper process needs 128 MiB to begin with")
        require(self.job_limit_ms > 0, "a job must have some time")
        require(self.waiting_max >= 0, "the number of jobs that may wait must be 0 or more")
        require(self.wait_ms > 0, "a job must be able to wait for a while")
        require(self.idle_ms >= 0, "the time that an idle helper process stays must be 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLogConfig:
    """The log through which all partitions of a disk are made safe together."""

    file_bytes: int = 16 * MiB
    files_max: int = 8
    """So many files there may be; when all are in use, partitions sync their own. 0: they always do."""

    def __post_init__(self) -> None:
        require(self.file_bytes >= 4 * KiB, "a file of the commit log must have at least 4 KiB")
        require(self.files_max != 1 and self.files_max >= 0, "the commit log needs two files, or none")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """What is written down of who did what."""

    is_on: bool = False
    file_bytes: int = 16 * MiB
    """A file that has so much is followed by another."""
    files_max: int = 20
    """So many are kept."""
    has_topic: bool = True
    """Whether lines are published in the topic `__audit`, too."""
    topic_retention_ms: int = 30 * 24 * HOUR_MS
    """How long the topic keeps them, from when it is made on."""
    data_sampling: float = 0.0
    """Which share of reads and writes of messages is written down."""

    def __post_init__(self) -> None:
        require(0 <= self.data_sampling <= 1, "a share is between 0 and 1")
        require(self.file_bytes >= 1024, "a file of the audit log must take at least 1 KiB")
        require(self.files_max > 0, "at least one file of the audit log must be kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig:
    """Who may do what."""

    is_on: bool = False
    """Whether permissions are asked for."""
    super_users: tuple[str, ...] = ()
    """Principals that may do everything, such as `User:root`."""
    audit: AuditConfig = AuditConfig()
    knows_who: bool = False
    """Doors find out who comes: whoever is a tenant's is kept within its border."""

    @property
    def is_asked(self) -> bool:
        """Whether it matters who asks."""
        return self.is_on or self.audit.is_on or self.knows_who


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """What the broker needs to know, whatever its doors are."""

    node_id: str = "node-1"
    auto_create_topics: bool = True
    default_partitions: int = 3
    replication: int = 0
    """In a cluster: copies of a topic whose creator does not say; 0: three, or as many as there are nodes."""
    topic_defaults: TopicSettings = TopicSettings()
    limits: Limits = Limits()
    groups: GroupConfig = GroupConfig()
    delays: DelayConfig = DelayConfig()
    transactions: TransactionConfig = TransactionConfig()
    tracing: TracingConfig = TracingConfig()
    metrics: MetricsConfig = MetricsConfig()
    health: HealthConfig = HealthConfig()
    schemas: SchemaConfig = SchemaConfig()
    commit_log: CommitLogConfig = CommitLogConfig()
    access: AccessConfig = AccessConfig()
    flush_interval_ms: int = 1_000
    """acks=leader: on disk at the latest after this; acks=all never waits for it."""
    upkeep_interval_ms: int = 5_000
    """How often retention is applied and recovery points are noted."""
    scrub_bytes_per_s: int = 8 * MiB
    """How fast sealed segments are read back and checked; 0: never."""
    producer_expiry_ms: int = 24 * HOUR_MS
    """How long an idempotent producer's sequence numbers are remembered after its last batch."""
    stage_expiry_ms: int = HOUR_MS
    """How long a stage of a sink is kept for a commit that may never come."""
    sink_expiry_ms: int = 90 * 24 * HOUR_MS
    """How long a sink's last epoch is remembered after its last commit."""
    compaction_interval_ms: int = 15_000
    """How often partitions of compacted topics are looked at."""
    compaction_bytes_per_s: int = 32 * MiB
    """How fast they are read; 0: never."""
    compaction_memory_bytes: int = 128 * MiB
    """For the keys of one round; where they do not fit there are several."""
    backup_count_max: int = 7
    """So many backups of each kind are kept; a new one takes the place of the oldest."""
    backup_bytes_per_s: int = 256 * MiB
    """A whole backup reads at most so much."""
    backup_interval_ms: int = 0
    """How often a whole backup is begun; 0: only when it is asked for."""
    usage_days: int = 35
    """What tenants have used by hour is kept for so many days."""

    def __post_init__(self) -> None:
        require(
            bool(self.node_id) and not any(c.isspace() for c in self.node_id),
            "the node id must not be empty or hold white space",
        )
        require(1 <= self.default_partitions <= self.limits.partitions_per_topic,
                "default partitions must be at least 1 and within the limit per topic")  # fmt: skip
        require(self.flush_interval_ms > 0, "the flush interval must be above 0")
        require(self.upkeep_interval_ms > 0, "the upkeep interval must be above 0")
        require(self.scrub_bytes_per_s >= 0, "the rate of the scrub cannot be below 0")
        require(self.compaction_interval_ms > 0, "the interval of compaction must be above 0")
        require(self.compaction_bytes_per_s >= 0, "the rate of compaction cannot be below 0")
        require(self.compaction_memory_bytes >= 64 * KiB, "compaction needs at least 64 KiB for keys")
        require(self.producer_expiry_ms > 0, "the producer expiry must be above 0")
        require(self.stage_expiry_ms > 0, "the stage expiry must be above 0")
        require(self.sink_expiry_ms > 0, "the sink expiry must be above 0")
        require(self.usage_days > 0, "what tenants use must be kept for a day at least")
        require(self.backup_count_max > 0, "a backup must be kept at least until the next")
        require(self.backup_bytes_per_s > 0, "the rate of backups must be above 0")
        require(self.backup_interval_ms >= 0, "the time between backups cannot be below 0")
