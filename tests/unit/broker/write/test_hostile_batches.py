"""Batches that are right by their checksum and cannot be opened: wherever one is met, the walk goes on."""

import asyncio
from functools import partial

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.queue.settle import settle
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import alter_settings, create_topic, delete_records
from goqueue.broker.write.append import append
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import Append, FindOffset, ReadMessages, Spot
from goqueue.model.delivery import Action, Settle
from goqueue.model.errors import Corrupt, InvalidBatch, InvalidRecord
from goqueue.model.groups import Sharing
from goqueue.model.messages import Acks, Lane
from goqueue.model.topics import AlterSettings, CreateTopic, DeleteRecords, SettingChange
from goqueue.records.layout import Codec, read_header
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import (
    DEAD_ORDERS,
    ack,
    floor,
    join,
    orders,
    put,
    stored,
    take,
    values,
)
from tests.unit.broker.running import ORDERS_0
from tests.unit.records.hostile import batch_of, bomb, record


async def send(broker: Broker, body: memoryview) -> None:
    outcome = append(broker, Append(target=ORDERS_0, batches=body, acks=Acks.ALL))
    if outcome.committed is not None:
        await outcome.committed


async def keep(broker: Broker, body: memoryview) -> None:
    """Store a batch that the door would refuse: as one that was taken in before it looked."""
    partition = broker.partition(ORDERS_0)
    partition.append([CheckedBatch(read_header(body), body, Lane.NORMAL)])
    committed = partition.committed(partition.log.end_offset)
    if committed is not None:
        await committed


@pytest.mark.parametrize(
    "records", [b"no records", record(offset_delta=1), record(value_length=7), record() + record()]
)
def test_a_batch_that_does_not_begin_with_a_record_is_refused_at_the_door(records: bytes) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)

        with pytest.raises(InvalidBatch):
            await send(broker, batch_of(records))

        assert await stored(broker, ORDERS_0.topic) == []

    Lives(9).live(story)


def test_a_topic_that_checks_all_records_finds_a_bad_one_behind_good_ones() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await send(broker, batch_of(record() + b"no record", count=2))
        change = SettingChange("goqueue.inspect.records", "true")
        await alter_settings(broker, AlterSettings(name=ORDERS_0.topic, changes=[change]))

        with pytest.raises(InvalidBatch):
            await send(broker, batch_of(record() + b"no record", count=2))

    Lives(10).live(story)


def test_a_batch_that_nobody_can_open_does_not_hold_up_what_is_behind_it() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await send(broker, batch_of(bomb(Codec.GZIP), codec=Codec.GZIP))
        await keep(broker, batch_of(b"no records", count=3))
        await put(broker, "good")
        ann = await join(broker)

        taken = await take(broker, ann)

        assert values(taken) == ["good"]
        await ack(broker, taken)
        assert floor(broker) == 5

    lives = Lives(1)
    lives.live(story, is_killed=True)
    assert lives.live(still_at_5) == 5


async def still_at_5(broker: Broker) -> int:
    ann = await join(broker)
    assert await take(broker, ann) == []
    return floor(broker)


def test_a_large_batch_that_nobody_can_open_is_tried_once_and_passed_in_few_polls() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await send(broker, batch_of(bomb(Codec.GZIP), count=20_000, codec=Codec.GZIP))
        await put(broker, "good")
        ann = await join(broker, sharing=Sharing.SHARED)

        assert values(await take(broker, ann, 1, wait_ms=1000)) == ["good"]

    Lives(2).live(story)


async def take_turns(count: int) -> None:
    """Let others go on, so many steps of theirs."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_what_was_passed_over_stays_so_when_the_consumer_gives_up_meanwhile() -> None:
    async def story(broker: Broker, turns: int) -> int:
        await orders(broker)
        for _ in range(20):
            await keep(broker, batch_of(b"no records"))
        await put(broker, "first", "second")
        ann = await join(broker)
        polling = asyncio.ensure_future(take(broker, ann, wait_ms=1000))
        await take_turns(turns)
        polling.cancel()
        await asyncio.wait([polling])
        passed = floor(broker)
        if passed < 20:
            assert values(await take(broker, ann)) == ["first", "second"]
        return passed

    # How long the disk takes is a matter of chance: by one seed alone nobody may be caught in the middle.
    lives = [(seed, turns) for seed in range(13, 17) for turns in range(5, 25, 5)]
    passed = [Lives(seed).live(partial(story, turns=turns)) for seed, turns in lives]

    assert any(8 <= count < 20 for count in passed), "some gave up in the middle"


def test_a_read_by_offset_names_the_batch_and_the_way_past_it() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await send(broker, batch_of(bomb(Codec.GZIP), count=2, codec=Codec.GZIP))
        await put(broker, "good")

        with pytest.raises(Corrupt, match="go on at offset 2"):
            await read_messages(broker, ReadMessages(source=ORDERS_0))

    Lives(3).live(story)


def test_a_look_up_by_time_passes_over_it() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await keep(broker, batch_of(b"no records"))
        await put(broker, "good")

        assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=0))).offset == 1

    Lives(4).live(story)


def test_the_newest_time_is_found_where_a_logs_start_lies_in_it() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await keep(broker, batch_of(b"no records", count=3))
        await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=2))

        assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=Spot.MAX_TIMESTAMP))).offset == -1

    Lives(5).live(story)


@pytest.mark.parametrize(
    ("setting", "value"), [("goqueue.inspect.compressed", "true"), ("goqueue.schema.validation", "full")]
)
def test_a_topic_that_opens_batches_at_the_door_refuses_it(setting: str, value: str) -> None:
    async def story(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS_0.topic, partitions=1, settings={setting: value}))

        with pytest.raises(InvalidRecord, match=r"cannot be (opened|decompressed)"):
            await send(broker, batch_of(bomb(Codec.GZIP), codec=Codec.GZIP))

        assert await stored(broker, ORDERS_0.topic) == []

    Lives(6).live(story)


@pytest.mark.parametrize("delta_ms", [2**62, -(2**62), 2**44])
def test_a_message_of_an_impossible_time_is_handed_out_and_rejected_like_any_other(delta_ms: int) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await send(broker, batch_of(record(timestamp_delta=delta_ms, value=b"odd")))
        ann = await join(broker)
        taken = await take(broker, ann)
        assert values(taken) == ["odd"]

        await settle(broker, Settle(action=Action.REJECT, receipts=[taken[0].receipt]))
        await asyncio.sleep(60)

        [dead] = await stored(broker, DEAD_ORDERS)
        assert dead.value == b"odd"

    Lives(7).live(story)
