"""compression.type: whatever producers send, a topic's batches have the compression that the topic says."""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Producer
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import ApiKey
from goqueue.records.layout import ATTRIBUTES_POSITION, BatchHeader, read_header, seal
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RECENT_MS, RawClient, record_batch
from tests.doors.kafka.test_message_times import PATIENCE_S, now_ms, read
from tests.doors.kafka.test_produce import ask, end_offset

TYPES = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
VALUES = [b"value %d " % number * 20 for number in range(100)]


def stored(raw: RawClient, topic: str) -> list[tuple[BatchHeader, bytes]]:
    """The batches of a topic as they lie in the log."""
    reply = raw.ask(ApiKey.FETCH, 11, **requests.fetch(topic, 0))
    data = bytes(reply.responses[0].partitions[0].records or b"")
    batches = []
    while data:
        header = read_header(data)
        batches.append((header, data[: header.size_bytes]))
        data = data[header.size_bytes :]
    return batches


def codecs(raw: RawClient, topic: str) -> list[int]:
    return [header.codec for header, _ in stored(raw, topic)]


async def read_by_aiokafka(door: DoorThread, topic: str, count: int) -> list[Any]:
    consumer = AIOKafkaConsumer(bootstrap_servers=door.address)
    await consumer.start()
    try:
        consumer.assign([AioPartition(topic, 0)])
        await consumer.seek_to_beginning()
        return [await asyncio.wait_for(consumer.getone(), PATIENCE_S) for _ in range(count)]
    finally:
        await consumer.stop()


@pytest.mark.parametrize("sent", TYPES.values())
@pytest.mark.parametrize("name", TYPES)
def test_batches_are_stored_as_the_topic_compresses_them(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, name: str, sent: int
) -> None:
    topic = new_topic(**{"compression.type": name}).name

    told = ask(raw, topic, record_batch(*VALUES, codec=sent, headers=[("h", b"1")]))

    assert (told.error_code, told.base_offset) == (ErrorCode.none, 0)
    assert codecs(raw, topic) == [TYPES[name]]
    messages = read(door, topic, len(VALUES))
    assert [message.value() for message in messages] == VALUES
    assert [message.offset() for message in messages] == list(range(len(VALUES)))
    assert [message.timestamp()[1] for message in messages] == [RECENT_MS + at for at in range(len(VALUES))]
    assert messages[0].headers() == [("h", b"1")]
    assert [m.value for m in asyncio.run(read_by_aiokafka(door, topic, len(VALUES)))] == VALUES


@pytest.mark.parametrize("sent", TYPES.values())
def test_topics_that_say_nothing_store_batches_as_they_came(
    raw: RawClient, new_topic: NewTopic, sent: int
) -> None:
    topic = new_topic().name
    batch = record_batch(*VALUES, codec=sent)

    ask(raw, topic, batch)

    [(_, body)] = stored(raw, topic)
    assert body[ATTRIBUTES_POSITION:] == batch[ATTRIBUTES_POSITION:]


def test_producer_and_transaction_of_a_batch_stay(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(**{"compression.type": "zstd"}).name
    batches = [
        record_batch(*VALUES, producer_id=3, producer_epoch=1, base_sequence=at) for at in (0, len(VALUES))
    ]

    told = [ask(raw, topic, batch).base_offset for batch in (*batches, *batches)]

    assert told == [0, 100, 0, 100]
    assert end_offset(raw, topic) == 200
    kept = [(h.producer_id, h.producer_epoch, h.base_sequence, h.codec) for h, _ in stored(raw, topic)]
    assert kept == [(3, 1, 0, 4), (3, 1, 100, 4)]


@pytest.mark.parametrize("name", TYPES)
def test_a_transaction_of_a_real_producer_counts_whole_or_not_at_all(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, name: str
) -> None:
    topic = new_topic(**{"compression.type": name}).name
    producer: Any = Producer(
        {"bootstrap.servers": door.address, "transactional.id": f"writer-{name}", "compression.type": "lz4"}
    )
    producer.init_transactions(PATIENCE_S)
    for is_kept in (False, True):
        producer.begin_transaction()
        for value in VALUES:
            producer.produce(topic, b"kept " + value if is_kept else value)
        assert producer.flush(PATIENCE_S) == 0
        (producer.commit_transaction if is_kept else producer.abort_transaction)(PATIENCE_S)

    assert [message.value() for message in read(door, topic, 100)] == [b"kept " + value for value in VALUES]
    assert {h.codec for h, _ in stored(raw, topic) if not h.attributes & 0x20} == {TYPES[name]}


def test_an_idempotent_producer_that_sends_ahead_keeps_its_order(
    door: DoorThread, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"compression.type": "gzip"}).name
    values = [b"%d " % number * 20 for number in range(5_000)]
    errors: list[Any] = []
    producer: Any = Producer(
        {"bootstrap.servers": door.address, "enable.idempotence": True, "batch.num.messages": 50}
    )
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0

    assert errors == [None] * len(values)
    assert [message.value() for message in read(door, topic, len(values))] == values


def test_what_messages_wish_for_is_heeded_before_they_are_compressed(
    raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"compression.type": "zstd"}).name

    later = record_batch(*VALUES, headers=[("goqueue-delay-ms", b"3600000")])
    unknown = ask(raw, topic, record_batch(*VALUES, headers=[("goqueue-priority", b"urgent")]))
    told = ask(raw, topic, later)

    assert unknown.error_code is ErrorCode.invalid_record
    assert told.error_code is ErrorCode.none
    assert end_offset(raw, topic) == 0


def test_a_batch_that_only_grows_stays_as_it_is(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(**{"compression.type": "gzip"}).name

    ask(raw, topic, record_batch(b"x"))

    assert codecs(raw, topic) == [0]


def test_what_is_too_large_once_it_is_opened_is_refused(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(**{"compression.type": "uncompressed", "max.message.bytes": "10000"}).name

    refused = ask(raw, topic, record_batch(b"x" * 20_000, codec=4))

    assert refused.error_code is ErrorCode.message_too_large
    assert end_offset(raw, topic) == 0


def test_a_batch_that_holds_no_records_is_refused(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(**{"compression.type": "uncompressed"}).name
    whole = bytearray(record_batch(*VALUES, codec=4))
    whole[80:90] = bytes(10)
    seal(memoryview(whole))

    refused = ask(raw, topic, bytes(whole))

    assert refused.error_code is ErrorCode.invalid_record
    assert end_offset(raw, topic) == 0


def test_the_append_time_is_that_of_what_is_stored(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    settings = {"compression.type": "snappy", "message.timestamp.type": "LogAppendTime"}
    topic = new_topic(**settings).name
    begun_ms = now_ms()

    ask(raw, topic, record_batch(*VALUES, codec=1))

    assert codecs(raw, topic) == [2]
    assert {begun_ms <= message.timestamp()[1] <= now_ms() for message in read(door, topic, 100)} == {True}


def test_a_topic_that_is_changed_keeps_to_it_from_the_next_batch_on(
    raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name

    for name in ("producer", "lz4", "uncompressed"):
        change = requests.alter_configs(topic, "compression.type", name)
        [changed] = raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **change).responses
        assert changed.error_code is ErrorCode.none
        ask(raw, topic, record_batch(*VALUES, codec=4))

    assert codecs(raw, topic) == [4, 3, 0]
