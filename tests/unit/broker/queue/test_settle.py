"""Settle: acknowledge, give back, keep longer; and what of it survives the end of the process."""

import asyncio

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.queue.settle import settle
from goqueue.broker.storage import state_journal as journal_module
from goqueue.model.delivery import Action, Settle
from goqueue.model.errors import AlreadySettled, InvalidReceipt, LeaseLost, ReceiptNotFound
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import (
    Consumer,
    Taken,
    ack,
    extend,
    floor,
    join,
    nack,
    orders,
    put,
    reject,
    take,
    values,
)


def test_the_floor_moves_when_everything_before_it_is_settled() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c", "d")
        ann = await join(broker)
        a, b, c, d = await take(broker, ann)

        assert not (await ack(broker, [b, d])).parts[0].has_floor_moved
        assert floor(broker) == 0
        outcome = await ack(broker, [a])
        assert outcome.parts[0].has_floor_moved
        assert (outcome.parts[0].floor, outcome.parts[0].in_flight) == (2, 1)
        await ack(broker, [c])
        assert floor(broker) == 4

    Lives(1).live(story)


def test_an_acknowledged_message_never_comes_back_and_may_be_acknowledged_again() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b")
        ann = await join(broker)
        taken = await take(broker, ann)
        await ack(broker, taken[1:])

        assert (await ack(broker, taken[1:])).refusals == {}
        await asyncio.sleep(31)
        assert values(await take(broker, ann)) == ["a"]
        assert (await ack(broker, taken[1:])).refusals == {}
        outcome = await nack(broker, taken[1:])
        assert isinstance(outcome.refusals[0], AlreadySettled)

    Lives(2).live(story)


def test_each_receipt_of_a_request_gets_its_own_answer() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, partitions=2)
        await put(broker, "a", "b", "c", "d")
        ann = await join(broker)
        taken = await take(broker, ann)
        good = [one.receipt for one in taken]
        topic, partition, offset, _, nonce = good[0].split(":")
        receipts = [
            *good,
            good[0],
            "nonsense",
            "orders:0:0:1:0123456789abcdef",
            f"payments:{partition}:{offset}:1:{nonce}",
            f"{topic}:{partition}:99:1:{nonce}",
            f"{topic}:{partition}:x:1:{nonce}",
        ]

        outcome = await settle(broker, Settle(action=Action.ACK, receipts=receipts))

        assert {place: type(error) for place, error in outcome.refusals.items()} == {
            5: InvalidReceipt,
            6: ReceiptNotFound,
            7: ReceiptNotFound,
            8: LeaseLost,
            9: InvalidReceipt,
        }
        assert floor(broker, partition=0) == floor(broker, partition=1) == 2
        wrong = Settle(action=Action.ACK, receipts=[f"payments:{partition}:{offset}:1:{nonce}"])
        assert isinstance((await settle(broker, wrong)).refusals[0], ReceiptNotFound)

    Lives(3).live(story)


@pytest.mark.parametrize("wrong", [0, 2])
@pytest.mark.parametrize("bend", ["other offset", "twice", "two in one", "other nonce", "other partition"])
def test_among_receipts_in_order_a_wrong_one_is_still_told(wrong: int, bend: str) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c", "d")
        ann = await join(broker)
        receipts = [one.receipt for one in await take(broker, ann)]
        topic, partition, offset, count, nonce = receipts[wrong].split(":")
        receipts[wrong] = {
            "other offset": f"{topic}:{partition}:{int(offset) + 9}:{count}:{nonce}",
            "twice": receipts[wrong - 1],
            "two in one": f"{receipts[wrong]}\n{receipts[wrong]}",
            "other nonce": f"{topic}:{partition}:{offset}:{count}:{int(nonce, 16) ^ 1:016x}",
            "other partition": f"{topic}:7:{offset}:{count}:{nonce}",
        }[bend]

        outcome = await settle(broker, Settle(action=Action.ACK, receipts=receipts))

        assert set(outcome.refusals) == ({wrong} if bend != "twice" else set())
        await asyncio.sleep(31)
        assert values(await take(broker, ann)) == ["abcd"[wrong]]

    Lives(4).live(story)


def test_a_nack_gives_the_message_to_a_live_consumer_after_a_back_off_that_doubles() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, retries_max="10", retry_backoff_max_ms="4000")
        await put(broker, "a")
        ann = await join(broker)
        waits = []
        for count in range(1, 6):
            [one] = await take(broker, ann, wait_ms=60_000)
            assert one.delivery_count == count
            now_ms = broker.clock.wall_ms()
            waits.append((await nack(broker, [one])).times_ms[0] - now_ms)

        assert waits == [1_000, 2_000, 4_000, 4_000, 4_000]

    Lives(4).live(story)


def test_a_nack_may_say_itself_when_the_message_is_delivered_again() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        ann = await join(broker)
        await nack(broker, await take(broker, ann), delay_ms=0)

        assert values(await take(broker, ann)) == ["a"]

    Lives(5).live(story)


def test_a_lease_that_ran_out_cannot_be_settled() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        ann = await join(broker)
        taken = await take(broker, ann, visibility_ms=1_000)
        await asyncio.sleep(1)

        for attempt in (ack, nack, reject):
            assert isinstance((await attempt(broker, taken)).refusals[0], LeaseLost)
        again = await take(broker, ann)
        assert isinstance((await ack(broker, taken)).refusals[0], LeaseLost), "the old receipt stays void"
        assert (await ack(broker, again)).refusals == {}

    Lives(6).live(story)


def test_a_consumer_that_asks_for_more_time_gets_it_for_these_messages_alone() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c")
        ann = await join(broker)
        taken = await take(broker, ann, visibility_ms=1_000)
        await extend(broker, taken[1:2], 10_000)
        await extend(broker, taken[2:], 500)
        await asyncio.sleep(0.6)

        assert values(await take(broker, ann)) == ["c"]
        await asyncio.sleep(0.5)
        assert values(await take(broker, ann)) == ["a"]
        assert (await ack(broker, taken[1:2])).refusals == {}

    Lives(7).live(story)


def test_an_ack_survives_a_power_cut_and_a_kill() -> None:
    for is_killed in (True, False):
        lives = Lives(8)

        async def before(broker: Broker) -> tuple[Consumer, list[Taken]]:
            await orders(broker)
            await put(broker, "a", "b", "c")
            ann = await join(broker)
            taken = await take(broker, ann)
            await ack(broker, taken[:1])
            await ack(broker, taken[2:])
            return ann, taken

        ann, taken = lives.live(before, is_killed=is_killed)

        async def after(broker: Broker, ann: Consumer = ann, taken: list[Taken] = taken) -> None:
            assert floor(broker) == 1
            assert (await ack(broker, taken[2:])).refusals == {}, "still known to be settled"
            await asyncio.sleep(31)
            [again] = await take(broker, ann)
            assert (again.value, again.delivery_count) == ("b", 2)

        lives.live(after)


@pytest.mark.parametrize("is_shortened", [False, True])
def test_after_a_kill_leases_deadlines_and_counts_are_as_before(
    is_shortened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = Lives(9)

    async def before(broker: Broker) -> tuple[Consumer, list[Taken]]:
        await orders(broker)
        await put(broker, "a", "b", "c")
        ann = await join(broker)
        [a] = await take(broker, ann, 1)
        await nack(broker, [a], delay_ms=5_000)
        taken = await take(broker, ann, visibility_ms=10_000)
        await extend(broker, taken[1:], 20_000)
        if is_shortened:
            monkeypatch.setattr(journal_module, "EVENTS_MAX", 0)
            await broker.coordinator.keep_up()
        return ann, taken

    ann, taken = lives.live(before, is_killed=True)

    async def after(broker: Broker) -> None:
        began_ms = broker.clock.wall_ms()
        assert await take(broker, ann) == [], "nothing is delivered before its time"
        found: list[tuple[str, int, int]] = []
        while len(found) < 3:
            for one in await take(broker, ann, wait_ms=30_000, visibility_ms=600_000):
                waited_s = round((broker.clock.wall_ms() - began_ms) / 1_000)
                found.append((one.value, one.delivery_count, waited_s))
        assert found == [("a", 2, 5), ("b", 2, 10), ("c", 2, 20)]
        assert isinstance((await ack(broker, taken)).refusals[0], LeaseLost)

    lives.live(after)
