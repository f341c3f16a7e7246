"""The story of a message as a time line for people."""

from datetime import UTC, datetime

import msgspec

from goqueue.cli.parts.output import Columns, Row
from goqueue.cli.parts.times import time_text
from goqueue.client.calls.traces import Span, Trace

_SOURCES = {"ring": "seen", "log": "from the log", "journal": "from the journal"}
"""Who tells of a stage: it was seen when it happened, or read off what was kept."""
_LONG_AGO_MS = 10**12
"""More milliseconds than this are a time (since 2001) and no span of time."""


class StageRow(msgspec.Struct):
    """A stage of a message in the time line."""

    timestamp: datetime
    after: str
    type: str
    group: str
    details: str


STAGES: Columns = {
    "TIMESTAMP": "timestamp",
    "AFTER": "after",
    "TYPE": "type",
    "GROUP": "group",
    "DETAILS": "details",
}


def stage_rows(trace: Trace) -> list[StageRow]:
    """The stages in the order of their times, each with how long after the first it came."""
    spans = sorted(trace.spans, key=lambda span: span.timestamp)
    return [
        StageRow(
            span.timestamp,
            milliseconds_text((span.timestamp - spans[0].timestamp).total_seconds() * 1_000),
            span.event_type,
            span.consumer_group or "",
            _details(span, is_elsewhere=_place(span) != _place(trace)),
        )
        for span in spans
    ]


def took_text(row: Row) -> str:
    """How long a story is."""
    duration_us = row["duration_us"]
    return milliseconds_text(duration_us / 1_000) if isinstance(duration_us, int) else "-"


def number_text(number: object) -> str:
    """A partition or an offset; a message that never came to a place has none."""
    return "-" if number == -1 else str(number)


def milliseconds_text(duration_ms: float) -> str:
    """A time between two stages: 0.42 ms, 12.0 ms, 3.5 s."""
    if duration_ms < 10:
        return f"{duration_ms:.2f} ms"
    if duration_ms < 1_000:
        return f"{duration_ms:.1f} ms"
    return f"{duration_ms / 1_000:.1f} s"


def _fact(name: str, value: object) -> str:
    if name.endswith("_ms") and isinstance(value, int) and value > _LONG_AGO_MS:
        return f"{name.removesuffix('_ms')}={time_text(datetime.fromtimestamp(value / 1_000, UTC))}"
    return f"{name}={value}"


def _place(told: Span | Trace) -> str:
    return "/".join((told.topic, number_text(told.partition), number_text(told.offset)))


def _details(span: Span, *, is_elsewhere: bool) -> str:
    facts = dict(span.attributes or {})
    source = facts.pop("source", "")
    words = [_fact(name, value) for name, value in facts.items()]
    if span.consumer_id:
        words.insert(0, f"consumer={span.consumer_id}")
    if is_elsewhere:
        words.insert(0, f"message={_place(span)}")
    if span.duration_ns:
        words.append(f"took {milliseconds_text(span.duration_ns / 1e6)}")
    if span.error:
        words.append(f"error: {span.error}")
    if source and source != "ring":
        words.append(f"({_SOURCES.get(str(source), source)})")
    return ", ".join(words)
