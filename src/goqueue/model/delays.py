"""The words of delays and schedules: what is asked for and what is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from goqueue.model.ids import TopicName
from goqueue.model.messages import Headers, Lane

DELAY_HEADER = "goqueue-delay-ms"
DELIVER_AT_HEADER = "goqueue-deliver-at"


class Postponed(NamedTuple):
    """A message that is stored and will be appended to its partition when it falls due."""

    partition: int
    number: int
    """With the partition, its name until it is delivered. It is no offset of that partition."""
    due_ms: int
    lane: Lane = Lane.NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedView:
    """A pending message as people see it."""

    topic: TopicName
    partition: int
    number: int
    due_ms: int
    lane: Lane


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayStats:
    """Counts since the data folder was made, but for the pending ones, which are those of now."""

    scheduled: int
    delivered: int
    cancelled: int
    dropped: int
    """Their topic was deleted before they fell due."""
    delay_ms_sum: int
    """Of all that were scheduled: how long they were to wait."""
    pending_by_topic: Mapping[TopicName, int]
    held: int
    """Part of open transactions, and not counted as pending before these commit."""
    near: int
    """Held in memory because they fall due soon."""

    @property
    def pending(self) -> int:
        return sum(self.pending_by_topic.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledMessage:
    """What a schedule publishes each time."""

    value: bytes
    key: bytes | None = None
    headers: Headers = ()
    lane: Lane = Lane.NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchedule:
    topic: TopicName
    name: str
    """Empty: the broker makes one up."""
    cron: str
    time_zone: str
    message: ScheduledMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    topic: TopicName
    name: str
    cron: str
    time_zone: str
    message: ScheduledMessage
    is_paused: bool
    created_ms: int
    next_due_ms: int | None
    last_due_ms: int | None
    fired: int
