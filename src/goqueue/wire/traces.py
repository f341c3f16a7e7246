"""Traces: stages of a message's life."""

from typing import Annotated, Generic

from msgspec import Meta, Struct

from goqueue.model.telemetry import Fact
from goqueue.wire.times import Time


class Span(Struct, Generic[Time], frozen=True, omit_defaults=True):
    """One stage of a message."""

    span_id: Annotated[str, Meta(description="16 hexadecimal digits.")]
    event_type: str
    timestamp: Time
    topic: str
    partition: int
    offset: int
    parent_span_id: str | None = None
    consumer_group: str | None = None
    consumer_id: str | None = None
    duration_ns: int | None = None
    error: str | None = None
    attributes: dict[str, Fact] | None = None


class TraceSummary(Struct, Generic[Time], frozen=True):
    """One message's story in short."""

    trace_id: Annotated[str, Meta(description="32 hexadecimal digits.")]
    topic: str
    partition: int
    offset: Annotated[int, Meta(description="-1: it has none (yet).")]
    start_time: Time
    end_time: Time
    duration_ms: int
    duration_us: int
    status: Annotated[str, Meta(description="completed, pending or error.")]
    state: Annotated[
        str,
        Meta(description="The same told apart: in_progress, completed, failed, retrying, delayed, expired."),
    ]
    span_count: int


class Trace(TraceSummary[Time], Generic[Time], frozen=True, kw_only=True):
    """One message's story, stage by stage."""

    spans: list[Span[Time]]


class TraceStats(Struct, frozen=True, kw_only=True):
    """What is recorded and held now."""

    enabled: bool
    spans_in_buffer: Annotated[int, Meta(description="Events held; each may be about many messages.")]
    buffer_capacity: int
    traces_indexed: Annotated[int, Meta(description="Sampled messages that the events held tell of.")]
    sampling_rate: float
    exporters_enabled: list[str]
    total_traces: int
    active_traces: int
    completed_traces: int
    error_traces: int
    by_topic: dict[str, int]
