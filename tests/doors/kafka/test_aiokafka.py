"""aiokafka: the asyncio client."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.doors.kafka import conftest
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RECENT_MS

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
PATIENCE_S = 30


def with_producer(
    door: DoorThread, work: Callable[[AIOKafkaProducer], Awaitable[None]], **settings: object
) -> None:
    async def run() -> None:
        async with asyncio.timeout(PATIENCE_S):
            producer = AIOKafkaProducer(bootstrap_servers=door.address, **settings)
            await producer.start()
            try:
                await work(producer)
            finally:
                await producer.stop()

    asyncio.run(run())


def with_consumer(door: DoorThread, topic: str, work: Callable[[AIOKafkaConsumer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(PATIENCE_S):
            consumer = AIOKafkaConsumer(
                topic, bootstrap_servers=door.address, auto_offset_reset="earliest"
            )  # fmt: skip
            await consumer.start()
            try:
                await work(consumer)
            finally:
                await consumer.stop()

    asyncio.run(run())


@pytest.mark.parametrize("codec", CODECS)
def test_messages_of_every_codec_come_back_as_they_were(
    door: DoorThread, new_topic: conftest.NewTopic, codec: str | None
) -> None:
    topic = new_topic().name
    values = [b"value %d " % number * 20 for number in range(50)] + [None]

    async def publish(producer: AIOKafkaProducer) -> None:
        for value in values:
            await producer.send(topic, value, key=b"key", headers=[("h", b"1")])
        await producer.flush()

    async def read(consumer: AIOKafkaConsumer) -> None:
        records = [await consumer.getone() for _ in values]
        assert [record.value for record in records] == values
        assert {(record.key, record.headers) for record in records} == {(b"key", (("h", b"1"),))}

    with_producer(door, publish, compression_type=codec)
    with_consumer(door, topic, read)


@pytest.mark.parametrize(
    "settings", [{"acks": 0}, {"acks": 1}, {"acks": "all"}, {"enable_idempotence": True}]
)
def test_messages_are_published_with_every_acks(
    door: DoorThread, new_topic: conftest.NewTopic, settings: dict[str, object]
) -> None:
    topic = new_topic().name

    async def publish(producer: AIOKafkaProducer) -> None:
        await producer.send_and_wait(topic, b"a")
        await producer.send_and_wait(topic, b"b")

    async def read(consumer: AIOKafkaConsumer) -> None:
        assert [(await consumer.getone()).value for _ in range(2)] == [b"a", b"b"]

    with_producer(door, publish, **settings)
    with_consumer(door, topic, read)


def test_offsets_are_found_by_time_and_at_the_ends(door: DoorThread, new_topic: conftest.NewTopic) -> None:
    topic = new_topic().name
    place = TopicPartition(topic, 0)

    async def publish(producer: AIOKafkaProducer) -> None:
        for number in range(5):
            await producer.send_and_wait(topic, b"x", timestamp_ms=RECENT_MS + number)

    async def look(consumer: AIOKafkaConsumer) -> None:
        found = await consumer.offsets_for_times({place: RECENT_MS + 3})
        assert found[place].offset == 3
        assert await consumer.beginning_offsets([place]) == {place: 0}
        assert await consumer.end_offsets([place]) == {place: 5}
        consumer.seek(place, 4)
        assert (await consumer.getone()).offset == 4

    with_producer(door, publish)
    with_consumer(door, topic, look)


def test_a_waiting_consumer_hears_of_a_new_message(door: DoorThread, new_topic: conftest.NewTopic) -> None:
    topic = new_topic().name

    async def wait_and_publish(consumer: AIOKafkaConsumer) -> None:
        waiting = asyncio.create_task(consumer.getone())
        producer = AIOKafkaProducer(bootstrap_servers=door.address)
        await producer.start()
        await producer.send_and_wait(topic, b"news")
        await producer.stop()
        assert (await waiting).value == b"news"

    with_consumer(door, topic, wait_and_publish)


def test_topics_are_created_grown_listed_altered_and_deleted(door: DoorThread) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=door.address)
        await admin.start()
        try:
            await admin.create_topics([NewTopic("by-aiokafka", 2, 1)])
            await admin.create_partitions({"by-aiokafka": NewPartitions(total_count=3)})
            [described] = await admin.describe_topics(["by-aiokafka"])
            assert len(described["partitions"]) == 3
            assert "by-aiokafka" in await admin.list_topics()
            resource = ConfigResource(
                ConfigResourceType.TOPIC, "by-aiokafka", configs={"retention.ms": "60000"}
            )
            [altered] = await admin.alter_configs([resource])
            assert altered.resources[0][0] == 0
            await admin.delete_topics(["by-aiokafka"])
            assert "by-aiokafka" not in await admin.list_topics()
        finally:
            await admin.close()

    asyncio.run(run())
