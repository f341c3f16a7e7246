"""The node itself: whether it can work, what runs, and its numbers."""

from datetime import datetime

from goqueue.client.call import Call, Reply, json_of
from goqueue.wire import node
from goqueue.wire.cluster import ClusterHealth, ClusterState
from goqueue.wire.node import PriorityStats, ReliabilityStats, Stats, Version

_NOT_READY = 503
Health = node.Health[datetime]
Readiness = node.Readiness[datetime]


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


def cluster_state() -> Call[ClusterState]:
    """The nodes, who of them decides, and how partitions are, as the node that answers knows it."""
    return Call(method="GET", path="/cluster/state", decode=json_of(ClusterState))


def cluster_health() -> Call[ClusterHealth]:
    """The same in short."""
    return Call(method="GET", path="/cluster/health", decode=json_of(ClusterHealth))


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
