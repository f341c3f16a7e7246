"""Settings that more than one room speaks of: a topic's own, and the bounds on what may come in."""

from dataclasses import dataclass

KiB = 1024
MiB = 1024 * KiB
HOUR_MS = 3_600_000

UNLIMITED = -1


def require(condition: bool, problem: str) -> None:
    """Refuse a settings object that could not work."""
    if not condition:
        raise ValueError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """What a topic's owner may choose. Survives restarts in the metadata journal."""

    retention_ms: int = 168 * HOUR_MS
    retention_bytes: int = UNLIMITED
    segment_bytes: int = 64 * MiB
    max_message_bytes: int = 16 * MiB
    inspect_compressed: bool = False
    """Open compressed batches to look for `goqueue-` headers; without it they pass unopened."""

    def __post_init__(self) -> None:
        require(self.retention_ms == UNLIMITED or self.retention_ms >= 0, "retention.ms must be -1 or more")
        require(self.retention_bytes >= UNLIMITED, "retention.bytes must be -1 or more")
        require(4 * KiB <= self.segment_bytes < 2**31, "segment.bytes must be between 4096 and 2147483647")
        require(0 < self.max_message_bytes < 2**31, "max.message.bytes must be between 1 and 2147483647")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what outside traffic can fill."""

    message_bytes: int = 16 * MiB
    request_bytes: int = 64 * MiB
    partitions_per_topic: int = 10_000

    def __post_init__(self) -> None:
        require(self.message_bytes > 0, "a message must have room for at least a byte")
        require(self.message_bytes <= self.request_bytes, "a request must have room for a whole message")
        require(self.request_bytes < 2**31, "a request must stay below 2 GiB")
        require(self.partitions_per_topic > 0, "a topic must have room for a partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """How the broker treats consumer groups."""

    initial_delay_ms: int = 1_000
    """How long the first member of an empty group waits for others, so that a start is one rebalance."""
    session_ms_min: int = 1_000
    session_ms_max: int = 1_800_000
    members_max: int = 2_000
    """Members of one group, those counted that have been given an id and are still to come back with it."""
    metadata_bytes_max: int = 4 * KiB
    """The text that goes with a committed offset."""

    def __post_init__(self) -> None:
        require(self.initial_delay_ms >= 0, "the initial delay of a group must be 0 or more")
        require(
            0 < self.session_ms_min <= self.session_ms_max,
            "the shortest session must be above 0 and not above the longest",
        )
        require(self.members_max > 0, "a group must have room for a member")
        require(self.metadata_bytes_max >= 0, "the room for metadata of an offset must be 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """What the broker needs to know, whatever its doors are."""

    node_id: str = "node-1"
    auto_create_topics: bool = True
    default_partitions: int = 3
    topic_defaults: TopicSettings = TopicSettings()
    limits: Limits = Limits()
    groups: GroupConfig = GroupConfig()
    flush_interval_ms: int = 1_000
    """acks=leader: on disk at the latest after this; acks=all never waits for it."""
    upkeep_interval_ms: int = 5_000
    """How often retention is applied and recovery points are noted."""
    producer_expiry_ms: int = 24 * HOUR_MS
    """How long an idempotent producer's sequence numbers are remembered after its last batch."""
    stage_expiry_ms: int = HOUR_MS
    """How long a stage of a sink is kept for a commit that may never come."""
    sink_expiry_ms: int = 90 * 24 * HOUR_MS
    """How long a sink's last epoch is remembered after its last commit."""

    def __post_init__(self) -> None:
        require(
            bool(self.node_id) and not any(c.isspace() for c in self.node_id),
            "the node id must not be empty or hold white space",
        )
        require(1 <= self.default_partitions <= self.limits.partitions_per_topic,
                "default partitions must be at least 1 and within the limit per topic")  # fmt: skip
        require(self.flush_interval_ms > 0, "the flush interval must be above 0")
        require(self.upkeep_interval_ms > 0, "the upkeep interval must be above 0")
        require(self.producer_expiry_ms > 0, "the producer expiry must be above 0")
        require(self.stage_expiry_ms > 0, "the stage expiry must be above 0")
        require(self.sink_expiry_ms > 0, "the sink expiry must be above 0")
