"""Traces: the story of a message, and which messages have one."""

from datetime import datetime

import msgspec

from goqueue.client.call import Call, json_of, path, query_of
from goqueue.client.times import time_text
from goqueue.wire import traces as wire

Span = wire.Span[datetime]
Trace = wire.Trace[datetime]
TraceSummary = wire.TraceSummary[datetime]
TraceStats = wire.TraceStats


class _TraceList(msgspec.Struct):
    traces: list[TraceSummary]


_decode_list = json_of(_TraceList)


def list_traces(*, limit: int | None = None) -> Call[list[TraceSummary]]:
    """The newest stories."""
    return Call(
        method="GET",
        path="/traces",
        decode=lambda reply: _decode_list(reply).traces,
        query=query_of(limit=limit),
    )


def search(
    *,
    topic: str | None = None,
    partition: int | None = None,
    consumer_group: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    status: str | None = None,
    limit: int | None = None,
) -> Call[list[TraceSummary]]:
    """Stories that fit all that is given; times count when both are."""
    return Call(
        method="GET",
        path="/traces/search",
        decode=lambda reply: _decode_list(reply).traces,
        query=query_of(
            topic=topic,
            partition=partition,
            consumer_group=consumer_group,
            start=time_text(start),
            end=time_text(end),
            status=status,
            limit=limit,
        ),
    )


def get(trace_id: str) -> Call[Trace]:
    """A story by its id, 32 hexadecimal digits."""
    return Call(method="GET", path=path("traces", trace_id), decode=json_of(Trace))


def of(topic: str, partition: int, offset: int) -> Call[Trace]:
    """The story of any message that is there, as far as the node can tell it."""
    return Call(
        method="GET",
        path=path("topics", topic, "partitions", partition, "offsets", offset, "trace"),
        decode=json_of(Trace),
    )


def stats() -> Call[TraceStats]:
    """Whether stories are kept, and how many."""
    return Call(method="GET", path="/traces/stats", decode=json_of(TraceStats))
