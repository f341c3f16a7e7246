"""Whose time a message has, and which times a topic takes: message.timestamp.type and its bounds."""

import asyncio
import time
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    Producer,
)
from confluent_kafka import TopicPartition as Place
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import ApiKey
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient, record_batch
from tests.doors.kafka.test_produce import ask, end_offset

HOUR_MS = 3_600_000
PATIENCE_S = 30
CODECS = [0, 1, 2, 3, 4]
OLD_MS = 1_000_000_000_000


def now_ms() -> int:
    return int(time.time() * 1_000)


def read(door: DoorThread, topic: str, count: int) -> list[Any]:
    consumer: Any = Consumer({"bootstrap.servers": door.address, "group.id": "readers"})
    try:
        consumer.assign([Place(topic, 0, OFFSET_BEGINNING)])
        messages: list[Any] = []
        while len(messages) < count:
            more = consumer.consume(count - len(messages), timeout=PATIENCE_S)
            assert more, f"only {len(messages)} of {count} came"
            messages += more
        return messages
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_a_topic_gives_messages_the_time_at_which_they_are_stored(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, codec: int
) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"}).name
    begun_ms = now_ms()

    told = ask(raw, topic, record_batch(b"a" * 200, b"b" * 200, codec=codec, timestamp_ms=OLD_MS))

    messages = read(door, topic, 2)
    append_ms = int(told.log_append_time.timestamp() * 1_000 + 0.5)
    assert begun_ms <= append_ms <= now_ms()
    assert [message.timestamp() for message in messages] == [(TIMESTAMP_LOG_APPEND_TIME, append_ms)] * 2
    assert [message.value()[:1] for message in messages] == [b"a", b"b"]


def test_aiokafka_reads_the_append_time(door: DoorThread, raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"}).name
    begun_ms = now_ms()
    ask(raw, topic, record_batch(b"a", b"b", timestamp_ms=OLD_MS))

    async def read_one() -> Any:
        consumer = AIOKafkaConsumer(bootstrap_servers=door.address)
        await consumer.start()
        try:
            consumer.assign([AioPartition(topic, 0)])
            await consumer.seek_to_beginning()
            return await asyncio.wait_for(consumer.getone(), PATIENCE_S)
        finally:
            await consumer.stop()

    message = asyncio.run(read_one())

    assert message.timestamp_type == 1
    assert begun_ms <= message.timestamp <= now_ms()


def test_offsets_are_found_by_append_time(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"}).name
    begun_ms = now_ms()
    ask(raw, topic, record_batch(b"a", timestamp_ms=now_ms() + HOUR_MS))

    def found(timestamp_ms: int) -> int:
        reply = raw.ask(ApiKey.LIST_OFFSETS, 4, **requests.list_offsets(topic, timestamp_ms))
        return int(reply.topics[0].partitions[0].offset)

    assert found(begun_ms) == 0
    assert found(now_ms() + HOUR_MS // 2) == -1


def test_topics_that_keep_the_producers_times_tell_no_append_time(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name

    told = ask(raw, topic, record_batch(b"a", timestamp_ms=OLD_MS))

    assert told.log_append_time is None
    assert read(door, topic, 1)[0].timestamp() == (TIMESTAMP_CREATE_TIME, OLD_MS)


def test_an_idempotent_producer_is_told_where_its_messages_are_when_they_come_again(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"}).name
    batch = record_batch(b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=0)

    first, again = ask(raw, topic, batch), ask(raw, topic, batch)

    assert (first.error_code, again.error_code) == (ErrorCode.none, ErrorCode.none)
    assert (first.base_offset, again.base_offset) == (0, 0)
    assert end_offset(raw, topic) == 2


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("name", "moved_ms"),
    [("message.timestamp.before.max.ms", -2 * HOUR_MS), ("message.timestamp.after.max.ms", 2 * HOUR_MS)],
)
def test_a_message_out_of_time_is_refused_by_its_place(
    raw: RawClient, new_topic: NewTopic, name: str, moved_ms: int, codec: int
) -> None:
    topic = new_topic(**{name: str(HOUR_MS)}).name
    assert (
        ask(raw, topic, record_batch(b"a", codec=codec, timestamp_ms=now_ms())).error_code is ErrorCode.none
    )

    refused = ask(
        raw, topic, record_batch(b"a" * 99, b"b" * 99, codec=codec, timestamp_ms=now_ms() + moved_ms)
    )

    assert refused.error_code is ErrorCode.invalid_timestamp
    assert [error.batch_index for error in refused.record_errors] == [0, 1]
    assert name in refused.record_errors[0].batch_index_error_message
    assert end_offset(raw, topic) == 1


def test_only_the_message_that_is_out_of_time_is_named(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(**{"message.timestamp.after.max.ms": "0"}).name
    # Each record is a millisecond later than the one before: the last of many lie ahead.
    batch = record_batch(*[b"x"] * 3_600, timestamp_ms=now_ms() - 1_800)

    refused = ask(raw, topic, batch)

    indexes = [error.batch_index for error in refused.record_errors]
    assert refused.error_code is ErrorCode.invalid_timestamp
    assert 1_800 <= indexes[0] < 3_600
    assert indexes == list(range(indexes[0], min(indexes[0] + 1_000, 3_600)))


@pytest.mark.parametrize("codec", [0, 4])
def test_a_large_batch_out_of_time_is_refused_too(raw: RawClient, new_topic: NewTopic, codec: int) -> None:
    topic = new_topic(**{"message.timestamp.before.max.ms": str(HOUR_MS)}).name
    values = [b"value %d " % number * 100 for number in range(5_000)]

    refused = ask(raw, topic, record_batch(*values, codec=codec, timestamp_ms=OLD_MS))
    taken = ask(raw, topic, record_batch(*values, codec=codec, timestamp_ms=now_ms()))

    assert (refused.error_code, len(refused.record_errors)) == (ErrorCode.invalid_timestamp, 1_000)
    assert (taken.error_code, taken.base_offset) == (ErrorCode.none, 0)


def test_a_message_without_a_time_and_one_that_gets_the_brokers_are_taken(
    raw: RawClient, new_topic: NewTopic
) -> None:
    bounds = {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"}
    kept = new_topic(**bounds).name
    stamped = new_topic(**bounds, **{"message.timestamp.type": "LogAppendTime"}).name

    assert ask(raw, kept, record_batch(b"a", timestamp_ms=-1)).error_code is ErrorCode.none
    assert ask(raw, stamped, record_batch(b"a", timestamp_ms=OLD_MS)).error_code is ErrorCode.none


def test_a_producer_hears_which_of_its_messages_are_out_of_time(
    door: DoorThread, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"message.timestamp.before.max.ms": str(HOUR_MS)}).name
    errors: list[Any] = []
    producer: Any = Producer({"bootstrap.servers": door.address})
    for at_ms in (OLD_MS, 0):
        producer.produce(topic, b"v", timestamp=at_ms, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(PATIENCE_S) == 0

    assert [error and error.name() for error in errors] == ["INVALID_TIMESTAMP", None]
