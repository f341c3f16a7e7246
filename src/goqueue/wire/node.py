"""A node: whether it can work, what runs there, and its numbers."""

from typing import Annotated, Generic

from msgspec import Meta, Struct

from goqueue.wire.times import Time


class Health(Struct, Generic[Time], frozen=True):
    """A quick yes."""

    status: str
    timestamp: Time


class Check(Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at. `warn` is for people and leaves the server ready."""

    status: Annotated[str, Meta(description="pass, warn or fail.")]
    message: str | None = None
    latency: Annotated[str, Meta(description="How long it takes, as a duration like 1.25ms.")] | None = None


class NodeSummary(Struct, frozen=True):
    node_id: str
    topic_count: int
    total_size: int


class Readiness(Struct, Generic[Time], frozen=True, omit_defaults=True):
    """Whether a node can do its work, and what keeps it from it; `checks` and `broker` on request."""

    status: Annotated[str, Meta(description="pass or fail.")]
    timestamp: Time
    uptime: str = ""
    message: str | None = None
    warnings: list[str] = []
    checks: dict[str, Check] = {}
    broker: NodeSummary | None = None

    @property
    def is_ready(self) -> bool:
        return self.status == "pass"


class Version(Struct, frozen=True):
    version: str
    git_commit: str
    build_time: str
    go_version: Annotated[str, Meta(description="The runtime; the key is kept for existing clients.")]


class TopicStats(Struct, frozen=True, rename="pascal"):
    name: str
    partitions: int
    total_messages: int
    total_size: int


class Stats(Struct, frozen=True):
    """Topics and sizes."""

    node_id: str
    uptime: str
    topics: int
    total_size_bytes: int
    topic_stats: dict[str, TopicStats]


class InFlightStats(Struct, frozen=True):
    total_tracked: int
    current_in_flight: int
    total_expired: int
    total_acked: int
    total_extended: int


class DeadLetterStats(Struct, frozen=True):
    total_routed: int
    routes_by_reason: dict[str, int]
    routes_by_topic: dict[str, int]
    pending: int
    redriven: int


class ReliabilityStats(Struct, frozen=True):
    """What the work queue has done since the node began; what is in flight is now."""

    acks_total: int
    nacks_total: int
    rejects_total: int
    dlq_messages: int
    visibility_extensions: int
    ttl_expired_total: int
    visibility_tracker: InFlightStats
    dlq: DeadLetterStats


class PriorityStats(Struct, frozen=True):
    """Messages stored since the node began, by lane, and how long they wait."""

    messages_by_priority: dict[str, int]
    avg_wait_time_by_priority: dict[str, str]
    delivered_per_second_by_priority: dict[str, float]
