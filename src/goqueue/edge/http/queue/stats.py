"""GET /reliability/stats and /priority/stats: what the work queue has done, and what waits in it.

Two sets of keys: the first server's, nested, and the flat ones that existing clients read.
"""

from litestar import get
from litestar.di import NamedDependency
from msgspec import Struct

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, seen_at_home
from goqueue.broker.queue.stats import LaneStats, lane_stats, reliability_stats
from goqueue.broker.slices import Slices
from goqueue.edge.http.parts.bodies import PRIORITY_OF_LANE
from goqueue.edge.http.parts.times import format_duration, format_time
from goqueue.model.delivery import DescribeLanes, DescribeReliability
from goqueue.wire.node import DeadLetterStats, InFlightStats, PriorityStats, ReliabilityStats


class AckStats(Struct):
    total_acks: int
    total_nacks: int
    total_rejects: int
    total_expired: int
    total_retries: int
    total_dlq: int
    current_queued: int


class DeadLetterRoutes(DeadLetterStats, frozen=True, kw_only=True):
    create_errors: int
    publish_errors: int


class ReliabilityBody(ReliabilityStats, frozen=True, kw_only=True):
    """Counts since the broker began; what is queued and in flight is now."""

    ack_manager: AckStats
    dlq: DeadLetterRoutes


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


class PrioritiesBody(PriorityStats, frozen=True, kw_only=True):
    """Messages stored since the broker began, by lane, and what of them waits."""

    total_by_priority: list[int]
    topics: dict[str, TopicPriorities]


@get(
    "/reliability/stats",
    operation_id="reliabilityStats",
    summary="Acknowledged, given back, rejected, run out, dead: counts since the broker began",
    tags=["queue"],
)
async def reliability_route(broker: NamedDependency[Broker]) -> ReliabilityBody:
    stats = await seen_at_home(broker, reliability_stats, DescribeReliability())
    dead_letters = sum(stats.dead_by_reason.values())
    return ReliabilityBody(
        ack_manager=AckStats(
            stats.acked,
            stats.nacked,
            stats.rejected,
            stats.expired,
            stats.retried,
            dead_letters,
            stats.waiting,
        ),
        visibility_tracker=InFlightStats(
            stats.consumed, stats.in_flight, stats.expired, stats.acked, stats.extended
        ),
        dlq=DeadLetterRoutes(
            dead_letters,
            dict(stats.dead_by_reason),
            dict(stats.dead_by_topic),
            stats.moving,
            stats.redriven,
            create_errors=0,
            publish_errors=stats.moves_failed,
        ),
        acks_total=stats.acked,
        nacks_total=stats.nacked,
        rejects_total=stats.rejected,
        dlq_messages=dead_letters,
        visibility_extensions=stats.extended,
        ttl_expired_total=stats.outdated,
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
    lanes = await at_home(broker, lane_stats, DescribeLanes())
    slices = Slices(broker.clock)
    for source in tuple(lanes.partitions):
        await slices.pause()
        topic, partition = source
        # Let go of one by one: to free ten thousand of them at once takes long, too.
        stats = lanes.partitions.pop(source)
        shown = topics.setdefault(topic, TopicPriorities([0] * len(totals), {}))
        shown.partitions[str(partition)] = _shown(stats)
        shown.total_by_priority = _sum(shown.total_by_priority, stats.stored)
        totals = _sum(totals, stats.stored)
    return PrioritiesBody(
        dict(zip(PRIORITY_OF_LANE, totals, strict=True)),
        dict(zip(PRIORITY_OF_LANE, map(format_duration, lanes.average_waits_ms), strict=True)),
        dict(zip(PRIORITY_OF_LANE, lanes.rates, strict=True)),
        total_by_priority=totals,
        topics=topics,
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
