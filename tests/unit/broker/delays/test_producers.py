"""Record headers of Kafka producers ask for a delay; sequence numbers stay right."""

from collections.abc import Sequence

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import delay_stats
from goqueue.broker.write.append import append
from goqueue.model.commands import Append
from goqueue.model.delays import CountDelayed
from goqueue.model.errors import InvalidRecord, OutOfSequence, ProducerNotFound
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.settings import BrokerConfig, DelayConfig
from goqueue.records.layout import stamp_producer
from tests.unit.broker.delays.delayed_world import ORDERS, World, shown, sleep_ms, values

PRODUCER = 40
LATER = ("goqueue-delay-ms", b"500")
SOURCE = TopicPartition(ORDERS, 0)


def batch_of(
    records: Sequence[tuple[bytes, tuple[str, bytes] | None]],
    *,
    sequence: int = -1,
    codec: int = 0,
    is_transactional: bool = False,
) -> memoryview:
    producer_id = PRODUCER if sequence >= 0 else -1
    builder = DefaultRecordBatchBuilder(2, codec, int(is_transactional), producer_id, 0, sequence, 1 << 20)
    for index, (value, header) in enumerate(records):
        builder.append(index, 1_750_000_000_000, None, value, [header] if header else [])
    return memoryview(bytearray(builder.build()))


async def send(broker: Broker, batch: memoryview, *, acks: Acks = Acks.ALL) -> int:
    appended = append(broker, Append(SOURCE, batch, acks))
    if appended.committed is not None:
        await appended.committed
    return appended.base_offset


def test_records_that_ask_for_it_come_later_and_the_others_now() -> None:
    async def life(broker: Broker) -> None:
        batch = batch_of([(b"a", None), (b"b", LATER), (b"c", None)])
        assert await send(broker, batch) == 0
        assert await values(broker) == [b"a", b"c"]
        await sleep_ms(600)
        assert await values(broker) == [b"a", b"c", b"b"]

    World().run(life)


def test_a_delivered_record_says_when_it_was_due_and_would_not_be_delayed_again() -> None:
    async def life(broker: Broker) -> None:
        due_ms = broker.clock.wall_ms() + 500
        await send(broker, batch_of([(b"x", LATER)]))
        await sleep_ms(600)
        [stored] = await shown(broker)
        assert stored.headers[0] == ("goqueue-deliver-at", b"%d" % due_ms)
        assert [name for name, _ in stored.headers[1:]] == ["traceparent"]
        assert await send(broker, batch_of([(b"again", stored.headers[0])])) == 1
        assert await values(broker) == [b"x", b"again"]

    World().run(life)


def test_a_batch_that_is_delayed_as_a_whole_is_answered_with_the_end_of_the_log() -> None:
    async def life(broker: Broker) -> None:
        await send(broker, batch_of([(b"now", None)]))
        due = b"%d" % (broker.clock.wall_ms() + 500)
        assert await send(broker, batch_of([(b"x", ("goqueue-deliver-at", due))])) == 1
        assert await values(broker) == [b"now"]

    World().run(life)


@pytest.mark.parametrize("header", [("goqueue-delay-ms", b"0"), ("goqueue-deliver-at", b"12")])
def test_what_is_due_already_comes_now(header: tuple[str, bytes]) -> None:
    async def life(broker: Broker) -> None:
        await send(broker, batch_of([(b"x", header)]))
        assert await values(broker) == [b"x"]

    World().run(life)


@pytest.mark.parametrize("value", [b"soon", b"", b"1.5", b"9" * 18])
def test_a_time_that_is_none_is_refused(value: bytes) -> None:
    async def life(broker: Broker) -> None:
        with pytest.raises(InvalidRecord) as refused:
            await send(broker, batch_of([(b"a", None), (b"x", ("goqueue-delay-ms", value))]))
        assert refused.value.record_index == 1
        assert await values(broker) == []

    World().run(life)


def test_a_batch_that_is_sent_again_is_stored_once_also_after_a_crash() -> None:
    world = World()

    def mixed() -> memoryview:
        return batch_of([(b"a", None), (b"b", LATER), (b"c", LATER)], sequence=0)

    def delayed() -> memoryview:
        return batch_of([(b"d", LATER), (b"e", LATER)], sequence=3)

    async def first(broker: Broker) -> None:
        for batch in (mixed(), delayed(), mixed(), delayed()):
            await send(broker, batch)
        assert delay_stats(broker, CountDelayed()).pending == 4

    async def second(broker: Broker) -> None:
        for batch in (mixed(), delayed(), batch_of([(b"f", None)], sequence=5), delayed()):
            await send(broker, batch)
        await sleep_ms(2_000)
        assert sorted(value or b"" for value in await values(broker)) == [b"a", b"b", b"c", b"d", b"e", b"f"]

    world.run_until_killed(first)
    world.run_until_killed(second)


@pytest.mark.parametrize("before", [[], [b"a"]], ids=["all of it later", "some of it now"])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_batch_that_is_sent_again_when_its_time_has_come_is_stored_once(
    before: list[bytes], is_killed: bool
) -> None:
    world = World()
    batches: list[bytes] = []

    async def first(broker: Broker) -> None:
        due = ("goqueue-deliver-at", b"%d" % (broker.clock.wall_ms() + 500))
        past = ("goqueue-deliver-at", b"%d" % (broker.clock.wall_ms() - 500))
        now = [(value, past) for value in before]
        batches.append(bytes(batch_of([*now, (b"b", due), (b"c", due)], sequence=0)))
        batches.append(bytes(batch_of([(b"d", due)], sequence=len(now) + 2)))
        for batch in batches:
            await send(broker, memoryview(bytearray(batch)))
        if not is_killed:
            await again(broker)

    async def again(broker: Broker) -> None:
        await sleep_ms(600)
        for batch in batches:
            await send(broker, memoryview(bytearray(batch)))
        await sleep_ms(600)
        assert await values(broker) == [*before, b"b", b"c", b"d"]
        await send(broker, batch_of([(b"e", None)], sequence=len(before) + 3))

    world.run_until_killed(first)
    if is_killed:
        world.run_until_killed(again)


def test_a_gap_that_delayed_messages_do_not_explain_is_refused() -> None:
    async def life(broker: Broker) -> None:
        await send(broker, batch_of([(b"a", None), (b"b", LATER)], sequence=0))
        for batch in (
            batch_of([(b"x", None)], sequence=3),
            batch_of([(b"x", LATER)], sequence=3),
        ):
            with pytest.raises(OutOfSequence):
                await send(broker, batch)
        assert await send(broker, batch_of([(b"c", None)], sequence=2)) == 1

    World().run(life)


def test_a_part_that_a_crash_has_taken_is_stored_when_the_batch_comes_again() -> None:
    world = World()

    def mixed() -> memoryview:
        return batch_of([(b"a", None), (b"b", LATER)], sequence=0)

    async def first(broker: Broker) -> None:
        await send(broker, mixed(), acks=Acks.NONE)

    async def second(broker: Broker) -> None:
        await send(broker, mixed())
        await sleep_ms(2_000)
        assert await values(broker) == [b"a", b"b"]

    world.run_until_killed(first)
    world.run(second)


def test_nobody_can_write_in_the_name_of_the_keeper() -> None:
    async def life(broker: Broker) -> None:
        batch = batch_of([(b"x", None)])
        stamp_producer(batch, producer_id=-2, producer_epoch=0, base_sequence=0)
        with pytest.raises(InvalidRecord):
            await send(broker, batch)

    World().run(life)


def test_a_delayed_message_of_a_transaction_that_nobody_has_opened_is_refused() -> None:
    async def life(broker: Broker) -> None:
        with pytest.raises(ProducerNotFound):
            await send(broker, batch_of([(b"x", LATER)], sequence=0, is_transactional=True))
        assert delay_stats(broker, CountDelayed()).pending == 0

    World().run(life)


def test_a_broker_that_hears_of_delays_from_kafka_alone_clears_up_behind_them() -> None:
    async def life(broker: Broker) -> None:
        for _ in range(20):
            await send(broker, batch_of([(b"x", LATER)]))
        await sleep_ms(20_000)
        assert broker.delays.store.journal.partition.log.start_offset > 0

    World(BrokerConfig(delays=DelayConfig(wasted_bytes_max=100, wasted_entries_max=3))).run(life)


def test_a_batch_that_came_at_once_is_not_delayed_when_it_comes_again_and_the_clock_was_set_back() -> None:
    world = World()

    async def life(broker: Broker) -> None:
        due = b"%d" % broker.clock.wall_ms()
        batch = bytes(batch_of([(b"a", ("goqueue-deliver-at", due)), (b"b", None)], sequence=0))
        assert await send(broker, memoryview(bytearray(batch))) == 0
        world.clock.step_wall_ms(-5_000)
        assert await send(broker, memoryview(bytearray(batch))) == 0
        assert delay_stats(broker, CountDelayed()).pending == 0
        assert await values(broker) == [b"a", b"b"]

    world.run(life)
