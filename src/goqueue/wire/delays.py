"""Delayed messages and schedules."""

from typing import Annotated, Generic, Literal

from msgspec import Meta, Struct

from goqueue.wire.times import Time


class DelayStats(Struct, frozen=True):
    """Counts since the data folder was made; the pending ones are those of now."""

    total_scheduled: int
    total_delivered: int
    total_canceled: int
    total_pending: int
    total_dropped: Annotated[int, Meta(description="Their topic was deleted before they fell due.")]
    by_topic: dict[str, int]
    avg_delay: Annotated[str, Meta(description="How long messages were to wait, on average.")]
    in_transactions: Annotated[
        int, Meta(description="Stored, and neither pending nor cancelled before their transaction ends.")
    ]


class ScheduledMessage(Struct, frozen=True, omit_defaults=True):
    """What a schedule publishes each time."""

    value: str
    key: Annotated[str, Meta(description="Empty: no key.")] | None = None
    priority: Annotated[str, Meta(description="A lane, in any letter case; normal by default.")] | None = None
    headers: dict[str, str | None] | None = None
    encoding: Annotated[str, Meta(description="base64: value and key are. text: they are not.")] | None = None


class Schedule(Struct, Generic[Time], frozen=True, omit_defaults=True):
    topic: str
    name: str
    cron: str
    time_zone: str
    message: ScheduledMessage
    state: Annotated[str, Meta(description="active or paused.")]
    created_at: Time
    fired: int
    next_at: Time | None = None
    last_at: Time | None = None


class Delayed(Struct, Generic[Time], frozen=True):
    """A message that waits for its time. `partition` and `offset` name it until then."""

    topic: str
    partition: int
    offset: int
    deliver_at: Time
    time_remaining: str
    state: Annotated[str, Meta(description="pending.")]
    priority: Literal["critical", "high", "normal", "low", "background"]
