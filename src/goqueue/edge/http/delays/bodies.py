"""The JSON of delays and schedules."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from goqueue.edge.http.parts.bodies import EncodingWord, PriorityWord


class DelayedMessage(Struct):
    """A message that waits for its time. `partition` and `offset` name it until then."""

    topic: str
    partition: int
    offset: int
    deliver_at: str
    time_remaining: str
    state: Literal["pending"]
    priority: PriorityWord


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


class DelayStatsBody(Struct):
    """Counts since the data folder was made; the pending ones are those of now."""

    total_scheduled: int
    total_delivered: int
    total_canceled: int
    total_pending: int
    total_dropped: Annotated[int, Meta(description="Their topic was deleted before they fell due.")]
    by_topic: dict[str, int]
    timer_wheel: TimerWheelStats
    pending_count: int
    delivered_count: int
    cancelled_count: int
    canceled_count: int
    avg_delay: Annotated[str, Meta(description="How long messages were to wait, on average.")]
    in_transactions: Annotated[
        int, Meta(description="Stored, and neither pending nor cancelled before their transaction ends.")
    ]


class ScheduledMessageBody(Struct, omit_defaults=True):
    """What a schedule publishes each time."""

    value: str
    key: Annotated[str, Meta(description="Empty: no key.")] | None = None
    priority: Annotated[str, Meta(description="A lane, in any letter case; normal by default.")] | None = None
    headers: dict[str, str | None] | None = None
    encoding: Annotated[EncodingWord, Meta(description="base64: value and key are.")] | None = None


class CreateScheduleBody(Struct):
    """A message to publish at all times that a cron expression names."""

    cron: Annotated[str, Meta(description="minute hour day month weekday: `0 9 * * MON-FRI`.")]
    message: ScheduledMessageBody
    time_zone: Annotated[str, Meta(description="Like Europe/Vienna.")] | None = None
    name: (
        Annotated[str, Meta(description="Letters, digits, '.', '_' and '-'; made up when absent.")] | None
    ) = None


class ScheduleBody(Struct, omit_defaults=True):
    topic: str
    name: str
    cron: str
    time_zone: str
    message: ScheduledMessageBody
    state: Literal["active", "paused"]
    created_at: str
    fired: int
    next_at: str | None = None
    last_at: str | None = None


class ScheduleList(Struct):
    topic: str
    schedules: list[ScheduleBody]


class ScheduleDeleted(Struct):
    topic: str
    name: str
    deleted: Literal[True] = True
