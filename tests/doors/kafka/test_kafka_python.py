"""kafka-python: the client in pure Python."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka import codec as codec_libraries
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic

from tests.doors.kafka import conftest
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RECENT_MS

PATIENCE_S = 30
CODECS: dict[str | None, Callable[[], bool]] = {
    None: lambda: True,
    "gzip": codec_libraries.has_gzip,
    "snappy": codec_libraries.has_snappy,
    "lz4": codec_libraries.has_lz4,
    "zstd": codec_libraries.has_zstd,
}


@pytest.fixture
def admin(door: DoorThread) -> Iterator[Any]:
    opened = KafkaAdminClient(bootstrap_servers=door.address)
    yield opened
    opened.close()


def publish(door: DoorThread, topic: str, values: list[bytes | None], **settings: object) -> list[Any]:
    producer = KafkaProducer(bootstrap_servers=door.address, **settings)
    try:
        sent = [producer.send(topic, value, key=b"key", headers=[("h", b"1")]) for value in values]
        return [future.get(PATIENCE_S) for future in sent]
    finally:
        producer.close()


def consumer_of(door: DoorThread, topic: str) -> Any:
    return KafkaConsumer(
        topic,
        bootstrap_servers=door.address,
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1_000,
    )


def read(door: DoorThread, topic: str, count: int) -> list[Any]:
    consumer = consumer_of(door, topic)
    try:
        return [next(consumer) for _ in range(count)]
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_messages_of_every_codec_come_back_as_they_were(
    door: DoorThread, new_topic: conftest.NewTopic, codec: str | None
) -> None:
    if not CODECS[codec]():
        pytest.skip(f"kafka-python finds no library for {codec} here")
    topic = new_topic().name
    values: list[bytes | None] = [*(b"value %d " % number * 20 for number in range(50)), None]

    publish(door, topic, values, compression_type=codec, linger_ms=5)

    records = read(door, topic, len(values))
    assert [record.value for record in records] == values
    assert {record.key for record in records} == {b"key"}
    assert [tuple(header) for header in records[0].headers] == [("h", b"1")]


@pytest.mark.parametrize(
    "settings",
    [
        {"acks": 0, "enable_idempotence": False},
        {"acks": 1, "enable_idempotence": False},
        {"acks": "all", "enable_idempotence": False},
        {"enable_idempotence": True},
    ],
)
def test_messages_are_published_with_every_acks(
    door: DoorThread, new_topic: conftest.NewTopic, settings: dict[str, object]
) -> None:
    topic = new_topic().name

    publish(door, topic, [b"a", b"b"], **settings)

    assert [record.value for record in read(door, topic, 2)] == [b"a", b"b"]


def test_offsets_are_found_by_time_and_at_the_ends(door: DoorThread, new_topic: conftest.NewTopic) -> None:
    topic = new_topic().name
    place = TopicPartition(topic, 0)
    producer = KafkaProducer(bootstrap_servers=door.address)
    for number in range(5):
        producer.send(topic, b"x", timestamp_ms=RECENT_MS + number).get(PATIENCE_S)
    producer.close()
    consumer = consumer_of(door, topic)

    try:
        assert consumer.offsets_for_times({place: RECENT_MS + 3})[place].offset == 3
        assert consumer.beginning_offsets([place]) == {place: 0}
        assert consumer.end_offsets([place]) == {place: 5}
    finally:
        consumer.close()


def test_topics_are_created_grown_listed_and_deleted(admin: Any) -> None:
    admin.create_topics([NewTopic("by-kafka-python", 2, 1)])
    admin.create_partitions({"by-kafka-python": NewPartitions(total_count=3)})

    assert "by-kafka-python" in admin.list_topics()

    admin.delete_topics(["by-kafka-python"])

    assert "by-kafka-python" not in admin.list_topics()
