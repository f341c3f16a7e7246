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
