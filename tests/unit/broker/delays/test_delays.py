"""Delayed messages: stored at once, delivered when due, in order, once."""

import asyncio

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.delays.keeper import Change
from goqueue.broker.delays.verbs import cancel_delayed, delay_stats, get_delayed, list_delayed, move_delayed
from goqueue.broker.topics.verbs import create_topic, delete_records, delete_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Placed, Publish
from goqueue.model.delays import CancelDelayed, CountDelayed, GetDelayed, ListDelayed, MoveDelayed, Postponed
from goqueue.model.errors import DelayedNotFound, InternalTopic, TopicNotFound
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Lane, Message
from goqueue.model.settings import BrokerConfig, DelayConfig
from goqueue.model.topics import CreateTopic, DeleteRecords, DeleteTopic
from tests.unit.broker.delays.delayed_world import (
    ORDERS,
    SMALL,
    World,
    publish_later,
    shown,
    sleep_ms,
    values,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def test_a_message_is_seen_when_it_is_due_and_not_before() -> None:
    async def life(broker: Broker) -> None:
        await publish_later(broker, 5_000)
        await sleep_ms(4_900)
        assert await values(broker) == []
        await sleep_ms(120)
        assert await values(broker) == [b"5000"]

    World().run(life)


def test_everything_but_the_time_is_kept_and_the_time_is_when_it_was_due() -> None:
    async def life(broker: Broker) -> None:
        due_ms = broker.clock.wall_ms() + 100
        message = Message(None, b"key", (("a", b"1"), ("a", None)), Lane.HIGH, 1, due_ms=due_ms)
        await publish(broker, Publish(topic=ORDERS, messages=[message]))
        await sleep_ms(200)
        [stored] = await shown(broker, 1)
        *headers, trace = stored.headers
        kept = stored._replace(headers=tuple(headers))
        assert kept == (0, due_ms, b"key", None, message.headers, Lane.HIGH)
        assert trace[0] == "traceparent", "its trace goes on where it is delivered"

    World().run(life)


def test_messages_are_delivered_in_the_order_of_their_due_times() -> None:
    async def life(broker: Broker) -> None:
        await publish_later(broker, 900, 300, 600, 400)
        await publish_later(broker, 300)  # some milliseconds later: the disk had its time
        await sleep_ms(2_000)
        assert await values(broker) == [b"300", b"300", b"400", b"600", b"900"]

    World().run(life)


def test_a_batch_may_hold_messages_for_now_and_for_later() -> None:
    async def life(broker: Broker) -> None:
        due_ms = broker.clock.wall_ms() + 50
        given = [Message(b"now", partition=0), Message(b"later", partition=0, due_ms=due_ms)]
        now, later = await publish(broker, Publish(topic=ORDERS, messages=given))
        assert now == Placed(0, 0)
        assert later == Postponed(0, 0, due_ms)
        await sleep_ms(200)
        assert await values(broker) == [b"now", b"later"]

    World().run(life)


def test_a_power_cut_loses_nothing_and_nothing_comes_early_or_twice() -> None:
    world = World()

    async def first(broker: Broker) -> None:
        await publish_later(broker, 1_000, 60_000, DAY_MS)
        await sleep_ms(1_100)
        assert await values(broker) == [b"1000"]

    async def second(broker: Broker) -> None:
        await sleep_ms(1_000)
        assert await values(broker) == [b"1000"]
        await sleep_ms(60_000)
        assert await values(broker) == [b"1000", b"60000"]

    async def third(broker: Broker) -> None:
        await sleep_ms(1_000)
        assert await values(broker) == [b"1000", b"60000", b"%d" % DAY_MS]
        assert delay_stats(broker, CountDelayed()).pending == 0

    world.run_until_killed(first)
    world.run_until_killed(second)
    world.clock.advance_ms(DAY_MS)
    world.run_until_killed(third)


def test_a_cancelled_message_is_never_delivered() -> None:
    world = World()

    async def first(broker: Broker) -> None:
        kept, cancelled = await publish_later(broker, 2_000, 1_000)
        await cancel_delayed(broker, CancelDelayed(topic=ORDERS, partition=0, number=cancelled.number))
        with pytest.raises(DelayedNotFound):
            await cancel_delayed(broker, CancelDelayed(topic=ORDERS, partition=0, number=cancelled.number))
        with pytest.raises(DelayedNotFound):
            await get_delayed(broker, GetDelayed(topic=ORDERS, number=cancelled.number))
        assert (await get_delayed(broker, GetDelayed(topic=ORDERS, number=kept.number))).due_ms == kept.due_ms

    async def second(broker: Broker) -> None:
        await sleep_ms(5_000)
        assert await values(broker) == [b"2000"]
        stats = delay_stats(broker, CountDelayed())
        assert (stats.scheduled, stats.delivered, stats.cancelled, stats.pending) == (2, 1, 1, 0)

    world.run_until_killed(first)
    world.run(second)


def test_numbers_of_different_partitions_are_different_messages() -> None:
    async def life(broker: Broker) -> None:
        [here] = await publish_later(broker, 1_000, partition=0)
        [there] = await publish_later(broker, 1_001, partition=1)
        with pytest.raises(DelayedNotFound):
            await cancel_delayed(broker, CancelDelayed(topic=ORDERS, partition=1, number=here.number))
        await cancel_delayed(broker, CancelDelayed(topic=ORDERS, partition=1, number=there.number))
        await sleep_ms(2_000)
        assert (await values(broker, 0), await values(broker, 1)) == ([b"1000"], [])

    World().run(life)


@pytest.mark.parametrize("delay_ms", [20, 2_000, 90_000])
def test_a_moved_message_keeps_its_number_and_comes_at_the_new_time(delay_ms: int) -> None:
    world = World()

    async def first(broker: Broker) -> None:
        [message] = await publish_later(broker, 1_000)
        for due_ms in (message.due_ms + HOUR_MS, message.due_ms + delay_ms):
            await move_delayed(
                broker, MoveDelayed(topic=ORDERS, partition=0, number=message.number, due_ms=due_ms)
            )
        assert (
            await get_delayed(broker, GetDelayed(topic=ORDERS, number=message.number))
        ).due_ms == message.due_ms + delay_ms

    async def second(broker: Broker) -> None:
        [pending] = await list_delayed(broker, ListDelayed(topic=ORDERS, limit=10))
        await sleep_ms(pending.due_ms - broker.clock.wall_ms() - 1)
        assert await values(broker) == []
        await sleep_ms(1_500)
        assert await values(broker) == [b"1000"]
        with pytest.raises(DelayedNotFound):
            await move_delayed(
                broker, MoveDelayed(topic=ORDERS, partition=0, number=pending.number, due_ms=pending.due_ms)
            )
        assert delay_stats(broker, CountDelayed()).delivered == 1

    world.run_until_killed(first)
    world.run(second)


def test_a_list_shows_the_next_ones_first() -> None:
    async def life(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name="others"))
        other = Message(b"x", due_ms=broker.clock.wall_ms() + 15_000)
        await publish(broker, Publish(topic=ORDERS, messages=[other._replace(partition=1)]))
        await publish_later(broker, 40_000, 10_000, DAY_MS, 20_000)
        now_ms = broker.clock.wall_ms()
        listed = await list_delayed(broker, ListDelayed(topic=ORDERS, limit=3, skip=1))
        assert [round((view.due_ms - now_ms) / 1000) for view in listed] == [15, 20, 40]
        assert [view.partition for view in listed] == [1, 0, 0]
        assert await list_delayed(broker, ListDelayed(topic="nowhere", limit=10)) == []
        assert await list_delayed(broker, ListDelayed(topic="others", limit=10)) == []

    World().run(life)


def test_what_a_deleted_topic_had_waiting_is_dropped_also_if_it_is_created_again() -> None:
    async def life(broker: Broker) -> None:
        [message] = await publish_later(broker, 1_000)
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        await sleep_ms(3_000)
        assert await values(broker) == []
        with pytest.raises(DelayedNotFound):
            await get_delayed(broker, GetDelayed(topic=ORDERS, number=message.number))
        stats = delay_stats(broker, CountDelayed())
        assert (stats.dropped, stats.pending, stats.delivered) == (1, 0, 0)

    World().run(life)


def test_a_clock_that_is_set_back_makes_nothing_early_and_nothing_twice() -> None:
    world = World()

    async def life(broker: Broker) -> None:
        await publish_later(broker, 1_000, 30_000)
        await sleep_ms(1_500)
        world.clock.step_wall_ms(-20_000)
        await publish_later(broker, 2_000)
        await sleep_ms(1_900)
        assert await values(broker) == [b"1000"]
        await sleep_ms(200)
        assert await values(broker) == [b"1000", b"2000"], "it does not wait for the clock to catch up"
        await sleep_ms(45_900)
        assert await values(broker) == [b"1000", b"2000"]

    async def second(broker: Broker) -> None:
        await sleep_ms(3_000)
        assert await values(broker) == [b"1000", b"2000", b"30000"]

    world.run_until_killed(life)
    world.run(second)


def test_a_clock_that_is_set_forward_is_noticed() -> None:
    world = World()

    async def life(broker: Broker) -> None:
        await publish_later(broker, HOUR_MS)
        await sleep_ms(100)
        world.clock.step_wall_ms(2 * HOUR_MS)
        await sleep_ms(2_000)
        assert await values(broker) == [b"%d" % HOUR_MS]

    world.run(life)


def test_deliveries_stay_known_when_the_partition_is_emptied() -> None:
    world = World()

    async def first(broker: Broker) -> None:
        await publish_later(broker, 500, 600)
        await sleep_ms(700)
        await delete_records(broker, DeleteRecords(target=TopicPartition(ORDERS, 0), before_offset=-1))

    async def second(broker: Broker) -> None:
        await sleep_ms(5_000)
        assert await values(broker) == []

    world.run_until_killed(first)
    world.run(second)


def test_many_messages_go_through_runs_and_leave_nothing_behind() -> None:
    world = World(SMALL)

    async def first(broker: Broker) -> None:
        for round_ in range(10):
            await publish_later(broker, *(1 + (n * 7919 + round_) % 90 * 1_000 for n in range(7)))
            await sleep_ms(1_500)

    async def second(broker: Broker) -> None:
        await sleep_ms(120_000)
        delivered = await shown(broker)
        assert len(delivered) == 70
        assert len(await list_delayed(broker, ListDelayed(topic=ORDERS, limit=100))) == 0
        store = broker.delays.store
        assert store.journal.partition.log.start_offset >= 70
        assert not store.runs and len(store.fresh) == 0

    world.run_until_killed(first)
    world.run(second)


def test_one_far_off_message_does_not_hold_the_log_for_ever() -> None:
    world = World(BrokerConfig(delays=DelayConfig(wasted_bytes_max=20_000, wasted_entries_max=1_000_000)))

    async def first(broker: Broker) -> None:
        [far] = await publish_later(broker, DAY_MS)
        for _ in range(5):
            await publish_later(broker, *range(1, 100))
            await sleep_ms(200)
        await sleep_ms(3_000)
        store = broker.delays.store
        assert store.journal.partition.log.start_offset > far.number
        assert (await get_delayed(broker, GetDelayed(topic=ORDERS, number=far.number))).due_ms == far.due_ms
        assert delay_stats(broker, CountDelayed()).pending == 1

    async def second(broker: Broker) -> None:
        [far] = await list_delayed(broker, ListDelayed(topic=ORDERS, limit=2))
        assert far.number == 0
        await cancel_delayed(broker, CancelDelayed(topic=ORDERS, partition=0, number=far.number))
        assert await list_delayed(broker, ListDelayed(topic=ORDERS, limit=2)) == []

    world.run_until_killed(first)
    world.run(second)


def test_what_is_due_and_has_to_wait_does_not_hurry_the_disk_for_others() -> None:
    """A target that stands still has something due all the time: the keeper looks every 10 ms."""

    async def life(broker: Broker) -> None:
        await publish_later(broker, 1_000)
        await sleep_ms(500)
        [target] = broker.delays.store.targets.all
        target.holds += 1
        await sleep_ms(600)
        journal = broker.delays.store.journal
        await publish_later(broker, DAY_MS, acks=Acks.LEADER)
        await sleep_ms(200)
        assert await values(broker) == []
        assert journal.commit_mark < journal.end_offset
        target.holds -= 1
        await sleep_ms(100)
        assert await values(broker) == [b"1000"]

    World(BrokerConfig(flush_interval_ms=3_600_000)).run(life)


def test_many_messages_of_one_moment_are_delivered_in_rounds_each_once() -> None:
    world = World(SMALL)

    async def first(broker: Broker) -> None:
        await publish_later(broker, *[1_000] * 15)
        while len(await values(broker)) < 6:
            await sleep_ms(1)

    async def second(broker: Broker) -> None:
        await sleep_ms(3_000)
        assert len(await values(broker)) == 15

    world.run_until_killed(first)
    world.run(second)


def test_a_message_that_needs_no_fsync_is_delivered_on_time_all_the_same() -> None:
    async def life(broker: Broker) -> None:
        await publish_later(broker, 100, acks=Acks.NONE)
        await sleep_ms(400)
        assert await values(broker) == [b"100"]

    World().run(life)


def test_two_who_cancel_the_same_message_do_not_both_succeed() -> None:
    async def life(broker: Broker) -> None:
        [message] = await publish_later(broker, 1_000)
        outcomes = await asyncio.gather(
            *(
                cancel_delayed(broker, CancelDelayed(topic=ORDERS, partition=0, number=message.number))
                for _ in range(2)
            ),
            return_exceptions=True,
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["DelayedNotFound", "NoneType"]
        assert delay_stats(broker, CountDelayed()).pending == 0

    World().run(life)


def test_who_asks_between_the_disk_s_answer_and_the_keeper_s_note_of_it_does_not_hold_the_loop() -> None:
    async def life(broker: Broker) -> None:
        [message] = await publish_later(broker, 1_000)
        keeper, done = broker.delays, asyncio.get_running_loop().create_future()
        done.set_result(None)
        asked_count = 0

        class Changing(dict[int, tuple[Change, "asyncio.Future[None]"]]):
            def get(self, *args: object) -> object:  # type: ignore[override]
                nonlocal asked_count
                asked_count += 1
                assert asked_count < 10, "nobody else gets a turn"
                return super().get(*args)  # type: ignore[call-overload]

        keeper.changing = Changing({message.number: (Change(0, 0), done)})
        asyncio.get_running_loop().call_soon(keeper.changing.clear)
        assert (
            await get_delayed(broker, GetDelayed(topic=ORDERS, number=message.number))
        ).due_ms == message.due_ms

    World().run(life)


def test_what_does_not_exist_cannot_be_changed() -> None:
    async def life(broker: Broker) -> None:
        for number in (0, 5, 2**62):
            with pytest.raises(DelayedNotFound):
                await cancel_delayed(broker, CancelDelayed(topic=ORDERS, partition=0, number=number))
        with pytest.raises(TopicNotFound):
            await cancel_delayed(broker, CancelDelayed(topic="nowhere", partition=0, number=0))
        with pytest.raises(InternalTopic):
            await cancel_delayed(broker, CancelDelayed(topic="__delayed", partition=0, number=0))

    World().run(life)
