"""Batches that the disk has spoilt: a group gets all before them and all behind them, and people are told."""

from collections.abc import Awaitable, Callable

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.tracing.verbs import find_traces
from goqueue.broker.write.publish import publish
from goqueue.core.telemetry.traces import Kind
from goqueue.model.commands import Publish
from goqueue.model.messages import Message
from goqueue.model.telemetry import TraceQuery
from goqueue.records.frame import FRAME_BYTES
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import (
    DEAD_ORDERS,
    Consumer,
    Taken,
    ack,
    floor,
    join,
    nack,
    orders,
    reject,
    stored,
    take,
    values,
)
from tests.unit.broker.running import ORDERS

BATCHES, IN_BATCH = 20, 10
BAD = 14
ALL = [f"{number}" for number in range(BATCHES * IN_BATCH)]
GOOD = [value for value in ALL if int(value) // IN_BATCH != BAD]
HEAD, BODY = 2, FRAME_BYTES + 80
"""Where in a frame a bit turns: what says how long it is, or what is in it."""


async def fill(broker: Broker) -> Consumer:
    await orders(broker, retry_backoff_ms="0")
    for first in range(0, len(ALL), IN_BATCH):
        messages = [Message(value.encode()) for value in ALL[first : first + IN_BATCH]]
        await publish(broker, Publish(topic=ORDERS, messages=messages))
    return await join(broker)


def spoil(broker: Broker, batch: int, place: int) -> None:
    """Turn a bit of a batch, as disks do."""
    disk = broker.disk
    assert isinstance(disk, SimulatedDisk)
    [name] = [name for name in disk.list("logs/orders/0") if name.endswith(".log")]
    path = f"logs/orders/0/{name}"
    position = -1
    for _ in range(batch + 1):
        position = disk.stored(path).content.index(b"GQ\x02", position + 1)
    disk.flip_bit(path, position + place)


async def take_all(broker: Broker, consumer: Consumer, limit: int) -> list[str]:
    found: list[str] = []
    while taken := await take(broker, consumer, limit):
        assert not (await ack(broker, taken)).refusals
        found += values(taken)
    return found


def live_twice(first: Callable[[Broker], Awaitable[None]], consumer: Consumer, lives: Lives) -> int:
    """Where the group stands, in this life and the next."""
    lives.live(first, is_killed=True)

    async def look(broker: Broker) -> int:
        assert await take(broker, consumer) == []
        return floor(broker)

    return lives.live(look)


@pytest.mark.parametrize("place", [HEAD, BODY], ids=["head", "body"])
@pytest.mark.parametrize("limit", [1, 7, 100, 1_000])
def test_a_group_gets_all_but_the_batch_that_is_spoilt(limit: int, place: int) -> None:
    lives = Lives(1)
    consumer = lives.live(fill)

    async def story(broker: Broker) -> None:
        spoil(broker, BAD, place)
        assert await take_all(broker, consumer, limit) == GOOD
        assert floor(broker) == len(ALL)

    assert live_twice(story, consumer, lives) == len(ALL)


def test_a_batch_that_goes_bad_behind_the_scan_is_passed_too() -> None:
    lives = Lives(1)
    consumer = lives.live(fill)

    async def story(broker: Broker) -> None:
        taken = await take(broker, consumer, 1)
        await ack(broker, taken)
        spoil(broker, BAD, BODY)
        assert [*values(taken), *await take_all(broker, consumer, 25)] == GOOD
        assert floor(broker) == len(ALL)

    assert live_twice(story, consumer, lives) == len(ALL)


def test_who_has_messages_of_a_batch_that_goes_bad_may_settle_them() -> None:
    lives = Lives(1)
    consumer = lives.live(fill)

    async def begin(broker: Broker) -> list[Taken]:
        await ack(broker, await take(broker, consumer, IN_BATCH * BAD))
        return await take(broker, consumer, 2, visibility_ms=60_000)

    first, second = lives.live(begin, is_killed=True)

    async def story(broker: Broker) -> None:
        spoil(broker, BAD, BODY)
        rest = await take(broker, consumer, 1_000)
        assert values(rest) == ALL[(BAD + 1) * IN_BATCH :]
        assert not (await ack(broker, [*rest, first])).refusals
        assert floor(broker) == int(second.value)
        await nack(broker, [second], delay_ms=0)
        assert await take(broker, consumer) == []
        assert floor(broker) == len(ALL)

    lives.live(story)


def test_the_last_batch_of_a_log_may_be_the_bad_one() -> None:
    lives = Lives(1)
    consumer = lives.live(fill)

    async def story(broker: Broker) -> None:
        spoil(broker, BATCHES - 1, BODY)
        assert await take_all(broker, consumer, 50) == ALL[:-IN_BATCH]
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"new")]))
        assert await take_all(broker, consumer, 50) == ["new"]

    lives.live(story)


def test_what_was_passed_over_is_remembered_counted_and_told() -> None:
    lives = Lives(1)
    consumer = lives.live(fill)

    async def story(broker: Broker) -> None:
        spoil(broker, BAD, BODY)
        await take_all(broker, consumer, 50)
        counts = broker.counters.group_topics["workers", ORDERS]
        assert (counts.passed_over, counts.acked) == (IN_BATCH, len(GOOD))
        told = [event for event in broker.telemetry.traces.snapshot() if event[1] == Kind.PASSED_OVER]
        assert [event[3:6] for event in told] == [(BAD * IN_BATCH, (BAD + 1) * IN_BATCH, "workers")]
        listed = await find_traces(broker, TraceQuery(limit=1_000))
        assert listed.traces

    async def remembered(broker: Broker) -> list[tuple[int, int, str]]:
        [delivery] = [one for journal in broker.coordinator.journals for one in journal.deliveries]
        return [(run.first, run.end, run.reason) for run in delivery.passed.values()]

    lives.live(story, is_killed=True)
    [(first, end, reason)] = lives.live(remembered)

    assert (first, end) == (BAD * IN_BATCH, (BAD + 1) * IN_BATCH)
    assert "checksum" in reason


def test_a_dead_letter_whose_message_is_spoilt_holds_up_no_other() -> None:
    lives = Lives(1)

    async def story(broker: Broker) -> None:
        consumer = await fill(broker)
        taken = await take(broker, consumer, 1_000)
        spoil(broker, BAD, BODY)
        await reject(broker, taken)
        dead = [(message.value or b"").decode() for message in await stored(broker, DEAD_ORDERS)]
        assert dead == GOOD
        assert floor(broker) == len(ALL)

    lives.live(story)
