"""Dead letters: when messages become some, what they carry, how they come back; no crash doubles them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.queue import redrive as redriving
from goqueue.broker.queue.redrive import browse, redrive
from goqueue.broker.storage.partition import Partition
from goqueue.broker.topics.verbs import add_partitions, delete_topic
from goqueue.model.delivery import BrowseDeadLetters, Redrive
from goqueue.model.errors import NotLeader
from goqueue.model.ids import TopicName
from goqueue.model.messages import Lane
from goqueue.model.topics import AddPartitions, DeleteTopic
from tests.unit.broker.lives import NEVER, Lives, PowerLost
from tests.unit.broker.queue.queue_steps import (
    DEAD_ORDERS,
    Consumer,
    Taken,
    ack,
    floor,
    join,
    nack,
    orders,
    put,
    put_keyed,
    reject,
    stored,
    take,
    values,
)
from tests.unit.broker.running import ORDERS


def test_after_the_last_retry_a_message_is_a_dead_letter_with_its_story() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", lane=Lane.HIGH, headers=(("tenant", b"blue"),))
        ann = await join(broker)
        for _ in range(4):
            taken = await take(broker, ann, wait_ms=60_000)
            outcome = await nack(broker, taken, reason="no such customer")

        assert outcome.dead_letter_topics == {0: "orders.dlq"}
        [dead] = await stored(broker, DEAD_ORDERS)
        assert (dead.value, dead.lane) == (b"a", Lane.HIGH)
        headers = dict(dead.headers)
        assert headers.pop("tenant") == b"blue"
        assert headers.pop("traceparent"), "its trace goes on there"
        began_ms, died_ms = (
            int(headers.pop(f"goqueue-dlq-{name}") or 0) for name in ("original-timestamp", "time")
        )
        assert 7_000 <= died_ms - began_ms <= 7_500, "three waits: 1, 2 and 4 seconds"
        assert headers == {
            "goqueue-dlq-original-topic": b"orders",
            "goqueue-dlq-original-partition": b"0",
            "goqueue-dlq-original-offset": b"0",
            "goqueue-dlq-attempts": b"4",
            "goqueue-dlq-reason": b"MAX_RETRIES_EXCEEDED",
            "goqueue-dlq-group": b"workers",
            "goqueue-dlq-consumer": ann.member_id.encode(),
            "goqueue-dlq-error": b"no such customer",
        }
        assert floor(broker) == 1
        assert await take(broker, ann) == []

    Lives(1).live(story)


def test_a_message_that_no_consumer_settles_becomes_a_dead_letter_without_anybody_polling() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, retries_max="0", visibility_ms="1000")
        await put(broker, "a")
        await take(broker, await join(broker))

        await asyncio.sleep(10)

        assert [message.value for message in await stored(broker, DEAD_ORDERS)] == [b"a"]
        assert floor(broker) == 1

    Lives(2).live(story)


def test_dead_letters_of_dead_letters_stay_where_they_are() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        await reject(broker, await take(broker, await join(broker)))
        undertaker = await join(broker, group="undertakers", topic=DEAD_ORDERS)

        outcome = await reject(broker, await take(broker, undertaker))

        assert outcome.dead_letter_topics == {}
        assert TopicName("orders.dlq.dlq") not in broker.topics
        assert floor(broker, "undertakers", topic=DEAD_ORDERS) == 1
        assert len(await stored(broker, DEAD_ORDERS)) == 1

    Lives(3).live(story)


def test_dead_letters_have_the_partitions_of_their_topic() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, partitions=2)
        await put(broker, "a", "b")
        ann = await join(broker)
        await reject(broker, await take(broker, ann))
        await add_partitions(broker, AddPartitions(name=ORDERS, total=3))
        await put(broker, "c", "d", "e")
        await reject(broker, await take(broker, await join(broker, group="others")))

        assert len(broker.topic(DEAD_ORDERS).partitions) == 2
        dead = [len(await stored(broker, DEAD_ORDERS, partition)) for partition in (0, 1)]
        assert sum(dead) == 7
        origins = {
            dict(message.headers)["goqueue-dlq-original-partition"]
            for message in await stored(broker, DEAD_ORDERS, 0)
        }
        assert origins == {b"0", b"2"}

    Lives(4).live(story)


def test_dead_letters_that_were_deleted_begin_anew() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b")
        ann = await join(broker)
        first, second = await take(broker, ann)
        await reject(broker, [first])
        await delete_topic(broker, DeleteTopic(name=DEAD_ORDERS))
        await reject(broker, [second])

        assert [message.value for message in await stored(broker, DEAD_ORDERS)] == [b"b"]

    Lives(5).live(story)


async def bury(broker: Broker, *pairs: tuple[str, str]) -> Consumer:
    """Make dead letters of messages given as key and value."""
    ann = await join(broker)
    for key, value in pairs:
        await put_keyed(broker, (key, value))
        await reject(broker, await take(broker, ann), reason=f"reason of {value}")
    return ann


def test_dead_letters_are_sent_back_once_to_where_they_came_from() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, partitions=3)
        ann = await bury(broker, ("x", "a"), ("y", "b"), ("z", "c"))
        partitions = {
            one.message.key: one.source.partition
            for one in (await browse(broker, BrowseDeadLetters(topic=ORDERS))).letters
        }

        done = await redrive(broker, Redrive(topic=ORDERS))

        assert (done.matched, done.moved, done.is_complete) == (3, 3, True)
        again = await take(broker, ann)
        assert sorted(values(again)) == ["a", "b", "c"]
        assert {one.key.encode(): one.partition for one in again} == partitions
        assert {one.headers[1:] for one in again} == {(("goqueue-dlq-redrives", b"1"),)}
        assert {one.headers[0][0] for one in again} == {"traceparent"}
        assert (await browse(broker, BrowseDeadLetters(topic=ORDERS))).letters == []
        assert (await redrive(broker, Redrive(topic=ORDERS))).moved == 0

    Lives(6).live(story)


def test_a_redrive_takes_what_fits_and_leaves_the_rest() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        ann = await bury(broker, ("x", "a"), ("y", "b"), ("x", "c"), ("x", "d"))

        dry = await redrive(broker, Redrive(topic=ORDERS, key=b"x", is_dry_run=True))
        assert (dry.matched, dry.moved) == (3, 0)
        assert (await redrive(broker, Redrive(topic=ORDERS, reasons=["TTL_EXPIRED"]))).matched == 0
        done = await redrive(broker, Redrive(topic=ORDERS, key=b"x", group="workers", limit=2))

        assert (done.moved, done.is_complete) == (2, False)
        assert values(await take(broker, ann)) == ["a", "c"]
        left = [
            letter.message.value for letter in (await browse(broker, BrowseDeadLetters(topic=ORDERS))).letters
        ]
        assert left == [b"b", b"d"]

    Lives(7).live(story)


def test_a_redrive_keeps_to_its_rate_and_goes_on_when_asked_again() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, *(f"{number}" for number in range(60)))
        await reject(broker, await take(broker, await join(broker)))
        began_ms = broker.clock.wall_ms()

        done = await redrive(broker, Redrive(topic=ORDERS, rate_per_s=2))

        assert not done.is_complete
        assert 38 <= done.moved <= 42
        assert broker.clock.wall_ms() - began_ms < 25_000
        rest = await redrive(broker, Redrive(topic=ORDERS))
        assert done.moved + rest.moved == 60
        assert len(await stored(broker, ORDERS)) == 120

    Lives(8).live(story)


def test_a_redrive_that_comes_to_nothing_halfway_tells_what_it_has_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were it refused as not done, another node would do it anew, and tell nothing of these."""

    async def story(broker: Broker) -> None:
        await orders(broker, partitions=3)
        ann = await bury(broker, *((f"key {number}", f"{number}") for number in range(9)))
        dead = [
            one.source.partition for one in (await browse(broker, BrowseDeadLetters(topic=ORDERS))).letters
        ]
        first, second = sorted(set(dead))[:2]

        async def commit_first(partitions: Sequence[Partition]) -> None:
            if partitions[0].source.partition >= second:
                raise NotLeader(DEAD_ORDERS, second)

        with monkeypatch.context() as patch:
            patch.setattr(redriving, "commit_written", commit_first)
            done = await redrive(broker, Redrive(topic=ORDERS))
            assert (done.moved, done.is_complete) == (dead.count(first), False)
            with pytest.raises(NotLeader):
                await redrive(broker, Redrive(topic=ORDERS))
        rest = await redrive(broker, Redrive(topic=ORDERS))
        assert done.moved + rest.moved == 9
        assert len(await take(broker, ann)) == 9

    Lives(9).live(story)


async def prepare(broker: Broker) -> list[Taken]:
    await orders(broker)
    await put(broker, "a", "b", "c")
    taken = await take(broker, await join(broker))
    await asyncio.sleep(2)  # only acks wait for the disk: a power cut may take a lease that is younger
    return taken


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("stride", [6, pytest.param(2, marks=pytest.mark.slow)])
def test_a_dead_letter_is_neither_lost_nor_doubled_wherever_the_power_fails(
    stride: int, is_killed: bool
) -> None:
    for cut_after in range(is_killed, NEVER, stride):
        lives = Lives(cut_after)
        taken = lives.live(prepare)
        is_answered = False

        async def kill_two(broker: Broker, taken: list[Taken] = taken) -> bool:
            await reject(broker, taken[:2])
            await ack(broker, taken[2:])
            return True

        with suppress(PowerLost):
            is_answered = lives.live(kill_two, cut_after=cut_after, is_killed=is_killed)
        # Once more the power fails while the restart goes through the same steps.
        with suppress(PowerLost):
            lives.live(rest, cut_after=cut_after % 7 + 1, is_killed=is_killed)

        async def look(broker: Broker) -> tuple[list[bytes | None], int]:
            await asyncio.sleep(10)
            return [m.value for m in await stored(broker, DEAD_ORDERS)], floor(broker)

        dead, settled_below = lives.live(look)
        assert dead in ([], [b"a", b"b"])
        assert not is_answered or (dead, settled_below) == ([b"a", b"b"], 3)
        assert (settled_below >= 2) == bool(dead), "moved and settled are one step"
        if is_answered:
            break


async def rest(broker: Broker) -> None:
    await asyncio.sleep(10)


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("stride", [6, pytest.param(2, marks=pytest.mark.slow)])
def test_a_redrive_sends_nothing_twice_wherever_the_power_fails(stride: int, is_killed: bool) -> None:
    for cut_after in range(is_killed, NEVER, stride):
        lives = Lives(cut_after)

        async def bury_two(broker: Broker) -> None:
            await reject(broker, (await prepare(broker))[:2])

        lives.live(bury_two)
        is_answered = False

        async def send_back(broker: Broker) -> bool:
            return (await redrive(broker, Redrive(topic=ORDERS))).moved == 2

        with suppress(PowerLost):
            is_answered = lives.live(send_back, cut_after=cut_after, is_killed=is_killed)

        async def finish(broker: Broker) -> list[bytes | None]:
            await redrive(broker, Redrive(topic=ORDERS))
            return [message.value for message in await stored(broker, ORDERS)]

        assert lives.live(finish) == [b"a", b"b", b"c", b"a", b"b"]
        if is_answered:
            break
