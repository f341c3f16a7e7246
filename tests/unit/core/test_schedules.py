"""Schedules: when they fall due, and what their events make of them."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from goqueue.core.delays.schedules import (
    ScheduleArmed,
    ScheduleCreated,
    ScheduleEnded,
    SchedulePaused,
    Schedules,
    next_due_ms,
)
from goqueue.model.delays import ScheduledMessage
from goqueue.model.errors import InvalidSchedule, ScheduleExists, ScheduleNotFound
from goqueue.model.ids import TopicName

TOPIC_ID = UUID(int=7)
CREATED = ScheduleCreated(
    TopicName("orders"), TOPIC_ID, "daily", "0 9 * * *", "UTC", ScheduledMessage(value=b"x"), 1_000
)


def wall_ms(text: str, zone: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def armed(due_ms: int, number: int) -> ScheduleArmed:
    return ScheduleArmed(TOPIC_ID, "daily", due_ms, number, 0)


@pytest.mark.parametrize(
    ("cron", "after", "due"),
    [
        ("*/5 * * * *", "2026-06-01T10:02", "2026-06-01T10:05"),
        ("0 9 * * MON-FRI", "2026-06-05T09:00", "2026-06-08T09:00"),
        # The clocks go forward at 2: the hour that does not exist is made up for at its end.
        ("30 2 * * *", "2026-03-28T12:00", "2026-03-29T03:00"),
        # And back at 3, where the hour between 2 and 3 comes twice.
        ("30 2 * * *", "2026-10-25T02:30", "2026-10-26T02:30"),
    ],
)
def test_a_schedule_falls_due_by_the_clock_on_the_wall(cron: str, after: str, due: str) -> None:
    zone = "Europe/Vienna"

    assert next_due_ms(cron, zone, after_ms=wall_ms(after, zone)) == wall_ms(due, zone)


@pytest.mark.parametrize(
    ("cron", "zone"), [("x", "UTC"), ("* * * *", "UTC"), ("0 0 31 2 *", "UTC"), ("* * * * *", "Mars/Base")]
)
def test_times_that_never_come_are_refused(cron: str, zone: str) -> None:
    with pytest.raises(InvalidSchedule):
        next_due_ms(cron, zone, after_ms=0)


def test_a_name_is_taken_once_a_topic() -> None:
    schedules = Schedules()
    schedules.apply(schedules.create(CREATED))

    with pytest.raises(ScheduleExists):
        schedules.create(CREATED)


def test_arming_anew_counts_what_has_been_delivered() -> None:
    schedules = Schedules()
    for event in (CREATED, armed(2_000, 5), armed(3_000, 9)):
        schedules.apply(event)

    schedule = schedules.find(TOPIC_ID, "orders", "daily")

    assert (schedule.fired, schedule.last_due_ms) == (1, 2_000)
    assert schedule.armed == armed(3_000, 9)


def test_a_paused_schedule_has_no_message_waiting() -> None:
    schedules = Schedules()
    for event in (CREATED, armed(2_000, 5), SchedulePaused(TOPIC_ID, "daily")):
        schedules.apply(event)

    schedule = schedules.find(TOPIC_ID, "orders", "daily")

    assert schedule.is_paused and schedule.armed is None
    schedules.apply(armed(9_000, 12))
    assert not schedule.is_paused and schedule.fired == 0


@pytest.mark.parametrize("is_paused", [True, False])
def test_the_whole_state_leads_to_the_same_state(is_paused: bool) -> None:
    schedules, copy = Schedules(), Schedules()
    for event in (CREATED, armed(2_000, 5), armed(3_000, 9)):
        schedules.apply(event)
    if is_paused:
        schedules.apply(SchedulePaused(TOPIC_ID, "daily"))

    for known in schedules.whole_state():
        copy.apply(known)

    assert list(copy.whole_state()) == list(schedules.whole_state())


def test_a_schedule_that_has_ended_is_gone() -> None:
    schedules = Schedules()
    schedules.apply(CREATED)
    schedules.apply(ScheduleEnded(TOPIC_ID, "daily"))

    with pytest.raises(ScheduleNotFound):
        schedules.find(TOPIC_ID, "orders", "daily")
    assert schedules.names_of(TOPIC_ID) == []


def test_a_schedule_that_is_read_back_a_second_time_is_as_it_was() -> None:
    schedules = Schedules()
    for event in (CREATED, armed(2_000, 5), armed(3_000, 9)):
        schedules.apply(event)

    for event in (CREATED, armed(3_000, 9)):
        schedules.apply(event)

    schedule = schedules.find(TOPIC_ID, "orders", "daily")
    assert (schedule.fired, schedule.armed) == (1, armed(3_000, 9))


def test_a_message_that_waits_under_an_older_number_has_not_been_delivered_before() -> None:
    schedules = Schedules()
    for event in (CREATED, armed(2_000, 5), armed(3_000, 5), armed(1_000, 4)):
        schedules.apply(event)

    assert schedules.find(TOPIC_ID, "orders", "daily").fired == 0


@pytest.mark.parametrize(
    "event",
    [armed(2_000, 5), SchedulePaused(TOPIC_ID, "daily"), ScheduleEnded(TOPIC_ID, "daily")],
)
def test_events_of_a_schedule_that_is_gone_change_nothing(
    event: ScheduleArmed | SchedulePaused | ScheduleEnded,
) -> None:
    schedules = Schedules()

    schedules.apply(event)

    assert schedules.schedules == {}


def test_schedules_are_listed_by_name_for_their_topic_alone() -> None:
    schedules = Schedules()
    for name, topic_id in (("weekly", TOPIC_ID), ("daily", TOPIC_ID), ("hourly", UUID(int=8))):
        schedules.apply(replace(CREATED, name=name, topic_id=topic_id))

    assert schedules.names_of(TOPIC_ID) == ["daily", "weekly"]
    assert schedules.names_of(UUID(int=8)) == ["hourly"]
    schedules.create(replace(CREATED, name="hourly"))


def test_a_schedule_that_names_no_time_is_refused_before_it_is_made() -> None:
    with pytest.raises(InvalidSchedule):
        Schedules().create(replace(CREATED, cron="61 * * * *"))


def test_a_time_that_is_named_now_is_not_named_again() -> None:
    noon = wall_ms("2026-06-01T12:00", "UTC")

    assert next_due_ms("0 12 * * *", "UTC", after_ms=noon) == noon + 24 * 3600 * 1000
    assert next_due_ms("0 12 * * *", "UTC", after_ms=noon - 1) == noon


def test_how_often_it_fired_is_kept_when_the_journal_is_written_anew() -> None:
    schedules, copy = Schedules(), Schedules()
    for event in (CREATED, armed(2_000, 5), armed(3_000, 9), armed(4_000, 11)):
        schedules.apply(event)

    for known in schedules.whole_state():
        copy.apply(known)
    copy.apply(armed(5_000, 20))

    schedule = copy.find(TOPIC_ID, "orders", "daily")
    assert (schedule.fired, schedule.last_due_ms) == (3, 4_000)
