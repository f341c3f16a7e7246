"""The JSON of traces. Two sets of keys: the first server's, and those that existing clients read."""

from typing import Annotated, Generic

from msgspec import Meta, Struct

from goqueue.edge.http.parts.times import format_duration, format_time_us
from goqueue.model.ids import TopicPartition
from goqueue.model.telemetry import ExportStatus, Fact, Span, Trace, TraceStats, TraceStatus
from goqueue.wire import traces as wire
from goqueue.wire.times import Time

CLIENT_STATUS = {
    "error": frozenset({TraceStatus.FAILED, TraceStatus.EXPIRED}),
    "pending": frozenset({TraceStatus.IN_PROGRESS, TraceStatus.RETRYING, TraceStatus.DELAYED}),
}
"""What existing clients call several statuses by one word. `completed` is the same for all."""
_WORD_OF = {status: word for word, statuses in CLIENT_STATUS.items() for status in statuses}


_GO_AGENT = "Go-http-client/"
"""How Go's own HTTP client calls itself, on which the client in Go is built."""


TraceSummary = wire.TraceSummary[str]


SpanBody = wire.Span[str]


class TraceEvent(Struct):
    """The same stage for clients that look for `events`."""

    timestamp: str
    event_type: str
    type: str
    details: Annotated[
        dict[str, Fact] | str, Meta(description="A text for clients in Go, which know it as one.")
    ]


class TraceBody(wire.Trace[Time], Generic[Time], frozen=True, kw_only=True):
    """One message's story, stage by stage."""

    events: list[TraceEvent]


class TraceList(Struct):
    """Traces, newest first."""

    traces: list[TraceSummary]
    total: Annotated[int, Meta(description="How many are listed here.")]
    complete: Annotated[
        bool, Meta(description="False: the search took too long, and older traces were not looked at.")
    ]


class TraceQueryBody(Struct):
    """A search as it was understood."""

    topic: str
    partition: int
    consumer_group: str
    start: str
    end: str
    status: str
    limit: int


class TraceSearch(TraceList):
    query: TraceQueryBody


class ExporterBody(Struct):
    name: str
    sent: int
    dropped: Annotated[int, Meta(description="Spans that were never sent: too many, or too long no answer.")]
    failures: Annotated[int, Meta(description="Attempts to send that failed.")]
    waiting: int
    last_error: str


class TraceStatsBody(wire.TraceStats, frozen=True, kw_only=True):
    """What is recorded and held now."""

    traces_total: int
    traces_completed: int
    traces_error: int
    avg_latency: Annotated[str, Meta(description="From being stored to the first acknowledgement.")]
    by_status: dict[str, int]
    events_recorded: Annotated[int, Meta(description="Since the broker began.")]
    exporters: list[ExporterBody]


def trace_summary(trace: Trace) -> TraceSummary:
    return wire.TraceSummary(*_summary(trace))


def trace_body(trace: Trace, *, user_agent: str = "") -> TraceBody[str]:
    details = _details_text if user_agent.startswith(_GO_AGENT) else _details
    return TraceBody(
        *_summary(trace),
        spans=[span_body(span) for span in trace.spans],
        events=[
            TraceEvent(format_time_us(span.time_us), span.stage.value, span.stage.value, details(span))
            for span in trace.spans
        ],
    )


def span_body(span: Span) -> SpanBody:
    return wire.Span(
        span_id=span.span_id,
        event_type=span.stage.value,
        timestamp=format_time_us(span.time_us),
        topic=span.topic,
        partition=span.partition,
        offset=span.offset,
        parent_span_id=span.parent_span_id,
        consumer_group=span.group or None,
        consumer_id=span.consumer or None,
        duration_ns=None if span.duration_us is None else span.duration_us * 1000,
        error=span.error or None,
        attributes={**span.facts, "source": span.witness.value},
    )


def stats_body(stats: TraceStats, exports: list[ExportStatus]) -> TraceStatsBody:
    counts = stats.trace_counts
    total = sum(counts.values())
    completed = counts.get(TraceStatus.COMPLETED, 0)
    failed = sum(counts.get(status, 0) for status in CLIENT_STATUS["error"])
    return TraceStatsBody(
        enabled=stats.is_enabled,
        spans_in_buffer=stats.events_held,
        buffer_capacity=stats.events_max,
        traces_indexed=total,
        sampling_rate=stats.sampling,
        exporters_enabled=[export.name for export in exports],
        traces_total=total,
        traces_completed=completed,
        traces_error=failed,
        avg_latency=format_duration(round((stats.latency_us or 0) / 1000)),
        total_traces=total,
        active_traces=total - completed - failed,
        completed_traces=completed,
        error_traces=failed,
        by_topic={str(topic): count for topic, count in stats.topic_counts.items()},
        by_status={status.value: count for status, count in counts.items()},
        events_recorded=stats.events_recorded,
        exporters=[
            ExporterBody(
                export.name, export.sent, export.dropped, export.failures, export.waiting, export.last_error
            )
            for export in exports
        ],
    )


def _summary(trace: Trace) -> tuple[str, str, int, int, str, str, int, int, str, str, int]:
    took_us = trace.end_us - trace.start_us
    return (
        trace.trace_id,
        trace.source.topic,
        trace.source.partition,
        trace.offset,
        format_time_us(trace.start_us),
        format_time_us(trace.end_us),
        round(took_us / 1000),
        took_us,
        _WORD_OF.get(trace.status, trace.status.value),
        trace.status.value,
        len(trace.spans),
    )


def _details(span: Span) -> dict[str, Fact]:
    """Where a stage was, with whom, and what else is known."""
    told: dict[str, Fact] = {"topic": span.topic, "partition": span.partition, "offset": span.offset}
    named = (("group", span.group), ("consumer", span.consumer), ("error", span.error))
    return told | {name: value for name, value in named if value} | dict(span.facts)


def _details_text(span: Span) -> str:
    """The same in one line."""
    place = str(span.topic) if span.partition < 0 else str(TopicPartition(span.topic, span.partition))
    words = [place if span.offset < 0 else f"{place}@{span.offset}"]
    words += [
        f"{name}={value}" for name, value in (("group", span.group), ("consumer", span.consumer)) if value
    ]
    words += [f"{name}={value}" for name, value in span.facts.items()]
    if span.error:
        words.append(f"error={span.error}")
    return " ".join(words)
