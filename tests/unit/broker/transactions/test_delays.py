"""Delayed messages inside a transaction: due for nobody before it commits, gone with its abort."""

from contextlib import suppress

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import cancel_delayed, delay_stats, get_delayed, list_delayed, move_delayed
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.broker.transactions.verbs import abort_transaction, begin_transaction
from goqueue.broker.write.append import append
from goqueue.broker.write.publish_once import publish_once
from goqueue.model.commands import Append
from goqueue.model.delays import CancelDelayed, CountDelayed, GetDelayed, ListDelayed, MoveDelayed
from goqueue.model.errors import DelayedNotFound, OutOfSequence
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Lane, Message
from goqueue.model.settings import BrokerConfig, DelayConfig
from goqueue.model.topics import CreateTopic, DeleteTopic
from goqueue.model.transaction_commands import AbortTransaction, BeginTransaction, PublishOnce
from goqueue.model.transactions import Marker, PublishedOnce
from tests.unit.broker.delays.delayed_world import (
    ORDERS,
    SMALL,
    World,
    publish_later,
    shown,
    sleep_ms,
    values,
)
from tests.unit.broker.lives import NEVER, Lives, PowerLost
from tests.unit.broker.transactions.transaction_steps import (
    WRITER,
    IdleFlusher,
    Writer,
    journal_of,
    new_writer,
)

SOON_MS = 500


async def begun(broker: Broker, *, timeout_ms: int = 60_000) -> Writer:
    writer = await new_writer(broker, timeout_ms=timeout_ms)
    await begin_transaction(broker, BeginTransaction(transactional_id=WRITER, producer=writer.producer))
    return writer


async def put(
    writer: Writer, value: str, delay_ms: int | None = SOON_MS, *, sequence: int | None = None
) -> PublishedOnce:
    due_ms = None if delay_ms is None else writer.broker.clock.wall_ms() + delay_ms
    message = Message(value.encode(), partition=0, due_ms=due_ms)
    command = PublishOnce(topic=ORDERS, message=message, producer=writer.producer, sequence=sequence)
    return await publish_once(writer.broker, command)


async def commit(writer: Writer) -> None:
    await writer.end(Marker.COMMIT, until_complete=True)


async def abort(writer: Writer) -> None:
    await writer.end(Marker.ABORT, until_complete=True)


def test_a_delayed_message_gets_its_due_time_with_the_commit() -> None:
    async def life(broker: Broker) -> None:
        writer = await begun(broker)
        due_ms = broker.clock.wall_ms() + SOON_MS
        placed = await put(writer, "later")
        await put(writer, "now", None)
        assert (
            placed.due_ms,
            delay_stats(broker, CountDelayed()).pending,
            delay_stats(broker, CountDelayed()).held,
        ) == (due_ms, 0, 1)
        await commit(writer)
        assert (delay_stats(broker, CountDelayed()).pending, delay_stats(broker, CountDelayed()).held) == (
            1,
            0,
        )
        [view] = await list_delayed(broker, ListDelayed(topic=ORDERS, limit=10))
        assert (view.number, view.due_ms) == (placed.offset, due_ms)
        assert await values(broker) == [b"now"]
        await sleep_ms(SOON_MS + 100)
        assert await values(broker) == [b"now", b"later"]
        assert (await shown(broker))[1].timestamp_ms == due_ms
        assert (
            delay_stats(broker, CountDelayed()).delivered,
            delay_stats(broker, CountDelayed()).pending,
        ) == (1, 0)

    World().run(life)


def test_it_is_delivered_with_all_that_it_was_published_with() -> None:
    async def life(broker: Broker) -> None:
        writer = await begun(broker)
        headers = (("colour", b"red"),)
        message = Message(
            b"x", b"key", headers, Lane.HIGH, partition=0, due_ms=broker.clock.wall_ms() + SOON_MS
        )
        command = PublishOnce(topic=ORDERS, message=message, producer=writer.producer)
        await publish_once(broker, command)
        await commit(writer)
        await sleep_ms(SOON_MS + 100)
        [stored] = await shown(broker)
        assert (stored.key, stored.value, stored.lane) == (b"key", b"x", Lane.HIGH)
        assert stored.headers[: len(headers)] == headers

    World().run(life)


def test_one_that_is_past_its_time_at_the_commit_comes_at_once() -> None:
    async def life(broker: Broker) -> None:
        writer = await begun(broker)
        await put(writer, "held")
        # What others have delivered since says that all before it, and due by then, is done with.
        await publish_later(broker, 2_000)
        await sleep_ms(5_000)
        assert await values(broker) == [b"2000"]
        await commit(writer)
        await sleep_ms(100)
        assert await values(broker) == [b"2000", b"held"]

    world = World()
    world.run(life)

    async def after(broker: Broker) -> None:
        await sleep_ms(5_000)
        assert await values(broker) == [b"2000", b"held"]

    world.run(after)


def test_an_abort_cancels_what_was_delayed() -> None:
    async def life(broker: Broker) -> None:
        writer = await begun(broker)
        await put(writer, "never")
        await abort(writer)
        stats = delay_stats(broker, CountDelayed())
        assert (stats.scheduled, stats.cancelled, stats.pending, stats.held) == (1, 1, 0, 0)
        await sleep_ms(2_000)
        assert await values(broker) == []

    World().run(life)


def test_a_transaction_that_takes_too_long_delivers_nothing() -> None:
    async def life(broker: Broker) -> None:
        writer = await begun(broker, timeout_ms=1_000)
        await put(writer, "never", 30_000)
        await sleep_ms(60_000)
        assert (await values(broker), delay_stats(broker, CountDelayed()).held) == ([], 0)

    World().run(life)


def test_nobody_sees_cancels_or_moves_one_before_the_commit() -> None:
    async def life(broker: Broker) -> None:
        writer = await begun(broker)
        number = (await put(writer, "held", 60_000)).offset
        assert await list_delayed(broker, ListDelayed(topic=ORDERS, limit=10)) == []
        with pytest.raises(DelayedNotFound):
            await get_delayed(broker, GetDelayed(topic=ORDERS, number=number))
        with pytest.raises(DelayedNotFound):
            await cancel_delayed(broker, CancelDelayed(topic=ORDERS, partition=0, number=number))
        with pytest.raises(DelayedNotFound):
            await move_delayed(broker, MoveDelayed(topic=ORDERS, partition=0, number=number, due_ms=0))
        await commit(writer)
        await cancel_delayed(broker, CancelDelayed(topic=ORDERS, partition=0, number=number))
        await sleep_ms(120_000)
        assert await values(broker) == []

    World().run(life)


@pytest.mark.parametrize("first", [0, 1])
def test_one_that_comes_again_is_delayed_once_also_when_it_is_due_by_then(first: int) -> None:
    async def life(broker: Broker) -> None:
        writer = await begun(broker)
        placed = [
            await put(writer, "a", sequence=first),
            await put(writer, "a", sequence=first),
            await put(writer, "b", None, sequence=first + 1),
            await put(writer, "a", None, sequence=first),
            await put(writer, "c", sequence=first + 2),
            await put(writer, "d", None, sequence=first + 3),
        ]
        assert [place.is_duplicate for place in placed] == [False, True, False, True, False, False]
        with pytest.raises(OutOfSequence):
            await put(writer, "gap", sequence=first + 9)
        await commit(writer)
        await sleep_ms(1_000)
        assert await values(broker) == [b"b", b"d", b"a", b"c"]

    World().run(life)


def test_outside_a_transaction_a_numbered_message_is_delayed_once() -> None:
    async def life(broker: Broker) -> None:
        writer = await new_writer(broker)
        for _ in range(2):
            await put(writer, "a", sequence=0)
        assert delay_stats(broker, CountDelayed()).pending == 1
        await sleep_ms(1_000)
        assert await values(broker) == [b"a"]

    World().run(life)


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_what_a_transaction_delayed_goes_with_its_topic(is_made_anew: bool) -> None:
    async def life(broker: Broker) -> None:
        writer = await begun(broker)
        await put(writer, "never", 5_000)
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        if is_made_anew:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        await sleep_ms(1_000)
        await commit(writer)
        await sleep_ms(10_000)
        stats = delay_stats(broker, CountDelayed())
        assert (stats.delivered, stats.pending, stats.held) == (0, 0, 0)
        if is_made_anew:
            assert await values(broker) == []

    World().run(life)


def test_an_open_transaction_holds_its_delayed_messages_over_a_restart_and_the_upkeep() -> None:
    world = World(SMALL)

    async def first(broker: Broker) -> None:
        writer = await begun(broker)
        for number in range(12):
            await put(writer, str(number), 3_000 if number % 2 else 20_000)
        await publish_later(broker, *range(100, 1_000, 50))
        await sleep_ms(5_000)
        assert len(await values(broker)) == 18

    async def second(broker: Broker) -> None:
        assert (delay_stats(broker, CountDelayed()).pending, delay_stats(broker, CountDelayed()).held) == (
            0,
            12,
        )
        known = broker.transactions.get(WRITER)
        assert known is not None
        await commit(Writer(broker, known.producer, WRITER))
        await sleep_ms(100)
        assert [int(value or b"") for value in (await values(broker))[18:]] == [1, 3, 5, 7, 9, 11]
        await sleep_ms(20_000)
        assert [int(value or b"") for value in (await values(broker))[24:]] == [0, 2, 4, 6, 8, 10]

    world.run(first)
    world.run(second)


@pytest.mark.parametrize("marker", Marker)
def test_a_held_message_does_not_hold_the_log_for_ever(marker: Marker) -> None:
    world = World(BrokerConfig(delays=DelayConfig(wasted_bytes_max=20_000, wasted_entries_max=1_000_000)))

    async def first(broker: Broker) -> None:
        held = await put(await begun(broker), "held", 1_000)
        for _ in range(5):
            await publish_later(broker, *range(1, 100))
            await sleep_ms(200)
        await sleep_ms(3_000)
        assert broker.delays.store.journal.partition.log.start_offset > held.offset
        assert (delay_stats(broker, CountDelayed()).pending, delay_stats(broker, CountDelayed()).held) == (
            0,
            1,
        )

    async def second(broker: Broker) -> None:
        known = broker.transactions.get(WRITER)
        assert known is not None
        await Writer(broker, known.producer, WRITER).end(marker, until_complete=True)
        await sleep_ms(100)
        assert (await values(broker))[5 * 99 :] == ([b"held"] if marker is Marker.COMMIT else [])

    world.run_until_killed(first)
    world.run(second)


def test_an_operator_that_aborts_one_cancels_what_it_delayed() -> None:
    async def life(broker: Broker) -> None:
        writer = await begun(broker)
        await put(writer, "never")
        await abort_transaction(broker, AbortTransaction(name=WRITER))
        await sleep_ms(1_000)
        assert (await values(broker), delay_stats(broker, CountDelayed()).held) == ([], 0)

    World().run(life)


def kafka_batch(writer: Writer, now: str, *later: tuple[str, int]) -> memoryview:
    """A record of a transaction that comes now, and others that come later."""
    builder = DefaultRecordBatchBuilder(
        2, 0, 1, writer.producer.producer_id, writer.producer.epoch, 0, 1 << 20
    )
    builder.append(0, 1, None, now.encode(), [])
    for index, (value, delay_ms) in enumerate(later, 1):
        builder.append(index, 1, None, value.encode(), [("goqueue-delay-ms", b"%d" % delay_ms)])
    return memoryview(bytearray(builder.build()))


async def send(broker: Broker, batch: memoryview, *, may_join: bool) -> None:
    appended = append(broker, Append(TopicPartition(ORDERS, 0), batch, Acks.ALL, may_join))
    if appended.committed is not None:
        await appended.committed


@pytest.mark.parametrize("may_join", [False, True], ids=["added", "joined"])
@pytest.mark.parametrize("marker", Marker)
def test_records_of_kafka_producers_are_held_too(marker: Marker, may_join: bool) -> None:
    async def life(broker: Broker) -> None:
        writer = await new_writer(broker)
        if not may_join:
            await writer.add(0)
        for _ in range(2):
            await send(broker, kafka_batch(writer, "now", ("later", SOON_MS)), may_join=may_join)
        await sleep_ms(1_000)
        assert (await values(broker), delay_stats(broker, CountDelayed()).held) == ([], 1)
        await writer.end(marker, until_complete=True)
        await sleep_ms(100)
        assert await values(broker) == ([b"now", b"later"] if marker is Marker.COMMIT else [])

    World().run(life)


class Work:
    """Three transactions that delay, the middle one aborted; `ended` counts the acknowledged ends."""

    def __init__(self, *, is_kafka: bool) -> None:
        self.is_kafka = is_kafka
        self.ended = 0

    async def __call__(self, broker: Broker) -> None:
        for number in range(3):
            if self.is_kafka:
                writer = await new_writer(broker)
                later = (f"{number} a", 10), (f"{number} b", 30_000)
                await send(broker, kafka_batch(writer, f"{number} now", *later), may_join=True)
            else:
                writer = await begun(broker)
                await put(writer, f"{number} now", None, sequence=0)
                await put(writer, f"{number} a", 10, sequence=1)
                await put(writer, f"{number} b", 30_000, sequence=2)
            await (abort if number == 1 else commit)(writer)
            self.ended += 1


async def prepare(broker: Broker) -> None:
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))


async def rest(broker: Broker) -> None:
    """Only open: that alone finishes what is decided."""


async def look(broker: Broker) -> list[str]:
    """What is seen once the next producer has taken over and all is due."""
    await new_writer(broker)
    assert delay_stats(broker, CountDelayed()).held == 0
    await sleep_ms(60_000)
    assert delay_stats(broker, CountDelayed()).pending == 0
    return sorted((value or b"").decode() for value in await values(broker))


ALLOWED = {
    0: [],
    1: ["0 a", "0 b", "0 now"],
    3: ["0 a", "0 b", "0 now", "2 a", "2 b", "2 now"],
}
"""What may be seen, by how many transactions have ended: the second one leaves no trace."""


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # the power was cut
@pytest.mark.parametrize("is_killed", [False, True], ids=["power", "kill"])
@pytest.mark.parametrize("is_kafka", [False, True], ids=["http", "kafka"])
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_what_a_transaction_delayed_comes_whole_or_not_at_all_wherever_it_is_cut(
    stride: int, is_kafka: bool, is_killed: bool
) -> None:
    seen = set()
    for cut_after in range(0, NEVER, stride):
        lives = Lives(2_000 + cut_after)
        lives.live(prepare)
        work = Work(is_kafka=is_kafka)
        with suppress(PowerLost):
            lives.live(work, cut_after=cut_after, is_killed=is_killed)
        # The restart may be cut short as well, in the midst of finishing what it found.
        with suppress(PowerLost):
            lives.live(rest, cut_after=cut_after % 17, is_killed=is_killed)

        found = lives.live(look)

        ended = next((count for count, state in ALLOWED.items() if state == found), None)
        assert ended is not None, f"{cut_after}: {found}"
        # The one under way may have been decided without anybody hearing of it.
        assert ended in (work.ended, min(work.ended + 1, 3)) or (work.ended, ended) == (2, 1), cut_after
        seen.add(ended)
        if work.ended == 3:
            break
    assert seen == {0, 1, 3}


def test_a_decision_whose_completion_was_lost_lets_go_of_nothing_that_was_delayed_behind_it() -> None:
    lives = Lives(13)

    async def write(broker: Broker) -> None:
        await prepare(broker)
        writer = await begun(broker)
        await put(writer, "first", 10, sequence=0)
        await commit(writer)
        (await journal_of(writer)).partition.flusher = IdleFlusher()
        await writer.add(0)
        await put(writer, "next", 10, sequence=1)

    lives.live(write)

    assert lives.live(look) == ["first"]
