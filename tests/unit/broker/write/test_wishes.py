"""Headers ask for a lane or a delay, whichever verb a message comes through."""

from collections.abc import Awaitable, Callable

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import delay_stats
from goqueue.broker.producers import init_producer
from goqueue.broker.sinks.verbs import commit_epoch, stage, take_generation
from goqueue.broker.write.append import append
from goqueue.broker.write.append_entries import append_entries
from goqueue.broker.write.publish import publish
from goqueue.broker.write.publish_once import publish_once
from goqueue.model.commands import Append, AppendEntries, Placed, Publish
from goqueue.model.delays import CountDelayed, Postponed
from goqueue.model.errors import InvalidRecord
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Headers, Lane, Message
from goqueue.model.sinks import CommitEpoch, StageBatches, TakeGeneration
from goqueue.model.transaction_commands import PublishOnce, TakeProducerId
from goqueue.model.transactions import ProducerEpoch
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from tests.unit.broker.delays.delayed_world import ORDERS, World, shown, sleep_ms

SOURCE = TopicPartition(ORDERS, 0)
LATER: Headers = (("goqueue-delay-ms", b"500"),)
HIGH: Headers = (("goqueue-priority", b"high"),)


def body_of(message: Message) -> memoryview:
    [(body, _)] = encode([message], now_ms=1)
    return memoryview(bytearray(body))


async def by_append(broker: Broker, message: Message) -> None:
    appended = append(broker, Append(SOURCE, body_of(message), Acks.ALL))
    if appended.committed is not None:
        await appended.committed


async def by_publish(broker: Broker, message: Message) -> None:
    [result] = await publish(broker, Publish(topic=ORDERS, messages=[message]))
    if isinstance(result, InvalidRecord):
        raise result
    assert isinstance(result, (Placed, Postponed))
    assert result.lane is (Lane.HIGH if message.headers == HIGH else Lane.NORMAL)


async def by_entries(broker: Broker, message: Message) -> None:
    entry = encode_entry(SOURCE, Lane.NORMAL, body_of(message))
    [placed] = await append_entries(
        broker, AppendEntries(entries=memoryview(bytearray(entry)), acks=Acks.ALL)
    )
    assert [later.place for later in placed.later] == ([0] if message.headers == LATER else [])


async def by_publish_once(broker: Broker, message: Message) -> None:
    producer = ProducerEpoch(await init_producer(broker, TakeProducerId()), 0)
    await publish_once(broker, PublishOnce(topic=ORDERS, message=message, producer=producer, sequence=0))


async def by_sink(broker: Broker, message: Message) -> None:
    generation = (await take_generation(broker, TakeGeneration(sink="sink"))).generation
    entry = memoryview(bytearray(encode_entry(SOURCE, Lane.NORMAL, body_of(message))))
    staged = StageBatches(sink="sink", generation=generation, epoch=1, stage_id="one", entries=entry)
    await stage(broker, staged)
    await commit_epoch(broker, CommitEpoch(sink="sink", generation=generation, epoch=1, stage_ids=["one"]))


WAYS = [by_append, by_publish, by_entries, by_publish_once, by_sink]
Way = Callable[[Broker, Message], Awaitable[None]]


@pytest.mark.parametrize("way", [way for way in WAYS if way is not by_sink])
def test_a_message_whose_header_says_so_comes_later_and_once(way: Way) -> None:
    async def life(broker: Broker) -> None:
        await way(broker, Message(b"x", None, LATER, partition=0))
        assert (await shown(broker), delay_stats(broker, CountDelayed()).pending) == ([], 1)
        await sleep_ms(600)
        [stored] = await shown(broker)
        names = [name for name, _ in stored.headers]
        assert stored.value == b"x"
        assert "goqueue-deliver-at" in names and "goqueue-delay-ms" not in names

    World().run(life)


def test_an_epoch_comes_as_a_whole_whatever_its_rows_wish_for() -> None:
    async def life(broker: Broker) -> None:
        await by_sink(broker, Message(b"x", None, LATER))
        assert [stored.value for stored in await shown(broker)] == [b"x"]
        assert delay_stats(broker, CountDelayed()).pending == 0

    World().run(life)


@pytest.mark.parametrize("way", WAYS)
def test_a_message_whose_header_says_so_is_in_that_lane(way: Way) -> None:
    async def life(broker: Broker) -> None:
        await way(broker, Message(b"x", None, HIGH, partition=0))
        [stored] = await shown(broker)
        assert stored.lane is Lane.HIGH

    World().run(life)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["goqueue-delay-ms", "goqueue-deliver-at", "goqueue-priority"])
def test_a_wish_that_nobody_understands_is_refused(way: Way, name: str) -> None:
    async def life(broker: Broker) -> None:
        with pytest.raises(InvalidRecord, match=name):
            await way(broker, Message(b"x", None, ((name, b"soon"),), partition=0))
        assert (await shown(broker), delay_stats(broker, CountDelayed()).pending) == ([], 0)

    World().run(life)


def test_what_is_asked_for_otherwise_goes_before_the_headers() -> None:
    async def life(broker: Broker) -> None:
        due_ms = broker.clock.wall_ms() + 1_000
        message = Message(b"x", None, (*LATER, *HIGH), Lane.LOW, 0, due_ms=due_ms)
        [postponed] = await publish(broker, Publish(topic=ORDERS, messages=[message]))
        assert postponed == Postponed(0, 0, due_ms, Lane.LOW)

    World().run(life)


def test_a_bulk_write_tells_which_messages_come_later() -> None:
    async def life(broker: Broker) -> None:
        messages = [Message(b"%d" % at, None, LATER if at in (0, 2) else ()) for at in range(4)]
        [(body, _)] = encode(messages, now_ms=1)
        entry = encode_entry(SOURCE, Lane.NORMAL, body)
        [placed] = await append_entries(
            broker, AppendEntries(entries=memoryview(bytearray(entry)), acks=Acks.ALL)
        )
        assert [(later.place, later.number) for later in placed.later] == [(0, 0), (2, 1)]
        assert placed.base_offset == 0
        assert [stored.value for stored in await shown(broker)] == [b"1", b"3"]

    World().run(life)
