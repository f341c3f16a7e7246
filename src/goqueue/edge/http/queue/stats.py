"""GET /reliability/stats and /priority/stats: what the work queue has done, and what waits in it.

Two sets of keys: the first server's, nested, and the flat ones that existing clients read.
"""

from litestar import get
from litestar.di import NamedDependency
from msgspec import Struct

from goqueue.broker.broker import Broker
from goqueue.broker.queue.stats import LaneStats, lane_stats, reliability_stats
from goqueue.edge.http.parts.bodies import PRIORITY_OF_LANE
from goqueue.edge.http.parts.times import format_duration, format_time


class AckStats(Struct):
    total_acks: int
    total_nacks: int
    total_rejects: int
    total_expired: int
    total_retries: int
    total_dlq: int
    current_queued: int


class VisibilityStats(Struct):
    total_tracked: int
    current_in_flight: int
    total_expired: int
    total_acked: int
    total_extended: int


class DeadLetterStats(Struct):
    total_routed: int
    routes_by_reason: dict[str, int]
    routes_by_topic: dict[str, int]
    create_errors: int
    publish_errors: int
    pending: int
    redriven: int


class ReliabilityBody(Struct):
    """Counts since the broker began; what is queued and in flight is now."""

    ack_manager: AckStats
    visibility_tracker: VisibilityStats
    dlq: DeadLetterStats
    acks_total: int
    nacks_total: int
    rejects_total: int
    dlq_messages: int
    visibility_extensions: int
    ttl_expired_total: int


class PartitionPriorities(Struct):
    """By lane, critical first. `pending` is of the group that is furthest behind."""

    pending: list[int]
    consumed: list[int]
    total: list[int]
    oldest_pending: list[str]
    in_flight: int
    in_flight_by_priority: list[int]
    last_served: list[str]
    """When a message was last handed out for the first time; empty: not since the broker began."""
    waiting_retry: int
    unscanned: int


class TopicPriorities(Struct):
    total_by_priority: list[int]
    partitions: dict[str, PartitionPriorities]


class PrioritiesBody(Struct):
    """Messages stored since the broker began, by lane, and what of them waits."""

    total_by_priority: list[int]
    topics: dict[str, TopicPriorities]
    messages_by_priority: dict[str, int]
    avg_wait_time_by_priority: dict[str, str]
    delivered_per_second_by_priority: dict[str, float]


@get(
    "/reliability/stats",
    operation_id="reliabilityStats",
    summary="Acknowledged, given back, rejected, run out, dead: counts since the broker began",
    tags=["queue"],
)
async def reliability_route(broker: NamedDependency[Broker]) -> ReliabilityBody:
    stats = reliability_stats(broker)
    totals, counted = stats.totals, stats.counters
    dead_letters = counted.dead_by_reason.total()
    return ReliabilityBody(
        AckStats(
            totals.acked,
            totals.nacked,
            totals.rejected,
            totals.expired,
            counted.retried,
            dead_letters,
            stats.waiting,
        ),
        VisibilityStats(totals.consumed, stats.in_flight, totals.expired, totals.acked, totals.extended),
        DeadLetterStats(
            dead_letters,
            dict(counted.dead_by_reason),
            dict(counted.dead_by_topic),
            0,
            counted.moves_failed,
            stats.moving,
            counted.redriven,
        ),
        totals.acked,
        totals.nacked,
        totals.rejected,
        dead_letters,
        totals.extended,
        totals.outdated,
    )


@get(
    "/priority/stats",
    operation_id="priorityStats",
    summary="Messages by lane: stored, delivered, ready, and how long they wait",
    tags=["queue"],
)
async def priority_route(broker: NamedDependency[Broker]) -> PrioritiesBody:
    topics: dict[str, TopicPriorities] = {}
    totals = [0] * len(PRIORITY_OF_LANE)
    for (topic, partition), stats in (await lane_stats(broker)).items():
        shown = topics.setdefault(topic, TopicPriorities([0] * len(totals), {}))
        shown.partitions[str(partition)] = _shown(stats)
        shown.total_by_priority = _sum(shown.total_by_priority, stats.stored)
        totals = _sum(totals, stats.stored)
    queue = broker.queue
    waited, count = queue.counters.waited_ms_by_lane, queue.counters.delivered_by_lane
    averages = [waited[lane] // count[lane] if count[lane] else 0 for lane in range(len(totals))]
    return PrioritiesBody(
        totals,
        topics,
        dict(zip(PRIORITY_OF_LANE, totals, strict=True)),
        dict(zip(PRIORITY_OF_LANE, map(format_duration, averages), strict=True)),
        dict(zip(PRIORITY_OF_LANE, queue.rates(broker.clock.monotonic_ns()), strict=True)),
    )


def _shown(stats: LaneStats) -> PartitionPriorities:
    return PartitionPriorities(
        stats.ready,
        stats.delivered,
        stats.stored,
        ["" if age_ms is None else format_duration(age_ms) for age_ms in stats.oldest_ms],
        sum(stats.in_flight),
        stats.in_flight,
        ["" if time_ms is None else format_time(time_ms) for time_ms in stats.served_ms],
        stats.waiting,
        stats.unscanned,
    )


def _sum(left: list[int], right: list[int]) -> list[int]:
    return [a + b for a, b in zip(left, right, strict=True)]


ROUTES = [reliability_route, priority_route]
