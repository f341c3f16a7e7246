"""A message's life in words: its stages, the spans that tell of them, and what may be asked for.

A trace is one story. It may lead through several places: a message that became a dead letter and was sent
back has been stored three times, under one id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.places import Place, Seat

TRACEPARENT = "traceparent"
"""The header in which W3C's trace context travels."""
NO_OFFSET = -1
NO_PARTITION = -1


class Stage(Enum):
    """What can happen to a message."""

    RECEIVED = "publish.received"
    REFUSED = "publish.validation_failed"
    PARTITIONED = "publish.partitioned"
    PERSISTED = "publish.persisted"
    COMMITTED = "transaction.committed"
    ABORTED = "transaction.aborted"
    FETCHED = "consume.fetched"
    ACKED = "consume.acked"
    NACKED = "consume.nacked"
    REJECTED = "consume.rejected"
    OUTDATED = "consume.ttl_expired"
    PASSED_OVER = "consume.passed_over"
    SCHEDULED = "delay.scheduled"
    FIRED = "delay.fired"
    CANCELLED = "delay.canceled"
    EXTENDED = "visibility.extended"
    EXPIRED = "visibility.expired"
    DEAD_LETTERED = "dlq.routed"
    REDRIVEN = "dlq.redriven"


class TraceStatus(Enum):
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    RETRYING = "retrying"
    DELAYED = "delayed"
    EXPIRED = "expired"


class Witness(Enum):
    """Who tells of a span: what was noted when it happened, the log, or a journal."""

    RING = "ring"
    LOG = "log"
    JOURNAL = "journal"


class TraceContext(NamedTuple):
    """The trace that a message is part of."""

    trace_id: str
    """32 hexadecimal digits."""
    parent_span_id: str | None
    """The producer's span, when the message came with a trace context."""


Fact = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Span:
    """One stage of one message."""

    stage: Stage
    time_us: int
    topic: TopicName
    partition: int
    """NO_PARTITION: not told."""
    offset: int
    """NO_OFFSET: it has none (yet)."""
    witness: Witness
    span_id: str
    parent_span_id: str | None
    group: str = ""
    consumer: str = ""
    duration_us: int | None = None
    """How long the stage took until then, where that is known."""
    error: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """The story of a message, as far as it is known."""

    context: TraceContext
    source: TopicPartition
    offset: int
    """NO_OFFSET: it was refused, or is not due yet."""
    status: TraceStatus
    spans: Sequence[Span]
    """In order of time; never empty."""
    elsewhere: Sequence[tuple[TopicPartition, int]] = ()
    """Messages that the story leads to, and that other nodes have to tell of."""

    @property
    def trace_id(self) -> str:
        return self.context.trace_id

    @property
    def start_us(self) -> int:
        return self.spans[0].time_us

    @property
    def end_us(self) -> int:
        return self.spans[-1].time_us


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuery:
    """Which of the recorded traces are wanted, newest first."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    start_us: int | None = None
    end_us: int | None = None
    """Traces of which something happened in this time, its end not included."""
    statuses: frozenset[TraceStatus] = frozenset()
    """None: any."""
    limit: int = 100

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


class TracesFound(NamedTuple):
    """What a search has found."""

    traces: list[Trace]
    is_complete: bool
    """False: it took too long, and there may be more that nobody has looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStats:
    """What tracing has recorded and still holds."""

    is_enabled: bool
    sampling: float
    """Of topics that do not say otherwise."""
    events_recorded: int
    """Since the start."""
    events_held: int
    events_max: int
    trace_counts: Mapping[TraceStatus, int]
    """Sampled messages that the events held tell of, by how their stories stand."""
    topic_counts: Mapping[TopicName, int]
    latency_us: float | None
    """From being stored to the first acknowledgement, on average; None: nothing was acknowledged."""


@dataclass(slots=True)
class ExportStatus:
    """How it goes with the spans that one exporter takes out of the house. Counts are since the start."""

    name: str
    sent: int = 0
    dropped: int = 0
    """Never sent: there was no room, the collector took too long, or there were more than may leave."""
    failures: int = 0
    """Attempts to send that failed."""
    waiting: int = 0
    """Spans that are still to be sent."""
    last_error: str = ""
    """Why the last attempt failed; empty when it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceMessage:
    """The story of any message in retention."""

    source: TopicPartition
    offset: int

    @property
    def place(self) -> TopicPartition:
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class FindTrace:
    """The story of the messages that are part of a trace."""

    trace_id: str

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTraces:
    """What has been recorded, counted."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


class Heard(NamedTuple):
    """What a node has to add to a story that another tells."""

    spans: Sequence[Span]
    is_awaited: bool
    """A group that it coordinates has still to come to the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HearOfTraces:
    """What a node has heard of messages, and what its groups know of them; one answer a story."""

    traces: Sequence[Trace]

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


class FindTraceparents(NamedTuple):
    """The headers by which messages of a partition pass their made traces on."""

    source: TopicPartition
    offsets: Sequence[int]

    @property
    def place(self) -> TopicPartition:
        return self.source
