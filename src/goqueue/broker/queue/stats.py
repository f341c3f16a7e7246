"""What the work queue has done and what is waiting in it, for people to look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from goqueue.broker.broker import Broker
from goqueue.broker.queue.read import open_runs
from goqueue.broker.slices import Slices
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.lane_turns import LANE_COUNT
from goqueue.model.delivery import DescribeLanes, DescribeReliability, ListPassed, PassedRun
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityStats:
    """Counts since the node began, and what is out now."""

    consumed: int
    acked: int
    nacked: int
    rejected: int
    expired: int
    extended: int
    outdated: int
    retried: int
    redriven: int
    moves_failed: int
    dead_by_reason: Mapping[str, int]
    dead_by_topic: Mapping[str, int]
    in_flight: int
    waiting: int
    """Messages that came back and wait for their next try."""
    moving: int
    """Messages on their way to the dead letters."""


@dataclass(slots=True)
class LaneStats:
    """The lanes of a partition. What waits is told of the group that is furthest behind."""

    ready: list[int] = field(default_factory=lambda: [0] * LANE_COUNT)
    delivered: list[int] = field(default_factory=lambda: [0] * LANE_COUNT)
    stored: list[int] = field(default_factory=lambda: [0] * LANE_COUNT)
    oldest_ms: list[int | None] = field(default_factory=lambda: [None] * LANE_COUNT)
    """How long the first message that is ready has waited."""
    served_ms: list[int | None] = field(default_factory=lambda: [None] * LANE_COUNT)
    """When something was last handed out for the first time."""
    in_flight: list[int] = field(default_factory=lambda: [0] * LANE_COUNT)
    waiting: int = 0
    unscanned: int = 0
    """Messages whose lane nobody has looked at yet."""


@dataclass(frozen=True, slots=True)
class AllLanes:
    """The lanes of all partitions, and of each lane over all of them."""

    partitions: dict[TopicPartition, LaneStats]
    delivered: list[int]
    waited_ms: list[int]
    """Between publish and first delivery, summed up."""
    rates: list[float]
    """Messages delivered a second, lately."""

    @property
    def average_waits_ms(self) -> list[int]:
        waits = zip(self.waited_ms, self.delivered, strict=True)
        return [waited_ms // count if count else 0 for waited_ms, count in waits]


def reliability_stats(broker: Broker, command: DescribeReliability) -> ReliabilityStats:
    """Counts since the broker began, and what is out and waiting now."""
    deliveries = _deliveries(broker)
    totals, counters = broker.counters.queue_totals(), broker.queue.counters
    return ReliabilityStats(
        consumed=totals.consumed,
        acked=totals.acked,
        nacked=totals.nacked,
        rejected=totals.rejected,
        expired=totals.expired,
        extended=totals.extended,
        outdated=totals.outdated,
        retried=counters.retried,
        redriven=counters.redriven,
        moves_failed=counters.moves_failed,
        dead_by_reason=dict(counters.dead_by_reason),
        dead_by_topic=dict(counters.dead_by_topic),
        in_flight=sum(delivery.leased_count for delivery in deliveries),
        waiting=sum(len(delivery.waiting) for delivery in deliveries),
        moving=sum(len(delivery.moves) for delivery in deliveries),
    )


async def lane_stats(broker: Broker, command: DescribeLanes) -> AllLanes:
    """Every partition that somebody takes from with leases, or that has stored something since the start."""
    stats: dict[TopicPartition, LaneStats] = {}
    slices = Slices(broker.clock)
    for name, topic in tuple(broker.topics.items()):
        for partition in tuple(topic.partitions):
            await slices.pause()
            if any(partition.lane_counts):
                stats[TopicPartition(name, partition.source.partition)] = LaneStats(
                    stored=list(partition.lane_counts)
                )
    counters = broker.queue.counters
    for delivery in _deliveries(broker):
        await slices.pause()
        if delivery.topic not in broker.topics:
            continue  # it has gone while others had their turn
        one = stats.setdefault(delivery.source, LaneStats())
        for lease in delivery.leases.values():
            for run in lease.offsets:
                counts = delivery.shelf.count_by_lane(*run)
                one.in_flight = [sum(pair) for pair in zip(one.in_flight, counts, strict=True)]
        one.waiting += len(delivery.waiting)
        unscanned = max(_end_offset(broker, delivery) - delivery.shelf.scan_offset, 0)
        counts = delivery.shelf.counts
        if sum(counts) + unscanned > sum(one.ready) + one.unscanned:
            one.ready, one.unscanned = counts, unscanned
            one.oldest_ms = await _oldest_ms(broker, delivery)
        for lane in range(LANE_COUNT):
            one.delivered[lane] = counters.delivered_of[(*delivery.source, lane)]
            one.served_ms[lane] = counters.served_ms.get((*delivery.source, lane))
    return AllLanes(
        stats,
        list(counters.delivered_by_lane),
        list(counters.waited_ms_by_lane),
        list(broker.queue.rates(broker.clock.monotonic_ns())),
    )


def passed_over(broker: Broker, command: ListPassed) -> list[tuple[TopicPartition, PassedRun]]:
    """What a group had to leave out, the newest of it for each partition."""
    journal = broker.coordinator.journals.find(command.group)
    deliveries = [] if journal is None else journal.deliveries.of_group(command.group)
    return [(delivery.source, run) for delivery in deliveries for run in delivery.passed.values()]


def _deliveries(broker: Broker) -> list[Delivery]:
    found = [delivery for journal in broker.coordinator.journals for delivery in journal.deliveries]
    return [delivery for delivery in found if delivery.topic in broker.topics]


def _end_offset(broker: Broker, delivery: Delivery) -> int:
    """Where what can be delivered ends; 0 where nobody can tell now, which may be another node."""
    try:
        return broker.readable(delivery.source).last_stable_offset
    except GoQueueError:
        return 0  # statistics are no place to fail


async def _oldest_ms(broker: Broker, delivery: Delivery) -> list[int | None]:
    ages: list[int | None] = [None] * LANE_COUNT
    for lane, offset in enumerate(delivery.shelf.oldest):
        if offset is None:
            continue
        try:
            opened = await open_runs(broker, delivery.source, [(offset, offset + 1)], 1)
        except GoQueueError:
            continue  # statistics are no place to fail
        for message in opened.messages:
            ages[lane] = max(broker.clock.wall_ms() - message.timestamp_ms, 0)
    return ages
