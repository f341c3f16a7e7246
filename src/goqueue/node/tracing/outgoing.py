"""A span on its way out, and how it looks as a line of JSON."""

from typing import NamedTuple

import msgspec

from goqueue.edge.http.tracing.bodies import SpanBody, span_body
from goqueue.model.telemetry import Span

_encoder = msgspec.json.Encoder()


class Outgoing(NamedTuple):
    """A span and the trace that it belongs to."""

    trace_id: str
    span: Span


class _Line(SpanBody, frozen=True, kw_only=True):
    """What GET /traces/{id} shows of a span, and the id."""

    trace_id: str


def line_of(outgoing: Outgoing) -> bytes:
    shown = msgspec.structs.asdict(span_body(outgoing.span))
    return _encoder.encode(_Line(trace_id=outgoing.trace_id, **shown)) + b"\n"
