"""The JSON of delays and schedules."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from goqueue.edge.http.parts.bodies import EncodingWord
from goqueue.wire import delays as wire
from goqueue.wire.pages import Next

DelayedMessage = wire.Delayed[str]


class DelayedList(Struct):
    """Pending messages, the next one first."""

    topic: str
    messages: list[DelayedMessage]
    count: int
    limit: int
    skip: int


class DelayedCancelled(Struct):
    topic: str
    partition: int
    offset: int
    canceled: Literal[True] = True
    cancelled: Literal[True] = True


class MoveBody(Struct):
    """Another time for a pending message: one of the two. `delay` goes before `deliverAt`."""

    delay: Annotated[str, Meta(description="A duration like 1h30m; 0 or less is now.")] | None = None
    deliver_at: Annotated[str, Meta(description="An RFC 3339 time; a past one is now.")] | None = field(
        default=None, name="deliverAt"
    )


class TimerWheelStats(Struct):
    """What is held in memory because it falls due soon."""

    total_scheduled: int
    total_expired: int
    total_canceled: int
    current_active: int
    current_tick: int


class DelayStatsBody(wire.DelayStats, frozen=True, kw_only=True):
    """Counts since the data folder was made; the pending ones are those of now."""

    timer_wheel: TimerWheelStats
    pending_count: int
    delivered_count: int
    cancelled_count: int
    canceled_count: int


class ScheduledMessageBody(wire.ScheduledMessage, frozen=True):
    """What a schedule is to publish each time."""

    encoding: Annotated[EncodingWord, Meta(description="base64: value and key are.")] | None = None


class CreateScheduleBody(Struct):
    """A message to publish at all times that a cron expression names."""

    cron: Annotated[str, Meta(description="minute hour day month weekday: `0 9 * * MON-FRI`.")]
    message: ScheduledMessageBody
    time_zone: Annotated[str, Meta(description="Like Europe/Vienna.")] | None = None
    name: (
        Annotated[str, Meta(description="Letters, digits, '.', '_' and '-'; made up when absent.")] | None
    ) = None


ScheduleBody = wire.Schedule[str]


class ScheduleList(Struct, omit_defaults=True):
    topic: str
    schedules: list[ScheduleBody]
    next: Next = None


class ScheduleDeleted(Struct):
    topic: str
    name: str
    deleted: Literal[True] = True
