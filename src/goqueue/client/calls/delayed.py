"""Messages that wait for their time: look, cancel, move."""

from datetime import datetime

import msgspec

from goqueue.client.call import Call, body_of, json_of, path, query_of
from goqueue.client.times import Duration, duration_text, time_text
from goqueue.wire import delays as wire
from goqueue.wire.delays import DelayStats as DelayStats

Delayed = wire.Delayed[datetime]


class _DelayedList(msgspec.Struct):
    messages: list[Delayed]


def list_delayed(topic: str, *, limit: int | None = None, skip: int | None = None) -> Call[list[Delayed]]:
    """Messages that wait for their time, the next one first."""
    decode = json_of(_DelayedList)
    return Call(
        method="GET",
        path=path("topics", topic, "delayed"),
        decode=lambda reply: decode(reply).messages,
        query=query_of(limit=limit, skip=skip),
    )


def get(topic: str, offset: int) -> Call[Delayed]:
    """A message that waits, by the number that its publish was answered with."""
    return Call(method="GET", path=path("topics", topic, "delayed", offset), decode=json_of(Delayed))


def cancel(topic: str, partition: int, offset: int) -> Call[None]:
    """Cancel a message that waits: it is never delivered."""
    return Call(
        method="DELETE",
        path=path("topics", topic, "delayed", partition, offset),
        decode=lambda reply: None,
        is_repeatable=False,
    )


def move(
    topic: str,
    partition: int,
    offset: int,
    *,
    delay: Duration | None = None,
    deliver_at: datetime | None = None,
) -> Call[Delayed]:
    """Give a message that waits another time; it keeps its number."""
    return Call(
        method="POST",
        path=path("topics", topic, "delayed", partition, offset, "move"),
        decode=json_of(Delayed),
        body=body_of(delay=duration_text(delay), deliverAt=time_text(deliver_at)),
        is_repeatable=delay is None,
    )


def stats() -> Call[DelayStats]:
    """How many messages wait, and have waited."""
    return Call(method="GET", path="/delay/stats", decode=json_of(DelayStats))
