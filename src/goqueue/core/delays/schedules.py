"""The schedule machine: which messages are published again and again, and when each falls due next.

A schedule that is not paused has one message waiting among the delayed ones: it is *armed*. When that
message has been delivered, the schedule is armed anew for the first time its cron expression names behind
now. So times that passed while the broker was down are made up for by one message, not by many.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from goqueue.model.delays import ScheduledMessage
from goqueue.model.errors import InvalidSchedule, ScheduleExists, ScheduleNotFound
from goqueue.model.ids import TopicName


@dataclass(frozen=True, slots=True)
class ScheduleCreated:
    topic: TopicName
    topic_id: UUID
    name: str
    cron: str
    time_zone: str
    message: ScheduledMessage
    created_ms: int
    fired: int = 0
    last_due_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ScheduleArmed:
    """The message that is due then waits among the delayed ones, by this number."""

    topic_id: UUID
    name: str
    due_ms: int
    number: int
    partition: int


@dataclass(frozen=True, slots=True)
class SchedulePaused:
    """Its waiting message has been cancelled in the same step."""

    topic_id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class ScheduleEnded:
    topic_id: UUID
    name: str


Event = ScheduleCreated | ScheduleArmed | SchedulePaused | ScheduleEnded
EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (ScheduleCreated, ScheduleArmed, SchedulePaused, ScheduleEnded)
}


@dataclass(slots=True)
class Schedule:
    created: ScheduleCreated
    armed: ScheduleArmed | None = None
    is_paused: bool = False
    fired: int = field(default=0)
    last_due_ms: int | None = None


class Schedules:
    """All schedules, by topic and name."""

    def __init__(self) -> None:
        self.schedules: dict[tuple[UUID, str], Schedule] = {}

    def find(self, topic_id: UUID, topic: str, name: str) -> Schedule:
        schedule = self.schedules.get((topic_id, name))
        if schedule is None:
            raise ScheduleNotFound(topic, name)
        return schedule

    def names_of(self, topic_id: UUID) -> list[str]:
        """The names of a topic's schedules, sorted."""
        return sorted(name for owner, name in self.schedules if owner == topic_id)

    def create(self, created: ScheduleCreated) -> ScheduleCreated:
        """Refuses a name that is taken, and times that never come."""
        if (created.topic_id, created.name) in self.schedules:
            raise ScheduleExists(created.topic, created.name)
        next_due_ms(created.cron, created.time_zone, after_ms=created.created_ms)
        return created

    def apply(self, event: Event) -> None:
        if isinstance(event, ScheduleCreated):
            # Read back a second time it changes nothing.
            schedule = Schedule(event, fired=event.fired, last_due_ms=event.last_due_ms)
            self.schedules.setdefault((event.topic_id, event.name), schedule)
            return
        known = self.schedules.get((event.topic_id, event.name))
        if known is None:
            return
        match event:
            case ScheduleArmed():
                if known.armed is not None and known.armed.number < event.number:
                    known.fired += 1
                    known.last_due_ms = known.armed.due_ms
                known.armed = event
                known.is_paused = False
            case SchedulePaused():
                known.armed = None
                known.is_paused = True
            case ScheduleEnded():
                del self.schedules[event.topic_id, event.name]

    def whole_state(self) -> Iterable[Event]:
        for schedule in self.schedules.values():
            created = schedule.created
            yield ScheduleCreated(
                created.topic,
                created.topic_id,
                created.name,
                created.cron,
                created.time_zone,
                created.message,
                created.created_ms,
                schedule.fired,
                schedule.last_due_ms,
            )
            if schedule.armed is not None:
                yield schedule.armed
            if schedule.is_paused:
                yield SchedulePaused(created.topic_id, created.name)


def next_due_ms(cron: str, time_zone: str, *, after_ms: int) -> int:
    """The first time behind another that a cron expression names, in its time zone."""
    try:
        zone = ZoneInfo(time_zone)
    except (ValueError, OSError, KeyError) as error:
        raise InvalidSchedule(f"time zone {time_zone!r} is unknown; use one like Europe/Vienna") from error
    try:
        after = datetime.fromtimestamp(after_ms // 1000, UTC).astimezone(zone)
        return int(next(CronSim(cron, after)).timestamp()) * 1000
    except CronSimError as error:
        raise InvalidSchedule(f"{cron!r} is not a cron expression: {error}") from error
    except (StopIteration, OverflowError, ValueError) as error:
        raise InvalidSchedule(f"{cron!r} names no time that ever comes") from error
