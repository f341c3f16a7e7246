"""What several nodes say of one thing, put together: plain values in, one value out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar

from goqueue.broker.queue.stats import AllLanes, LaneStats, ReliabilityStats
from goqueue.model.errors import NoLeader
from goqueue.model.groups import GroupListing, GroupView, RebalanceStats
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.telemetry import TraceStats
from goqueue.model.tenant_commands import Holding
from goqueue.model.tenants import TenantUsage, UsageHour, UsageTotals
from goqueue.model.topics import TopicView
from goqueue.model.transactions import TransactionState, TransactionStats, TransactionView

T = TypeVar("T")


def joined_topic(views: Sequence[TopicView], count: int) -> TopicView:
    """A topic of which each leader has told its own partitions. Raises NoLeader for one that nobody told."""
    told = {view.partition: view for topic in views for view in topic.partitions}
    for number in range(count):
        if number not in told:
            raise NoLeader(views[0].name, number)
    return replace(views[0], partitions=tuple(told[number] for number in range(count)))


def joined_topics(lists: Sequence[Sequence[TopicView]], counts: Mapping[TopicName, int]) -> list[TopicView]:
    """The same of all topics. One that not all have heard of yet, or no longer, is left out."""
    found: dict[TopicName, list[TopicView]] = {}
    for views in lists:
        for view in views:
            found.setdefault(view.name, []).append(view)
    return [joined_topic(found[name], counts[name]) for name in sorted(found) if name in counts]


def joined_listings(lists: Iterable[Sequence[GroupListing]]) -> list[GroupListing]:
    return sorted((listing for listings in lists for listing in listings), key=attrgetter("name"))


def joined_views(lists: Iterable[Sequence[GroupView]], wanted: Sequence[str]) -> list[GroupView]:
    """Views of groups in the order in which they were asked for."""
    found = {view.name: view for views in lists for view in views}
    return [found[group] for group in wanted if group in found]


def joined_transactions(lists: Iterable[Sequence[TransactionView]]) -> list[TransactionView]:
    return sorted((view for views in lists for view in views), key=attrgetter("transactional_id"))


def joined_transaction_stats(told: Sequence[TransactionStats]) -> TransactionStats:
    """All journals together; what each node has counted since it started."""
    by_state: Counter[TransactionState] = Counter()
    for stats in told:
        by_state.update(stats.by_state)
    ended = sum(stats.committed + stats.aborted for stats in told)
    lasted_ms = sum(stats.average_ms * (stats.committed + stats.aborted) for stats in told)
    longest = sorted((view for stats in told for view in stats.longest_open), key=attrgetter("started_ms"))
    return TransactionStats(
        by_state=dict(by_state),
        committed=sum(stats.committed for stats in told),
        aborted=sum(stats.aborted for stats in told),
        average_ms=lasted_ms / ended if ended else 0.0,
        sequence_states=sum(stats.sequence_states for stats in told),
        next_producer_id=max(stats.next_producer_id for stats in told),
        journal_bytes=sum(stats.journal_bytes for stats in told),
        journal_events=sum(stats.journal_events for stats in told),
        is_synced=all(stats.is_synced for stats in told),
        longest_open=longest,
    )


def joined_rebalances(told: Sequence[RebalanceStats]) -> RebalanceStats:
    total = sum(stats.total for stats in told)
    latest = max(told, key=lambda stats: stats.last_ms or -1)
    waited_ms = sum(stats.average_duration_ms * stats.total for stats in told)
    return RebalanceStats(
        total=total,
        successful=sum(stats.successful for stats in told),
        failed=sum(stats.failed for stats in told),
        partitions_revoked=sum(stats.partitions_revoked for stats in told),
        partitions_assigned=sum(stats.partitions_assigned for stats in told),
        revocation_timeouts=sum(stats.revocation_timeouts for stats in told),
        last_duration_ms=latest.last_duration_ms,
        average_duration_ms=waited_ms / total if total else 0.0,
        last_ms=latest.last_ms,
        by_reason=summed_by_name(stats.by_reason for stats in told),
    )


def joined_reliability(told: Sequence[ReliabilityStats]) -> ReliabilityStats:
    """The sums of all that is counted."""
    sums: dict[str, Any] = {}
    for field in fields(ReliabilityStats):
        values = [getattr(stats, field.name) for stats in told]
        is_number = isinstance(values[0], int)
        sums[field.name] = sum(values) if is_number else summed_by_name(values)
    return ReliabilityStats(**sums)


def joined_lanes(told: Sequence[AllLanes]) -> AllLanes:
    partitions: dict[TopicPartition, LaneStats] = {}
    for lanes in told:
        for source, stats in lanes.partitions.items():
            known = partitions.get(source)
            partitions[source] = stats if known is None else _joined_lane(known, stats)
    return AllLanes(
        dict(sorted(partitions.items())),
        _sums([lanes.delivered for lanes in told]),
        _sums([lanes.waited_ms for lanes in told]),
        [sum(column) for column in zip(*(lanes.rates for lanes in told), strict=True)],
    )


def _joined_lane(left: LaneStats, right: LaneStats) -> LaneStats:
    """What was stored its leader knows best, what waits the coordinator of the group furthest behind."""
    behind = max(left, right, key=lambda stats: sum(stats.ready) + stats.unscanned)
    return LaneStats(
        ready=behind.ready,
        delivered=_sums([left.delivered, right.delivered]),
        stored=[max(pair) for pair in zip(left.stored, right.stored, strict=True)],
        oldest_ms=behind.oldest_ms,
        served_ms=[
            max((time for time in pair if time is not None), default=None)
            for pair in zip(left.served_ms, right.served_ms, strict=True)
        ],
        in_flight=_sums([left.in_flight, right.in_flight]),
        waiting=left.waiting + right.waiting,
        unscanned=behind.unscanned,
    )


def joined_trace_stats(told: Sequence[TraceStats]) -> TraceStats:
    latencies = [stats.latency_us for stats in told if stats.latency_us is not None]
    return TraceStats(
        is_enabled=any(stats.is_enabled for stats in told),
        sampling=told[0].sampling,
        events_recorded=sum(stats.events_recorded for stats in told),
        events_held=sum(stats.events_held for stats in told),
        events_max=sum(stats.events_max for stats in told),
        trace_counts=summed_by_name(stats.trace_counts for stats in told),
        topic_counts=summed_by_name(stats.topic_counts for stats in told),
        latency_us=sum(latencies) / len(latencies) if latencies else None,
    )


def summed_by_name(counts: Iterable[Mapping[T, int]]) -> dict[T, int]:
    total: Counter[T] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _sums(columns: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*columns, strict=True)]


def joined_usage(told: Sequence[TenantUsage]) -> TenantUsage:
    """Each node has counted what went through it, and holds what it leads."""
    totals = [usage.totals for usage in told]
    return replace(
        told[0],
        totals=UsageTotals(*(sum(getattr(each, one.name) for each in totals) for one in fields(UsageTotals))),
        storage_bytes=sum(usage.storage_bytes for usage in told),
        group_count=sum(usage.group_count for usage in told),
        counted_ms=max(usage.counted_ms for usage in told),
        connection_count=sum(usage.connection_count for usage in told),
        violations=summed_by_name(usage.violations for usage in told),
    )


def joined_hours(told: Sequence[Mapping[int, UsageHour]]) -> dict[int, UsageHour]:
    """What went through each node, and what each leads."""
    total: dict[int, UsageHour] = {}
    for hours in told:
        for hour, used in hours.items():
            total[hour] = UsageHour(*map(sum, zip(total.get(hour, UsageHour()), used, strict=True)))
    return dict(sorted(total.items()))


def joined_holdings(told: Sequence[Mapping[str, Holding]]) -> dict[str, Holding]:
    total: dict[str, Holding] = {}
    for holdings in told:
        for tenant_id, (storage_bytes, group_count) in holdings.items():
            known = total.get(tenant_id, Holding(0, 0))
            total[tenant_id] = Holding(known.storage_bytes + storage_bytes, known.group_count + group_count)
    return total


def joined_names(told: Sequence[Sequence[str]]) -> list[str]:
    return sorted({name for names in told for name in names})
