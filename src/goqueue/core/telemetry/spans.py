"""Spans: an event about a run, told of one message; and how a message's story stands."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from goqueue.core.telemetry.trace_ids import root_span_id, span_id
from goqueue.core.telemetry.traces import Event, Kind
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.telemetry import (
    NO_OFFSET,
    NO_PARTITION,
    Fact,
    Span,
    Stage,
    TraceContext,
    TraceStatus,
    Witness,
)

_STAGES = {
    Kind.STORED: Stage.PARTITIONED,
    Kind.FLUSHED: Stage.PERSISTED,
    Kind.READ: Stage.FETCHED,
    Kind.LEASED: Stage.FETCHED,
    Kind.ACKED: Stage.ACKED,
    Kind.NACKED: Stage.NACKED,
    Kind.REJECTED: Stage.REJECTED,
    Kind.EXTENDED: Stage.EXTENDED,
    Kind.EXPIRED: Stage.EXPIRED,
    Kind.OUTDATED: Stage.OUTDATED,
    Kind.PASSED_OVER: Stage.PASSED_OVER,
    Kind.DEAD_LETTERED: Stage.DEAD_LETTERED,
    Kind.REDRIVEN: Stage.REDRIVEN,
    Kind.POSTPONED: Stage.SCHEDULED,
    Kind.CANCELLED: Stage.CANCELLED,
    Kind.DUE: Stage.FIRED,
    Kind.REFUSED: Stage.REFUSED,
}
_FACT_NAMES = {
    Kind.STORED: "batch_bytes",
    Kind.READ: "batch_bytes",
    Kind.LEASED: "lease_until_ms",
    Kind.EXTENDED: "lease_until_ms",
    Kind.DEAD_LETTERED: "to",
    Kind.REDRIVEN: "to",
}
"""What the last field of an event tells, where it is no error and no number of a delayed message."""
_FIRST = frozenset({Stage.RECEIVED, Stage.SCHEDULED})
_UNTIMED = frozenset({Stage.REFUSED, Stage.PARTITIONED, Stage.PERSISTED, Stage.FIRED})
"""They happen once to a message, so their ids need no time: log and ring give the same ones."""
_NO_FACTS: Mapping[str, Fact] = MappingProxyType({})
_IN_ORDER = {stage: at for at, stage in enumerate(Stage)}
_UNDECIDED = frozenset({Stage.FETCHED, Stage.EXTENDED})
_FAILED = frozenset({Stage.REJECTED, Stage.DEAD_LETTERED, Stage.PASSED_OVER})
_RETRYING = frozenset({Stage.NACKED, Stage.EXPIRED})
_EXPIRED = frozenset({Stage.OUTDATED})
_OF_GROUPS = _UNDECIDED | _FAILED | _RETRYING | _EXPIRED | {Stage.ACKED}


class SpanMaker:
    """Makes the spans of one message at one place."""

    def __init__(
        self, context: TraceContext, source: TopicPartition, offset: int, shown: TopicPartition | None = None
    ) -> None:
        """`shown` is where a message goes that waits for its time: it has a number instead of an offset."""
        self._context = context
        self._source = source
        self._offset = offset
        self._shown = shown
        self._root_id = root_span_id(context, *source, offset)

    def make(
        self,
        stage: Stage,
        time_us: int,
        witness: Witness,
        *,
        group: str = "",
        consumer: str = "",
        error: str = "",
        facts: Mapping[str, Fact] = _NO_FACTS,
    ) -> Span:
        """One span. All hang on the first of the message, and that on the producer's."""
        own_id, parent_id = self._root_id, self._context.parent_span_id
        if stage not in _FIRST:
            id_time_us = 0 if stage in _UNTIMED else time_us
            own_id = span_id(self._context, stage, *self._source, self._offset, group, id_time_us)
            parent_id = self._root_id
        topic, partition = self._source if self._shown is None else self._shown
        return Span(
            stage=stage,
            time_us=time_us,
            topic=topic,
            partition=partition,
            offset=self._offset if self._shown is None else NO_OFFSET,
            witness=witness,
            span_id=own_id,
            parent_span_id=parent_id,
            group=group,
            consumer=consumer,
            error=error,
            facts=facts if self._shown is None else {**facts, "number": self._offset},
        )


def spans_of(event: Event, source: TopicPartition, offset: int, context: TraceContext) -> list[Span]:
    """What an event tells of one of its messages; `source` is the partition that it is about."""
    time_us, kind, _, first, end, group, consumer, extra = event
    stage = _STAGES[kind]
    facts: dict[str, Fact] = {}
    shown, error = None, ""
    match stage:
        case Stage.PARTITIONED:
            facts["batch_messages"] = end - first
        case Stage.NACKED | Stage.REJECTED | Stage.PASSED_OVER:
            error = str(extra)
        case Stage.REFUSED:
            facts["code"], group, error = group, "", str(extra)
        case Stage.FIRED:
            facts["number"] = int(extra) + offset - first
        case Stage.SCHEDULED | Stage.CANCELLED:
            shown, consumer = TopicPartition(TopicName(str(extra)), NO_PARTITION), ""
    if name := _FACT_NAMES.get(kind):
        facts[name] = extra
    maker = SpanMaker(context, source, offset, shown)
    spans = []
    if stage in (Stage.PARTITIONED, Stage.REFUSED):
        spans.append(maker.make(Stage.RECEIVED, time_us, Witness.RING))
    told = maker.make(stage, time_us, Witness.RING, group=group, consumer=consumer, error=error, facts=facts)
    return [*spans, told]


def in_order(spans: Iterable[Span]) -> list[Span]:
    """By time; what happened in the same moment in the order of a message's life."""
    return sorted(spans, key=lambda span: (span.time_us, _IN_ORDER[span.stage]))


def status_of(spans: Iterable[Span], *, is_awaited: bool = False) -> TraceStatus:
    """How a story stands, by spans in order. Of several groups the one that is worst off tells.

    `is_awaited`: a group has still to come to the message.
    """
    groups: dict[str, Stage] = {}
    last: Stage | None = None
    is_read = False
    for span in spans:
        match span.stage:
            case Stage.REFUSED | Stage.ABORTED:
                return TraceStatus.FAILED
            case Stage.SCHEDULED | Stage.CANCELLED | Stage.FIRED:
                last = span.stage
            case Stage.REDRIVEN:
                # It is as if it had just been published, for the groups that had given it up.
                groups = {group: stage for group, stage in groups.items() if stage not in _FAILED}
                groups.setdefault("", Stage.FETCHED)
            case Stage.FETCHED if not span.group:
                is_read = True
            case stage if stage in _OF_GROUPS:
                groups.pop("", None)
                groups[span.group] = stage
    if last is Stage.SCHEDULED:
        return TraceStatus.DELAYED
    if last is Stage.CANCELLED:
        return TraceStatus.COMPLETED
    stages = set(groups.values())
    for found, status in (
        (_FAILED, TraceStatus.FAILED),
        (_RETRYING, TraceStatus.RETRYING),
        (_UNDECIDED, TraceStatus.IN_PROGRESS),
        (_EXPIRED, TraceStatus.EXPIRED),
    ):
        if stages & found:
            return status
    is_done = (stages or is_read) and not is_awaited
    return TraceStatus.COMPLETED if is_done else TraceStatus.IN_PROGRESS
