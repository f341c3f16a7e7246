"""A batch that was stored before the door looked inside: Kafka's clients meet it, and get past it.

The broker hands batches out as they are, so it is the client that fails. What it says differs; the way
on is the same for all: the first offset behind the batch, or records deleted up to there.
"""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition
from kio.schema.errors import ErrorCode

from goqueue.broker.write.publish import publish
from goqueue.edge.kafka.apis import ApiKey
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import Publish
from goqueue.model.ids import TopicPartition as Place
from goqueue.model.messages import Lane, Message
from goqueue.model.topics import TopicView
from goqueue.records.layout import read_header
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient
from tests.unit.records.hostile import batch_of, record

BEHIND = 4
"""The first offset behind the bad batch."""
BAD = {
    "garbage": batch_of(b"no records at all, whatever", count=3),
    "a count too high": batch_of(record() + record(offset_delta=1), count=3),
    "a lying length": batch_of(record(value_length=2**30), count=3),
}


@pytest.fixture(params=BAD)
def spoilt(request: pytest.FixtureRequest, door: DoorThread, new_topic: NewTopic) -> TopicView:
    """A topic with a good message, a bad batch of three, and a good message at offset 4."""
    topic = new_topic()

    async def fill() -> None:
        await publish(door.broker, Publish(topic=topic.name, messages=[Message(b"before")]))
        body = memoryview(bytearray(BAD[request.param]))
        partition = door.broker.partition(Place(topic.name, 0))
        partition.append([CheckedBatch(read_header(body), body, Lane.NORMAL)])
        await publish(door.broker, Publish(topic=topic.name, messages=[Message(b"behind")]))

    door.run(fill())
    return topic


def test_such_a_batch_is_refused_at_the_door_today(raw: RawClient, new_topic: NewTopic) -> None:
    reply = raw.ask(ApiKey.PRODUCE, 9, **requests.produce(new_topic().name, bytes(BAD["garbage"])))

    [topic] = reply.responses
    [partition] = topic.partition_responses
    assert partition.error_code is ErrorCode.invalid_record
    assert "record 0 of a batch" in partition.error_message


def test_confluent_kafka_goes_on_behind_it(door: DoorThread, spoilt: TopicView) -> None:
    consumer = Consumer({"bootstrap.servers": door.address, "group.id": "c", "enable.auto.commit": False})
    consumer.assign([TopicPartition(spoilt.name, 0, 0)])
    try:
        assert _next_value(consumer) == b"before"

        consumer.seek(TopicPartition(spoilt.name, 0, BEHIND))

        assert _next_value(consumer) == b"behind"
    finally:
        consumer.close()


def _next_value(consumer: Consumer) -> bytes:
    """The next message; errors that came before it are passed over."""
    for _ in range(100):
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            return message.value() or b""
    raise AssertionError("nothing came")


def test_confluent_kafka_goes_on_once_records_are_deleted_up_to_there(
    door: DoorThread, spoilt: TopicView
) -> None:
    admin = AdminClient({"bootstrap.servers": door.address})
    [deleted] = admin.delete_records([TopicPartition(spoilt.name, 0, BEHIND)]).values()
    assert deleted.result().low_watermark == BEHIND

    consumer = Consumer({"bootstrap.servers": door.address, "group.id": "d", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(spoilt.name, 0, 0)])
    try:
        assert _next_value(consumer) == b"behind"
    finally:
        consumer.close()


def test_aiokafka_goes_on_behind_it(door: DoorThread, spoilt: TopicView) -> None:
    async def story() -> bytes:
        place = AioPartition(spoilt.name, 0)
        consumer = AIOKafkaConsumer(bootstrap_servers=door.address, enable_auto_commit=False)
        await consumer.start()
        try:
            consumer.assign([place])
            consumer.seek(place, 0)
            assert (await consumer.getone()).value == b"before"
            consumer.seek(place, BEHIND)
            return bytes((await asyncio.wait_for(consumer.getone(), 20)).value)
        finally:
            await consumer.stop()

    assert asyncio.run(story()) == b"behind"


def test_kafka_python_goes_on_behind_it(door: DoorThread, spoilt: TopicView) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=door.address, enable_auto_commit=False, consumer_timeout_ms=9_000
    )
    place = PythonPartition(spoilt.name, 0)
    consumer.assign([place])
    try:
        consumer.seek(place, 0)
        assert next(consumer).value == b"before"
        consumer.seek(place, BEHIND)
        assert next(consumer).value == b"behind"
    finally:
        consumer.close()
