"""Messages that do not fit: refused or set aside, with offsets and sequence numbers that stay right."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from goqueue.broker.broker import Broker
from goqueue.broker.delays.schedules import create_schedule
from goqueue.broker.delays.verbs import delay_stats
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.read.read import read_messages
from goqueue.broker.schemas.check import Unchecked
from goqueue.broker.schemas.verbs import register_schema
from goqueue.broker.topics.verbs import add_partitions, alter_settings, create_topic
from goqueue.broker.tracing.verbs import trace_of
from goqueue.broker.write.append import append, append_when_checked
from goqueue.broker.write.append_entries import append_entries
from goqueue.broker.write.publish import publish
from goqueue.model.commands import (
    Append,
    AppendEntries,
    FindOffset,
    Placed,
    Publish,
    Published,
    Quarantined,
    ReadMessages,
)
from goqueue.model.delays import CountDelayed, CreateSchedule, Postponed, ScheduledMessage
from goqueue.model.errors import (
    InvalidSetting,
    MessageTooLarge,
    OutOfSequence,
    QuarantineNotReady,
    SchemaMismatch,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message, StoredMessage
from goqueue.model.schema_commands import RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.telemetry import TraceMessage
from goqueue.model.topics import AddPartitions, AlterSettings, CreateTopic, SettingChange
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.records.entries import encode_entry
from tests.unit.broker.lives import Lives, PowerLost
from tests.unit.broker.queue.queue_steps import ack, floor, join, take
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until

QUARANTINE = TopicName("orders.quarantine")
QUARANTINE_0 = TopicPartition(QUARANTINE, 0)
PRODUCER = 40
GZIP = 1
BAD_TEXT = 'value: #/: "x" is not of type "integer"'
GOOD, BAD = b"1", b'"x"'


async def orders(broker: Broker, on_invalid: str = "refuse", *, partitions: int = 1) -> None:
    settings = {"goqueue.schema.validation": "full", "goqueue.schema.on.invalid": on_invalid}
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=partitions, settings=settings))
    await register_schema(
        broker,
        RegisterSchema(subject="orders-value", schema=SchemaText(SchemaKind.JSON, '{"type": "integer"}')),
    )


def batch_of(
    *values: bytes, sequence: int = -1, codec: int = 0, headers: Sequence[tuple[str, bytes]] = ()
) -> memoryview:
    producer_id = PRODUCER if sequence >= 0 else -1
    builder = DefaultRecordBatchBuilder(2, codec, 0, producer_id, 0, sequence, 1 << 20)
    for index, value in enumerate(values):
        builder.append(index, 1_750_000_000_000 + index, b"key", value, list(headers))
    return memoryview(bytearray(builder.build()))


async def send(broker: Broker, batch: memoryview, source: TopicPartition = ORDERS_0) -> int:
    """Send as a producer does: again, when it is told to."""
    while True:
        try:
            command = Append(source, batch, Acks.ALL)
            try:
                appended = append(broker, command)
            except Unchecked:
                appended = await append_when_checked(broker, command)
        except QuarantineNotReady as error:
            await until(lambda: not broker.schemas.quarantines_opening)
            assert error.topic in broker.topics
            continue
        if appended.committed is not None:
            await appended.committed
        return appended.base_offset


async def put(broker: Broker, *messages: Message) -> Published:
    return await publish(broker, Publish(topic=ORDERS, messages=messages))


async def stored(broker: Broker, source: TopicPartition = ORDERS_0) -> list[StoredMessage]:
    return (await read_messages(broker, ReadMessages(source=source, limit=1_000))).messages


async def values(broker: Broker, source: TopicPartition = ORDERS_0) -> list[tuple[int, bytes | None]]:
    return [(message.offset, message.value) for message in await stored(broker, source)]


def walk(folder: Path, steps: Callable[[Broker], Awaitable[None]]) -> None:
    async def live() -> None:
        async with running(FolderDisk(folder)) as broker:
            await steps(broker)

    asyncio.run(live())


def test_a_published_message_that_does_not_fit_is_refused_alone(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker)
        first, second, third = await put(broker, Message(GOOD), Message(BAD), Message(b"2"))

        assert (first, third) == (Placed(0, 0), Placed(0, 1))
        assert isinstance(second, SchemaMismatch)
        assert str(second) == BAD_TEXT
        assert await values(broker) == [(0, GOOD), (1, b"2")]

    walk(tmp_path, steps)


def test_a_published_message_that_does_not_fit_is_kept_with_the_reason(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine", partitions=3)
        late_ms = broker.clock.wall_ms() + 3_600_000
        results = await put(
            broker,
            Message(GOOD, key=b"k"),
            Message(BAD, key=b"k", headers=(("mine", b"1"),)),
            Message(BAD, partition=2, due_ms=late_ms),
            Message(GOOD, due_ms=late_ms),
        )

        placed, by_key, by_partition, delayed = results
        assert isinstance(placed, Placed) and isinstance(delayed, Postponed)
        assert by_key == Quarantined(QUARANTINE, placed.partition, 0, BAD_TEXT)
        assert isinstance(by_partition, Quarantined) and by_partition.partition == 2
        [kept] = [
            message
            for message in await stored(broker, TopicPartition(QUARANTINE, placed.partition))
            if message.key
        ]
        headers = dict(kept.headers)
        assert (kept.value, headers.pop("mine")) == (BAD, b"1")
        assert int(headers.pop("goqueue-quarantine-time") or b"") <= broker.clock.wall_ms()
        assert headers == {
            "goqueue-quarantine-original-topic": b"orders",
            "goqueue-quarantine-reason": BAD_TEXT.encode(),
        }
        told = await trace_of(
            broker, TraceMessage(source=TopicPartition(QUARANTINE, placed.partition), offset=kept.offset)
        )
        facts = told.spans[0].facts
        assert (facts["quarantined_from"], facts["quarantined_because"]) == ("orders", BAD_TEXT)

    walk(tmp_path, steps)


@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_batch_with_a_bad_message_is_refused_whole_and_names_all_of_them(
    tmp_path: Path, codec: int
) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker)
        with pytest.raises(SchemaMismatch) as refused:
            await send(broker, batch_of(GOOD, BAD, GOOD, BAD, sequence=0, codec=codec))

        assert refused.value.problems == {1: BAD_TEXT, 3: BAD_TEXT}
        assert await values(broker) == []
        assert await send(broker, batch_of(GOOD, sequence=0, codec=codec)) == 0

    walk(tmp_path, steps)


@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_batch_leaves_its_bad_messages_in_quarantine_and_keeps_its_offsets(
    tmp_path: Path, codec: int
) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        assert await send(broker, batch_of(BAD, GOOD, BAD, BAD, codec=codec)) == 0
        assert await send(broker, batch_of(b"2", codec=codec)) == 4

        assert await values(broker) == [(1, GOOD), (4, b"2")]
        assert await values(broker, QUARANTINE_0) == [(0, BAD), (1, BAD), (2, BAD)]
        counts = broker.counters.topics
        assert (counts[ORDERS].published, counts[QUARANTINE].published) == (2, 3)
        kept = dict((await stored(broker, QUARANTINE_0))[0].headers)
        assert kept["goqueue-quarantine-original-timestamp"] == b"1750000000000"

    walk(tmp_path, steps)


def test_a_batch_of_nothing_but_bad_messages_leaves_its_offsets_empty(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        assert await send(broker, batch_of(BAD, BAD, codec=GZIP)) == 0
        assert await values(broker) == []
        assert await send(broker, batch_of(GOOD)) == 2
        assert await values(broker) == [(2, GOOD)]

    walk(tmp_path, steps)


def test_a_producer_that_numbers_its_messages_goes_on_behind_bad_ones(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        batches = [
            batch_of(GOOD, BAD, sequence=0),
            batch_of(BAD, BAD, sequence=2),
            batch_of(BAD, b"2", sequence=4),
        ]
        offsets = [await send(broker, batch) for batch in batches]
        again = [
            await send(broker, batch_of(GOOD, BAD, sequence=0)),
            await send(broker, batch_of(BAD, BAD, sequence=2)),
            await send(broker, batch_of(BAD, b"2", sequence=4)),
        ]

        assert offsets == again == [0, 2, 4]
        assert await values(broker) == [(0, GOOD), (5, b"2")]
        assert len(await values(broker, QUARANTINE_0)) == 4
        with pytest.raises(OutOfSequence):
            await send(broker, batch_of(BAD, sequence=9))

    walk(tmp_path, steps)


def test_a_queue_goes_on_over_what_is_missing(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        consumer = await join(broker)
        for batch in (batch_of(BAD, GOOD, BAD, b"2"), batch_of(BAD, BAD), batch_of(b"3"), batch_of(BAD)):
            await send(broker, batch)

        taken = await take(broker, consumer)
        await ack(broker, taken)

        assert [(one.offset, one.value) for one in taken] == [(1, "1"), (3, "2"), (6, "3")]
        assert floor(broker) == 8
        assert await take(broker, consumer) == []

    walk(tmp_path, steps)


def test_times_are_found_around_what_is_missing(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        await send(broker, batch_of(BAD, BAD))
        await send(broker, batch_of(BAD, GOOD))
        assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=1_750_000_000_000))).offset == 3

    walk(tmp_path, steps)


def test_lanes_and_bad_messages_in_one_batch(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        high = [("goqueue-priority", b"high")]
        assert await send(broker, batch_of(GOOD, BAD, sequence=0, headers=high)) == 0

        [good] = await stored(broker)
        [bad] = await stored(broker, QUARANTINE_0)
        assert (good.lane.label, bad.lane.label) == ("high", "high")

    walk(tmp_path, steps)


def test_a_bad_message_that_was_to_come_later_is_kept_aside_now_and_once(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        for _ in range(2):
            batch = batch_of(GOOD, BAD, GOOD, sequence=0, headers=[("goqueue-delay-ms", b"3600000")])
            assert await send(broker, batch) == 0
        assert delay_stats(broker, CountDelayed()).pending == 2
        assert await values(broker) == []
        assert await values(broker, TopicPartition(QUARANTINE, 0)) == [(0, BAD)]
        assert await send(broker, batch_of(GOOD, sequence=3)) == 1, "at 0 the bad one is missing"

    walk(tmp_path, steps)


def test_a_bad_message_that_was_to_come_later_is_refused_where_none_is_kept(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "refuse")
        with pytest.raises(SchemaMismatch):
            await send(broker, batch_of(GOOD, BAD, sequence=0, headers=[("goqueue-delay-ms", b"500")]))
        assert await send(broker, batch_of(GOOD, sequence=0)) == 0

    walk(tmp_path, steps)


def test_a_bulk_write_with_a_bad_message_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "refuse")
        entries = encode_entry(ORDERS_0, 2, batch_of(GOOD)) + encode_entry(ORDERS_0, 2, batch_of(BAD))
        with pytest.raises(SchemaMismatch):
            await append_entries(broker, AppendEntries(entries=memoryview(bytearray(entries)), acks=Acks.ALL))
        assert await values(broker) == []

    walk(tmp_path, steps)


def test_a_bulk_write_keeps_bad_messages_aside_where_its_topic_does(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        for _ in range(2):
            batches = batch_of(GOOD, sequence=0), batch_of(BAD, GOOD, sequence=1)
            entries = b"".join(encode_entry(ORDERS_0, 2, batch) for batch in batches)
            first, second = await append_entries(
                broker, AppendEntries(entries=memoryview(bytearray(entries)), acks=Acks.ALL)
            )
            assert (first.base_offset, first.quarantined) == (0, {})
            assert (second.base_offset, second.quarantined) == (1, {0: BAD_TEXT})
        assert await values(broker) == [(0, GOOD), (2, GOOD)]
        assert await values(broker, TopicPartition(QUARANTINE, 0)) == [(0, BAD)]

    walk(tmp_path, steps)


def test_a_schedule_of_a_message_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        message = ScheduledMessage(value=BAD)
        hourly = CreateSchedule(topic=ORDERS, name="", cron="0 * * * *", time_zone="UTC", message=message)
        with pytest.raises(SchemaMismatch, match="not of type"):
            await create_schedule(broker, hourly)
        await create_schedule(broker, replace(hourly, message=ScheduledMessage(value=GOOD)))

    walk(tmp_path, steps)


def test_quarantine_grows_with_its_topic_and_has_none_of_its_own(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        await send(broker, batch_of(BAD))
        await add_partitions(broker, AddPartitions(name=ORDERS, total=2))
        await send(broker, batch_of(BAD), TopicPartition(ORDERS, 1))
        assert len(await values(broker, TopicPartition(QUARANTINE, 1))) == 1

        changes = [
            SettingChange("goqueue.schema.validation", "full"),
            SettingChange("goqueue.schema.on.invalid", "quarantine"),
        ]
        await alter_settings(broker, AlterSettings(name=QUARANTINE, changes=changes))
        with pytest.raises(SchemaMismatch):
            await send(broker, batch_of(BAD), QUARANTINE_0)

    walk(tmp_path, steps)


def test_a_name_that_leaves_no_room_for_a_quarantine_refuses(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        name = TopicName("x" * 240)
        settings = {"goqueue.schema.validation": "id", "goqueue.schema.on.invalid": "quarantine"}
        await create_topic(broker, CreateTopic(name=name, partitions=1, settings=settings))
        [refused] = await publish(broker, Publish(topic=name, messages=[Message(GOOD)]))
        assert isinstance(refused, SchemaMismatch)

    walk(tmp_path, steps)


def test_bad_messages_that_quarantine_cannot_take_do_not_spoil_the_rest(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker, "quarantine")
        await create_topic(
            broker, CreateTopic(name=QUARANTINE, partitions=1, settings={"max.message.bytes": "1"})
        )
        bad, good = await put(broker, Message(BAD), Message(GOOD))
        assert isinstance(bad, MessageTooLarge)
        assert good == Placed(0, 0)

    walk(tmp_path, steps)


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker)
        for name in ("validation", "subject.strategy", "on.invalid"):
            with pytest.raises(InvalidSetting, match="cannot be 'maybe'"):
                await alter_settings(
                    broker,
                    AlterSettings(name=ORDERS, changes=[SettingChange(f"goqueue.schema.{name}", "maybe")]),
                )

    walk(tmp_path, steps)


@pytest.mark.parametrize("seed", range(12))
def test_no_crash_loses_or_doubles_a_message_in_quarantine(seed: int) -> None:
    """A producer that numbers its messages sends each batch until it hears that it is stored."""
    lives = Lives(seed)
    lives.live(lambda broker: orders(broker, "quarantine"))
    batches = [(number, batch_of(GOOD, BAD, sequence=number * 2)) for number in range(6)]
    acknowledged = 0

    async def produce(broker: Broker) -> None:
        nonlocal acknowledged
        for number, batch in batches[acknowledged:]:
            assert await send(broker, memoryview(bytearray(batch))) == number * 2
            acknowledged = number + 1

    for cut_after in (3, 5, 8, 4, 7, 6, 10_000):
        try:
            lives.live(produce, cut_after=cut_after + seed)
        except PowerLost:
            continue

    async def look(broker: Broker) -> tuple[list[tuple[int, bytes | None]], list[tuple[int, bytes | None]]]:
        return await values(broker), await values(broker, QUARANTINE_0)

    good, bad = lives.live(look)
    assert good == [(number * 2, GOOD) for number in range(6)]
    assert bad == [(number, BAD) for number in range(6)]


class Sluggish(SystemClock):
    """The clock of a machine on which each look at the time takes long, or much work."""

    def __init__(self, *, cpu_ms: int) -> None:
        self._now_ns = self._cpu_ns = 0
        self._step_ns = cpu_ms * 1_000_000

    def monotonic_ns(self) -> int:
        self._now_ns += 50_000_000
        return self._now_ns

    def cpu_ns(self) -> int:
        self._cpu_ns += self._step_ns
        return self._cpu_ns


@pytest.mark.parametrize(("cpu_ms", "is_trusted"), [(1, True), (50, False)])
def test_a_schema_that_takes_long_is_checked_elsewhere_and_not_because_the_machine_is_busy(
    tmp_path: Path, cpu_ms: int, is_trusted: bool
) -> None:
    async def steps(broker: Broker) -> None:
        await orders(broker)
        await put(broker, Message(GOOD))
        broker.clock = Sluggish(cpu_ms=cpu_ms)

        for _ in range(5):
            assert isinstance((await put(broker, Message(GOOD)))[0], Placed)

        assert (not broker.schemas.checkers.slow) is is_trusted
        assert (broker.counters.topic(ORDERS).checked_elsewhere == 0) is is_trusted

    walk(tmp_path, steps)
