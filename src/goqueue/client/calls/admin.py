"""The node itself: whether it can work, what runs, and its numbers."""

from datetime import datetime

import msgspec

from goqueue.client.call import Call, Reply, json_of

_NOT_READY = 503


class Health(msgspec.Struct, frozen=True):
    """A quick yes."""

    status: str
    timestamp: datetime


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at: pass, warn or fail."""

    status: str
    message: str | None = None
    latency: str | None = None


class NodeSummary(msgspec.Struct, frozen=True):
    node_id: str
    topic_count: int
    total_size: int


class Readiness(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a node can do its work, and what keeps it from it."""

    status: str
    timestamp: datetime
    uptime: str = ""
    message: str | None = None
    checks: dict[str, Check] = {}
    broker: NodeSummary | None = None

    @property
    def is_ready(self) -> bool:
        return self.status == "pass"


class Version(msgspec.Struct, frozen=True):
    version: str
    git_commit: str
    build_time: str
    go_version: str
    """The runtime; the name is the contract's."""


class TopicStats(msgspec.Struct, frozen=True, rename="pascal"):
    name: str
    partitions: int
    total_messages: int
    total_size: int


class Stats(msgspec.Struct, frozen=True):
    """Topics and sizes."""

    node_id: str
    uptime: str
    topics: int
    total_size_bytes: int
    topic_stats: dict[str, TopicStats]


class DeadLetterStats(msgspec.Struct, frozen=True):
    total_routed: int
    routes_by_reason: dict[str, int]
    routes_by_topic: dict[str, int]
    pending: int
    redriven: int


class InFlightStats(msgspec.Struct, frozen=True):
    total_tracked: int
    current_in_flight: int
    total_expired: int
    total_acked: int
    total_extended: int


class ReliabilityStats(msgspec.Struct, frozen=True):
    """What the work queue has done since the node began; what is in flight is now."""

    acks_total: int
    nacks_total: int
    rejects_total: int
    dlq_messages: int
    visibility_extensions: int
    ttl_expired_total: int
    visibility_tracker: InFlightStats
    dlq: DeadLetterStats


class PriorityStats(msgspec.Struct, frozen=True):
    """Messages stored since the node began, by lane, and how long they wait."""

    messages_by_priority: dict[str, int]
    avg_wait_time_by_priority: dict[str, str]
    delivered_per_second_by_priority: dict[str, float]


def health() -> Call[Health]:
    """Whether the node answers."""
    return Call(method="GET", path="/health", decode=json_of(Health))


def ready(*, verbose: bool = True) -> Call[Readiness]:
    """Whether the node serves requests, check by check. One that does not is an answer, not an error."""
    return Call(
        method="GET",
        path="/readyz",
        decode=json_of(Readiness),
        query={"verbose": "true"} if verbose else {},
        accepts=(_NOT_READY,),
    )


def version() -> Call[Version]:
    """What is running there."""
    return Call(method="GET", path="/version", decode=json_of(Version))


def stats() -> Call[Stats]:
    """Topics and sizes."""
    return Call(method="GET", path="/stats", decode=json_of(Stats))


def reliability_stats() -> Call[ReliabilityStats]:
    """Acknowledged, given back, rejected, run out, dead: counts since the node began."""
    return Call(method="GET", path="/reliability/stats", decode=json_of(ReliabilityStats))


def priority_stats() -> Call[PriorityStats]:
    """Messages by lane."""
    return Call(method="GET", path="/priority/stats", decode=json_of(PriorityStats))


def metrics() -> Call[str]:
    """All numbers, as Prometheus reads them."""
    return Call(method="GET", path="/metrics", decode=_text)


def _text(reply: Reply) -> str:
    return reply.body.decode()
