"""Families about the node: its disk and loop, transactions, delays, schemas, traces."""

import platform
from collections.abc import Callable, Iterable
from itertools import islice
from operator import attrgetter

import goqueue
from goqueue.broker.delays.verbs import delay_stats
from goqueue.broker.measures.family import TOPIC, Family, Sample, counter, gauge, histogram, one
from goqueue.broker.measures.view import View
from goqueue.core.access.account import Account
from goqueue.model.delays import CountDelayed
from goqueue.model.transactions import TransactionState

_RECOVERY_POINT = "recovery_point"


def _connections(view: View) -> Iterable[Sample]:
    return [((door,), count()) for door, count in view.counters.connections.items()]


def _pending(view: View) -> Iterable[Sample]:
    counts: dict[str, int] = {}
    if not view.broker.delays.is_here:
        return []  # another node keeps them, and tells
    for name, count in delay_stats(view.broker, CountDelayed()).pending_by_topic.items():
        label = view.topic_label(name)
        counts[label] = counts.get(label, 0) + count
    return [((label,), count) for label, count in counts.items()]


def _late_seconds(view: View) -> float:
    """Since when the next delayed message should have been delivered."""
    if not view.broker.delays.is_here:
        return 0
    stock = view.broker.delays.stock
    times_ms = [time_ms for time_ms in (stock.next_ready_ms, stock.next_near_ms) if time_ms is not None]
    return max(view.now_ms - min(times_ms, default=view.now_ms), 0) / 1000


def _schedules(view: View) -> Iterable[Sample]:
    if not view.broker.delays.is_here:
        return ()
    schedules = view.broker.delays.store.schedules.schedules.values()
    paused = sum(schedule.is_paused for schedule in schedules)
    return ((("active",), len(schedules) - paused), (("paused",), paused))


def _open_transactions(view: View) -> int:
    return sum(known.state is TransactionState.ONGOING for known in view.broker.transactions.all())


def _undecided_transactions(view: View) -> int:
    return sum(
        known.state is TransactionState.ONGOING or known.state.is_prepared
        for known in view.broker.transactions.all()
    )


def _transactions_begun(view: View) -> int:
    """All that have ended, and those that have not: each of them has begun."""
    counts = view.broker.transactions.counts
    return counts.committed + counts.aborted + _undecided_transactions(view)


def _sink_epochs(view: View) -> Iterable[Sample]:
    sinks = (sink for journal in view.broker.transactions for sink in journal.sinks.sinks.values())
    return [((sink.name,), sink.last_epoch) for sink in islice(sinks, view.counters.config.groups_max)]


def _accounts(view: View) -> Iterable[tuple[str, Account]]:
    accounts = islice(view.broker.tenants.accounts.items(), view.counters.config.groups_max)
    return list(accounts)


def _of_tenants(field: str) -> Callable[[View], Iterable[Sample]]:
    value: Callable[[Account], float] = attrgetter(field)
    return lambda view: [((tenant,), value(account)) for tenant, account in _accounts(view)]


_NOT_YET = dict.fromkeys(("publish_rate", "consume_rate", "storage", "connections"), 0)
"""What is refused most often is told of before it has happened: who watches sees the first time, too."""


def _violations(view: View) -> Iterable[Sample]:
    return [
        ((tenant, quota), count)
        for tenant, account in _accounts(view)
        for quota, count in {**_NOT_YET, **account.violations}.items()
    ]


def _audit_events(view: View) -> Iterable[Sample]:
    audit = view.broker.audit
    counts = {"written": audit.written, "dropped": audit.dropped}
    if audit.topic is not None:
        counts |= {"published": audit.topic.published, "unpublished": audit.topic.dropped}
    return [((outcome,), count) for outcome, count in counts.items()]


def _build(view: View) -> Iterable[Sample]:
    return (((goqueue.__version__, platform.python_version(), view.broker.config.node_id), 1),)


def _disk_total(view: View) -> Iterable[Sample]:
    space = view.broker.health.space
    return () if space is None else (((), space.total_bytes),)


def _disk_free(view: View) -> Iterable[Sample]:
    space = view.broker.health.space
    return () if space is None else (((), space.free_bytes),)


def _disk_used(view: View) -> Iterable[Sample]:
    space = view.broker.health.space
    return () if space is None else (((), space.total_bytes - space.free_bytes),)


def _loop_lag(view: View) -> Iterable[Sample]:
    summary = view.broker.health.loop_lag.summary(now_ns=view.broker.clock.monotonic_ns())
    return ((("p99",), summary.p99_ns / 1e9), (("max",), summary.worst_ns / 1e9))


def _damaged(view: View) -> int:
    topics = view.broker.topics.values()
    return sum(partition.damage is not None for topic in topics for partition in topic.partitions)


def _events_recorded(view: View) -> int:
    return view.broker.telemetry.traces.recorded


def _events_forgotten(view: View) -> int:
    traces = view.broker.telemetry.traces
    return traces.recorded - len(traces)


def _jobs(view: View) -> Iterable[Sample]:
    counts = view.broker.workshop.counts
    for outcome in ("done", "overran", "lost", "refused"):
        yield (outcome,), getattr(counts, outcome)


def _sent(view: View) -> Iterable[Sample]:
    return [((export.name,), export.sent) for export in view.broker.telemetry.exports]


def _dropped(view: View) -> Iterable[Sample]:
    return [((export.name,), export.dropped) for export in view.broker.telemetry.exports]


def _failures(view: View) -> Iterable[Sample]:
    return [((export.name,), export.failures) for export in view.broker.telemetry.exports]


NODE: tuple[Family, ...] = (
    gauge(
        "goqueue_build_info",
        ("version", "python", "node_id"),
        "1; the labels tell what is running.",
        _build,
    ),
    counter(
        "goqueue_tenant_messages_published_total",
        ("tenant",),
        "Messages stored in topics of a tenant, as its usage tells (since it was created).",
        _of_tenants("messages_published"),
    ),
    counter(
        "goqueue_tenant_bytes_published_total",
        ("tenant",),
        "Bytes of them.",
        _of_tenants("bytes_published"),
    ),
    counter(
        "goqueue_tenant_messages_consumed_total",
        ("tenant",),
        "Messages given out of topics of a tenant.",
        _of_tenants("messages_consumed"),
    ),
    counter(
        "goqueue_tenant_bytes_consumed_total",
        ("tenant",),
        "Bytes of them.",
        _of_tenants("bytes_consumed"),
    ),
    gauge(
        "goqueue_tenant_storage_bytes",
        ("tenant",),
        "Bytes that topics of a tenant take on the disk, when last looked at and written since.",
        _of_tenants("storage_bytes"),
    ),
    gauge(
        "goqueue_tenant_connections",
        ("tenant",),
        "Connections of clients that are a tenant's, where doors ask who comes.",
        _of_tenants("connections"),
    ),
    counter(
        "goqueue_tenant_quota_violations_total",
        ("tenant", "quota"),
        "How often a quota of a tenant has refused something, since the broker started or usage was reset.",
        _violations,
    ),
    gauge("goqueue_broker_active_connections", ("door",), "Connections of clients now.", _connections),
    counter(
        "goqueue_broker_connections_refused_total",
        ("door", "reason"),
        "Connections that were not let in: too many in all, or from one address.",
        lambda view: view.counters.connections_refused.items(),
    ),
    gauge("goqueue_node_loop_lag_seconds", ("of",), "How late the loop ran in the last minute.", _loop_lag),
    histogram(
        "goqueue_storage_fsync_latency_seconds",
        (),
        "How long flushes took. All topics share one disk, so they are not told apart.",
        lambda view: (((), view.broker.flusher.seconds),),
    ),
    counter(
        "goqueue_storage_snapshots_created_total",
        ("snapshot_type",),
        "Recovery points written: from there on a partition is checked when it is opened.",
        lambda view: (((_RECOVERY_POINT,), view.broker.flusher.recovery_points.count),),
    ),
    histogram(
        "goqueue_storage_snapshot_latency_seconds",
        ("snapshot_type",),
        "How long flushes took that ended with a recovery point.",
        lambda view: (((_RECOVERY_POINT,), view.broker.flusher.recovery_points),),
    ),
    counter(
        "goqueue_storage_commit_rounds_total",
        (),
        "Rounds of the commit log: what all partitions had written became safe with one sync.",
        one(lambda view: view.broker.commit_log.round_count),
    ),
    counter(
        "goqueue_storage_commit_bytes_total",
        (),
        "Bytes written to the commit log.",
        one(lambda view: view.broker.commit_log.written_bytes),
    ),
    gauge(
        "goqueue_storage_commit_files",
        (),
        "Files of the commit log in use. At their maximum, partitions sync their own files instead.",
        one(lambda view: len(view.broker.commit_log.paths)),
    ),
    gauge("goqueue_storage_disk_total_bytes", (), "Size of the data disk.", _disk_total),
    gauge("goqueue_storage_disk_free_bytes", (), "What of it the broker may still use.", _disk_free),
    gauge("goqueue_storage_disk_used_bytes", (), "What of it is used or kept back.", _disk_used),
    counter(
        "goqueue_storage_index_rebuilds_total",
        (),
        "Indexes of segments that were rebuilt when their partition was opened.",
        one(lambda view: view.broker.health.recovery.rebuilt_indexes),
    ),
    counter(
        "goqueue_storage_scrubbed_bytes_total",
        (),
        "Bytes of sealed segments that were read back and checked.",
        one(lambda view: view.broker.health.scrub.scrubbed_bytes),
    ),
    gauge(
        "goqueue_storage_bad_batches",
        (),
        "Batches in sealed segments that were found to have gone bad on the disk (docs/repair.md).",
        one(lambda view: view.broker.health.scrub.bad_frames),
    ),
    counter(
        "goqueue_storage_compaction_runs_total",
        (),
        "Rounds of compaction, each over one partition (docs/compaction.md).",
        one(lambda view: view.broker.compaction.rounds),
    ),
    counter(
        "goqueue_storage_compaction_bytes_total",
        (),
        "Bytes that compaction has read and written.",
        one(lambda view: view.broker.compaction.read_bytes),
    ),
    counter(
        "goqueue_storage_compaction_bytes_reclaimed_total",
        (),
        "By how much compaction has made segments smaller.",
        one(lambda view: view.broker.compaction.freed_bytes),
    ),
    counter(
        "goqueue_storage_compaction_removed_messages_total",
        (),
        "Messages that compaction has removed.",
        one(lambda view: view.broker.compaction.removed_records),
    ),
    gauge(
        "goqueue_storage_compaction_memory_bytes",
        (),
        "What the round of compaction at work takes for keys.",
        one(lambda view: view.broker.compaction.keys_bytes),
    ),
    gauge(
        "goqueue_storage_uncleanable_partitions",
        (),
        "Partitions that are not compacted because something in them cannot be read (docs/compaction.md).",
        one(lambda view: len(view.broker.compaction.uncleanable)),
    ),
    gauge(
        "goqueue_storage_offsets_above_end",
        (),
        "Committed offsets that the last start found behind the end of their partition.",
        one(lambda view: view.broker.health.recovery.offsets_above_end),
    ),
    gauge(
        "goqueue_storage_damaged_partitions",
        (),
        "Partitions that have lost something and take nothing until that is accepted (docs/repair.md).",
        one(_damaged),
    ),
    counter("goqueue_broker_transactions_started_total", (), "Transactions begun.", one(_transactions_begun)),
    counter(
        "goqueue_broker_transactions_committed_total",
        (),
        "Transactions committed.",
        one(lambda view: view.broker.transactions.counts.committed),
    ),
    counter(
        "goqueue_broker_transactions_aborted_total",
        (),
        "Transactions aborted, by their producer or because they took too long.",
        one(lambda view: view.broker.transactions.counts.aborted),
    ),
    gauge("goqueue_broker_transactions_open", (), "Transactions that are open now.", one(_open_transactions)),
    histogram(
        "goqueue_broker_transaction_latency_seconds",
        (),
        "From the begin of a transaction until it was decided.",
        lambda view: (((), view.broker.transactions.counts.seconds),),
    ),
    gauge("goqueue_sink_last_epoch", ("sink",), "The last epoch of an exactly-once sink.", _sink_epochs),
    gauge(
        "goqueue_broker_delayed_messages_pending",
        TOPIC,
        "Messages that wait for their time.",
        _pending,
    ),
    gauge(
        "goqueue_delay_late_seconds",
        (),
        "For how long the delayed message that is next has been due; 0 while none is.",
        one(_late_seconds),
    ),
    gauge("goqueue_schedules", ("state",), "Schedules of recurring messages: active or paused.", _schedules),
    gauge(
        "goqueue_schema_subjects",
        (),
        "Subjects in the schema registry.",
        one(lambda view: len(view.broker.schemas.registry.subjects())),
    ),
    gauge(
        "goqueue_schema_ids",
        (),
        "Schemas in the registry, each with an id of its own.",
        one(lambda view: view.broker.schemas.registry.schema_count),
    ),
    counter(
        "goqueue_audit_events_total",
        ("outcome",),
        "Events for the audit log: written, or dropped because too many came at once; published in its topic "
        "too, or unpublished because that took nothing for too long.",
        _audit_events,
    ),
    gauge(
        "goqueue_workshop_processes",
        (),
        "Helper processes that are there now.",
        one(lambda view: view.broker.workshop.process_count),
    ),
    gauge(
        "goqueue_workshop_jobs_waiting",
        (),
        "Jobs that wait for a helper process.",
        one(lambda view: view.broker.workshop.waiting_count),
    ),
    counter(
        "goqueue_workshop_jobs_total",
        ("outcome",),
        "Jobs of the helper processes: done, overran (killed at a limit), lost (the process ended), refused "
        "(too many waited).",
        _jobs,
    ),
    counter("goqueue_tracing_events_recorded_total", (), "Trace events recorded.", one(_events_recorded)),
    counter(
        "goqueue_tracing_events_forgotten_total",
        (),
        "Trace events that newer ones have pushed out of the ring.",
        one(_events_forgotten),
    ),
    counter("goqueue_tracing_spans_exported_total", ("exporter",), "Spans that were exported.", _sent),
    counter(
        "goqueue_tracing_spans_dropped_total",
        ("exporter",),
        "Spans that an exporter had to leave out: too many, or its target did not take them.",
        _dropped,
    ),
    counter("goqueue_tracing_export_failures_total", ("exporter",), "Exports that failed.", _failures),
)
