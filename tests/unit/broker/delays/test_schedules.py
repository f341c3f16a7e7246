"""Schedules: a message at each of their times, once, whatever crashes."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.delays.schedules import (
    create_schedule,
    describe_schedule,
    end_schedule,
    pause_schedule,
    resume_schedule,
    schedule_names,
)
from goqueue.broker.delays.verbs import cancel_delayed, delay_stats, list_delayed
from goqueue.broker.topics.verbs import alter_settings, create_topic, delete_topic
from goqueue.model.delays import (
    CancelDelayed,
    CountDelayed,
    CreateSchedule,
    DescribeSchedule,
    EndSchedule,
    ListDelayed,
    ListSchedules,
    PauseSchedule,
    ResumeSchedule,
    ScheduledMessage,
)
from goqueue.model.errors import (
    Invalid,
    InvalidName,
    InvalidSchedule,
    ScheduleExists,
    ScheduleNotFound,
    TopicNotFound,
)
from goqueue.model.messages import Lane
from goqueue.model.topics import AlterSettings, CreateTopic, DeleteTopic, SettingChange
from tests.unit.broker.delays.delayed_world import ORDERS, World, shown, sleep_ms, values

MINUTE_MS = 60_000
TICK = ScheduledMessage(value=b"tick", key=b"k", headers=(("a", b"1"),), lane=Lane.LOW)
EACH_MINUTE = CreateSchedule(topic=ORDERS, name="each", cron="* * * * *", time_zone="UTC", message=TICK)


async def partition_shown(broker: Broker) -> int:
    """Where messages of that key go."""
    return 0 if await values(broker, 0) else 1


def test_a_message_comes_at_each_time_and_the_next_one_waits() -> None:
    async def life(broker: Broker) -> None:
        view = await create_schedule(broker, EACH_MINUTE)
        assert view.next_due_ms is not None and view.next_due_ms % MINUTE_MS == 0
        await sleep_ms(3 * MINUTE_MS)
        messages = await shown(broker, await partition_shown(broker))
        first_ms = view.next_due_ms
        assert [m.timestamp_ms for m in messages] == [first_ms + n * MINUTE_MS for n in range(3)]
        first = messages[0]
        assert (first.key, first.value, first.lane) == (b"k", b"tick", Lane.LOW)
        assert first.headers[0] == ("a", b"1")
        view = describe_schedule(broker, DescribeSchedule(topic=ORDERS, name="each"))
        assert (view.fired, view.last_due_ms) == (3, first_ms + 2 * MINUTE_MS)
        [waiting] = await list_delayed(broker, ListDelayed(topic=ORDERS, limit=10))
        assert waiting.due_ms == view.next_due_ms == first_ms + 3 * MINUTE_MS

    World().run(life)


def test_times_that_passed_while_the_broker_was_down_are_made_up_for_by_one_message() -> None:
    world = World()

    async def first(broker: Broker) -> None:
        await create_schedule(broker, EACH_MINUTE)

    async def second(broker: Broker) -> None:
        await sleep_ms(1_000)
        assert len(await values(broker, await partition_shown(broker))) == 1
        await sleep_ms(MINUTE_MS)
        assert len(await values(broker, await partition_shown(broker))) == 2
        assert describe_schedule(broker, DescribeSchedule(topic=ORDERS, name="each")).fired == 2

    world.run_until_killed(first)
    world.clock.advance_ms(10 * MINUTE_MS)
    world.run_until_killed(second)


def test_a_paused_schedule_rests_also_over_a_restart_until_it_is_resumed() -> None:
    world = World()

    async def first(broker: Broker) -> None:
        await create_schedule(broker, EACH_MINUTE)
        assert (await pause_schedule(broker, PauseSchedule(topic=ORDERS, name="each"))).is_paused
        assert (await pause_schedule(broker, PauseSchedule(topic=ORDERS, name="each"))).next_due_ms is None

    async def second(broker: Broker) -> None:
        await sleep_ms(2 * MINUTE_MS)
        assert delay_stats(broker, CountDelayed()).pending == 0
        view = await resume_schedule(broker, ResumeSchedule(topic=ORDERS, name="each"))
        assert view.next_due_ms is not None
        assert 0 < view.next_due_ms - broker.clock.wall_ms() <= MINUTE_MS
        await sleep_ms(MINUTE_MS + 100)
        assert len(await values(broker, await partition_shown(broker))) == 1

    world.run_until_killed(first)
    world.run_until_killed(second)


def test_who_pauses_what_is_being_paused_or_resumes_what_is_being_resumed_waits_for_it_too() -> None:
    async def life(broker: Broker) -> None:
        await create_schedule(broker, EACH_MINUTE)
        pause = partial(pause_schedule, broker, PauseSchedule(topic=ORDERS, name="each"))
        resume = partial(resume_schedule, broker, ResumeSchedule(topic=ORDERS, name="each"))
        for change in (pause, resume):
            first = asyncio.ensure_future(change())
            await asyncio.sleep(0)
            assert not first.done()
            await change()
            assert broker.delays.store.journal.partition.commit_mark == broker.delays.store.journal.end_offset
            await first

    World().run(life)


def test_a_schedule_that_was_deleted_publishes_no_more() -> None:
    async def life(broker: Broker) -> None:
        await create_schedule(broker, EACH_MINUTE)
        await end_schedule(broker, EndSchedule(topic=ORDERS, name="each"))
        await sleep_ms(2 * MINUTE_MS)
        assert [await values(broker, n) for n in range(2)] == [[], []]
        assert schedule_names(broker, ListSchedules(topic=ORDERS)) == []
        with pytest.raises(ScheduleNotFound):
            await pause_schedule(broker, PauseSchedule(topic=ORDERS, name="each"))

    World().run(life)


def test_the_schedules_of_a_deleted_topic_end_with_it() -> None:
    world = World()

    async def first(broker: Broker) -> None:
        await create_schedule(broker, EACH_MINUTE)
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        await sleep_ms(2 * MINUTE_MS)
        assert schedule_names(broker, ListSchedules(topic=ORDERS)) == []
        assert not broker.delays.store.schedules.schedules

    world.run(first)


def test_cancelling_the_message_that_waits_skips_one_time() -> None:
    async def life(broker: Broker) -> None:
        view = await create_schedule(broker, EACH_MINUTE)
        [waiting] = await list_delayed(broker, ListDelayed(topic=ORDERS, limit=10))
        await cancel_delayed(
            broker, CancelDelayed(topic=ORDERS, partition=waiting.partition, number=waiting.number)
        )
        await sleep_ms(500)
        again = describe_schedule(broker, DescribeSchedule(topic=ORDERS, name="each"))
        assert view.next_due_ms is not None
        assert again.next_due_ms == view.next_due_ms + MINUTE_MS

    World().run(life)


def test_a_clock_that_is_set_back_repeats_no_time() -> None:
    world = World()

    async def life(broker: Broker) -> None:
        await create_schedule(broker, EACH_MINUTE)
        await sleep_ms(MINUTE_MS)
        world.clock.step_wall_ms(-2 * MINUTE_MS)
        await sleep_ms(2 * MINUTE_MS - 1_000)
        assert len(await values(broker, await partition_shown(broker))) == 1

    world.run(life)


def test_what_makes_no_sense_is_refused() -> None:
    async def life(broker: Broker) -> None:
        await create_schedule(broker, EACH_MINUTE)
        with pytest.raises(ScheduleExists):
            await create_schedule(broker, EACH_MINUTE)
        for wrong in (
            CreateSchedule(topic=ORDERS, name="", cron="99 * * * *", time_zone="UTC", message=TICK),
            CreateSchedule(topic=ORDERS, name="", cron="* * * * *", time_zone="Nowhere", message=TICK),
        ):
            with pytest.raises(InvalidSchedule):
                await create_schedule(broker, wrong)
        for name in ("a b", "..", "a" * 201):
            with pytest.raises(InvalidName):
                await create_schedule(broker, replace(EACH_MINUTE, name=name))
        with pytest.raises(TopicNotFound):
            schedule_names(broker, ListSchedules(topic="nowhere"))

    World().run(life)


def test_a_key_that_cannot_be_routed_is_refused_and_holds_up_no_schedule_that_is_there() -> None:
    long = replace(EACH_MINUTE, message=replace(TICK, key=bytes(600)))

    async def life(broker: Broker) -> None:
        await create_schedule(broker, long)
        await alter_settings(
            broker, AlterSettings(name=ORDERS, changes=[SettingChange("goqueue.partitioner", "murmur2")])
        )
        with pytest.raises(Invalid, match="murmur2"):
            await create_schedule(broker, replace(long, name="another"))
        await create_schedule(broker, replace(EACH_MINUTE, name="short"))
        await sleep_ms(3 * MINUTE_MS)
        fired = [
            describe_schedule(broker, DescribeSchedule(topic=ORDERS, name=name)).fired
            for name in ("each", "short")
        ]
        assert fired == [3, 3]

    World().run(life)
