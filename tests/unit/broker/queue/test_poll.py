"""Poll: what is handed out, to whom, in which order, and what a waiting poll wakes up for."""

import asyncio
from collections import Counter

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.groups.reset_offsets import reset_offsets
from goqueue.broker.topics.verbs import delete_topic
from goqueue.model.commands import Spot
from goqueue.model.delivery import TTL_HEADER
from goqueue.model.errors import GoQueueError, UnknownMember
from goqueue.model.group_commands import CommitOffsets, ResetOffsets
from goqueue.model.groups import Membership, Sharing, TopicCommit
from goqueue.model.messages import Lane
from goqueue.model.topics import DeleteTopic
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import (
    DEAD_ORDERS,
    Consumer,
    ack,
    floor,
    join,
    nack,
    orders,
    put,
    put_keyed,
    stored,
    take,
    values,
)
from tests.unit.broker.running import ORDERS


def test_a_message_that_is_out_is_hidden_from_the_rest_of_its_group_until_its_time_is_up() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        ann = await join(broker, sharing=Sharing.SHARED)
        ben = await join(broker, "ben", sharing=Sharing.SHARED)
        [first] = await take(broker, ann)

        await asyncio.sleep(29.9)
        assert await take(broker, ben) == []
        await asyncio.sleep(0.2)
        [second] = await take(broker, ben)

        assert (first.delivery_count, second.delivery_count) == (1, 2)
        assert second.value == "a"

    Lives(1).live(story)


def test_a_message_in_flight_for_one_group_is_delivered_to_every_other_group() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")

        first = await take(broker, await join(broker, group="workers"))
        second = await take(broker, await join(broker, group="auditors"))

        assert values(first) == values(second) == ["a"]
        await ack(broker, first)
        assert floor(broker, "workers") == 1
        assert floor(broker, "auditors") == 0

    Lives(2).live(story)


def test_the_visibility_can_be_chosen_a_topic_and_a_poll() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, visibility_ms="2000")
        await put(broker, "a", "b")
        ann = await join(broker)
        await take(broker, ann, 1)
        await take(broker, ann, 1, visibility_ms=500)

        await asyncio.sleep(1)
        assert values(await take(broker, ann, visibility_ms=60_000)) == ["b"]
        await asyncio.sleep(1.1)
        assert values(await take(broker, ann)) == ["a"]

    Lives(3).live(story)


@pytest.mark.parametrize("what", ["published", "given back", "run out", "set back"])
def test_a_poll_that_waits_wakes_up_when_there_is_something_to_take(what: str) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        ann = await join(broker, sharing=Sharing.SHARED)
        ben = await join(broker, "ben", sharing=Sharing.SHARED)
        if what != "published":
            await put(broker, "a")
        taken = await take(broker, ann, visibility_ms=700 if what == "run out" else 60_000)
        began_ms = broker.clock.wall_ms()
        waiting = asyncio.ensure_future(take(broker, ben, wait_ms=30_000))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        if what == "published":
            await put(broker, "a")
        elif what == "given back":
            await nack(broker, taken, delay_ms=200)
        elif what == "set back":
            await reset_offsets(
                broker, ResetOffsets(group="workers", topics=[ORDERS], spot=Spot.EARLIEST, is_forced=True)
            )

        assert values(await waiting) == ["a"]
        assert broker.clock.wall_ms() - began_ms < 1_000

    Lives(4).live(story)


def test_a_consumer_has_at_most_a_thousand_messages_out_and_waits_for_room() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, partitions=3)
        await put(broker, *(f"{number}" for number in range(1_500)))
        ann = await join(broker)
        taken = await take(broker, ann, 700) + await take(broker, ann, 700)
        assert len(taken) == 1_000
        assert await take(broker, ann, 1) == []

        waiting = asyncio.ensure_future(take(broker, ann, wait_ms=10_000))
        await asyncio.sleep(1)
        assert not waiting.done()
        await ack(broker, taken[:2])

        assert len(await waiting) == 2

    Lives(5).live(story)


def test_a_consumer_that_has_all_it_may_have_gets_it_again_when_it_runs_out() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, *(f"{number}" for number in range(1_000)))
        ann = await join(broker)
        assert len(await take(broker, ann, 1_000, visibility_ms=1_000)) == 1_000
        began_ms = broker.clock.wall_ms()

        again = await take(broker, ann, 1_000, wait_ms=30_000)

        assert {one.delivery_count for one in again} == {2}
        assert 1_000 <= broker.clock.wall_ms() - began_ms < 1_500

    Lives(18).live(story)


def test_no_lane_is_passed_over_and_the_weights_share_what_is_handed_out() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        for number in range(40):
            for lane in Lane:
                await put(broker, *(f"{lane.label} {number}.{index}" for index in range(10)), lane=lane)
        ann = await join(broker)

        taken: list[str] = []
        while some := await take(broker, ann, 100):
            taken += values(some)
            await ack(broker, some)

        lanes = Counter(value.split()[0] for value in taken[:100])
        assert lanes == {"critical": 50, "high": 25, "normal": 15, "low": 7, "background": 3}
        assert len(taken) == len(set(taken)) == 2_000, "nothing is left out, nothing comes twice"
        for lane in Lane:
            own = [value for value in taken if value.startswith(lane.label)]
            assert own == sorted(own, key=lambda v: tuple(map(int, v.split()[1].split(".")))), "in order"
        assert floor(broker) == 2_000

    Lives(6).live(story)


def test_a_lane_that_has_waited_for_thirty_seconds_goes_first() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, *(f"critical {n}" for n in range(100)), lane=Lane.CRITICAL)
        await put(broker, "background", lane=Lane.BACKGROUND)
        ann = await join(broker)
        taken: list[str] = []
        for _ in range(33):
            [one] = await take(broker, ann, 1)
            await ack(broker, [one])
            taken.append(one.value)
            await asyncio.sleep(1)

        assert "background" in taken[29:32]

    Lives(7).live(story)


def test_what_an_earlier_lane_left_behind_is_not_lost_when_a_higher_one_came_later() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "low", lane=Lane.LOW)
        await put(broker, "critical", lane=Lane.CRITICAL)
        ann = await join(broker)

        [first] = await take(broker, ann, 1)
        await ack(broker, [first])
        assert floor(broker) == 0, "the floor does not pass what was not settled"
        [second] = await take(broker, ann, 1)
        await ack(broker, [second])

        assert [first.value, second.value] == ["critical", "low"]
        assert floor(broker) == 2

    Lives(8).live(story)


def test_messages_of_one_key_go_to_one_consumer_at_a_time_in_order() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put_keyed(broker, ("a", "a1"), ("b", "b1"), ("a", "a2"), ("a", "a3"), ("b", "b2"))
        ann = await join(broker, sharing=Sharing.SHARED, key_order=True)
        ben = await join(broker, "ben", sharing=Sharing.SHARED, key_order=True)

        [first] = await take(broker, ann, 1)
        theirs = await take(broker, ben, 10)
        assert (first.value, values(theirs)) == ("a1", ["b1", "b2"]), "ben gets nothing of ann's key"
        await nack(broker, [first], delay_ms=1_000)
        assert await take(broker, ann, 10) == [], "what waits for its next try is not overtaken"
        waiting = asyncio.ensure_future(take(broker, ben, 10, wait_ms=5_000))

        assert values(await waiting) == ["a1", "a2", "a3"]

    Lives(9).live(story)


def test_the_order_of_keys_holds_over_a_restart() -> None:
    lives = Lives(10)

    async def before(broker: Broker) -> Consumer:
        await orders(broker)
        await put_keyed(broker, ("a", "a1"), ("b", "b1"), ("a", "a2"))
        ann = await join(broker, sharing=Sharing.SHARED, key_order=True)
        await take(broker, ann, 1)
        return await join(broker, "ben", sharing=Sharing.SHARED, key_order=True)

    ben = lives.live(before, is_killed=True)

    async def after(broker: Broker) -> None:
        assert values(await take(broker, ben, 10)) == ["b1"]

    lives.live(after)


def test_more_consumers_than_partitions_share_the_work() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, *(f"{number}" for number in range(40)))
        consumers = [await join(broker, f"c{n}", sharing=Sharing.SHARED) for n in range(4)]

        taken = [await take(broker, consumer, 10) for consumer in consumers]

        assert sorted(int(value) for some in taken for value in values(some)) == list(range(40))

    Lives(11).live(story)


def test_a_message_that_has_grown_too_old_is_not_delivered() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "old", headers=((TTL_HEADER, b"1000"),))
        await put(broker, "young", headers=((TTL_HEADER, b"60000"),))
        ann = await join(broker)
        await asyncio.sleep(1.5)

        assert values(await take(broker, ann)) == ["young"]
        assert await stored(broker, DEAD_ORDERS) == []

    Lives(12).live(story)


def test_a_topic_can_have_messages_that_grew_too_old_put_with_the_dead_letters() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, ttl_ms="1000", ttl_dead_letters="true")
        await put(broker, "old")
        await asyncio.sleep(2)
        await put(broker, "young")
        ann = await join(broker)

        assert values(await take(broker, ann)) == ["young"]
        await asyncio.sleep(1)
        [dead] = await stored(broker, DEAD_ORDERS)
        assert dead.value == b"old"
        assert dict(dead.headers)["goqueue-dlq-reason"] == b"TTL_EXPIRED"

    Lives(13).live(story)


def test_an_offset_committed_by_hand_settles_what_is_below_it() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c")
        ann = await join(broker)
        taken = await take(broker, ann, 2)
        who = Membership(ann.group, ann.member_id, 1)
        await commit_offsets(broker, CommitOffsets(who, [TopicCommit(ORDERS, [(0, 1, -1, "")])]))

        assert floor(broker) == 1
        assert (await ack(broker, taken)).refusals == {}
        assert floor(broker) == 2
        assert values(await take(broker, ann)) == ["c"]

    Lives(14).live(story)


def test_a_group_that_is_set_back_gets_everything_again() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c")
        ann = await join(broker)
        taken = await take(broker, ann)
        await ack(broker, taken[1:])
        await reset_offsets(
            broker, ResetOffsets(group="workers", topics=[ORDERS], spot=Spot.EARLIEST, is_forced=True)
        )

        assert values(await take(broker, ann)) == ["a", "b", "c"]

    Lives(15).live(story)


def test_a_topic_made_anew_begins_without_leases() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b")
        ann = await join(broker)
        old = await take(broker, ann, 1)
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        await orders(broker)
        await put(broker, "new")

        assert values(await take(broker, ann)) == ["new"]
        assert isinstance((await ack(broker, old)).refusals[0], GoQueueError)
        assert floor(broker) == 0

    Lives(16).live(story)


def test_somebody_who_is_no_member_takes_nothing() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        ann = await join(broker)
        with pytest.raises(UnknownMember):
            await take(broker, Consumer("workers", "nobody"))
        assert values(await take(broker, ann)) == ["a"]

    Lives(17).live(story)
