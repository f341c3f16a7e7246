"""confluent-kafka, and with it librdkafka: the client behind most Kafka libraries that are not Java."""

from collections.abc import Iterator
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from goqueue.model.settings import BrokerConfig
from tests.doors.kafka import conftest
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RECENT_MS

# The library declares types but does not export these names to type checkers.
admin_module: Any = confluent_kafka.admin

PATIENCE_S = 30
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def publish(door: DoorThread, topic: str, values: list[bytes | None], **settings: object) -> list[Any]:
    """Publish and return the delivery reports."""
    reports: list[Any] = []
    producer = Producer({"bootstrap.servers": door.address, "linger.ms": 5, **settings})
    for value in values:
        producer.produce(
            topic,
            value,
            key=b"key",
            headers=[("h", b"1"), ("n", None)],
            on_delivery=lambda error, message: reports.append((error, message)),
        )
    assert producer.flush(PATIENCE_S) == 0
    assert [error for error, _ in reports if error] == []
    return [message for _, message in reports]


@pytest.fixture
def consumer(door: DoorThread) -> Iterator[Any]:
    opened = Consumer(
        {"bootstrap.servers": door.address, "group.id": "readers", "enable.auto.commit": False}
    )  # fmt: skip
    yield opened
    opened.close()


@pytest.fixture
def admin(door: DoorThread) -> Any:
    return admin_module.AdminClient({"bootstrap.servers": door.address})


def read(consumer: Any, topic: str, count: int, offset: int = OFFSET_BEGINNING) -> list[Any]:
    consumer.assign([TopicPartition(topic, 0, offset)])
    messages: list[Any] = []
    while len(messages) < count:
        more = consumer.consume(count - len(messages), timeout=PATIENCE_S)
        assert more, f"only {len(messages)} of {count} messages came"
        messages += more
    assert [message.error() for message in messages if message.error()] == []
    return messages


@pytest.mark.parametrize("codec", CODECS)
def test_messages_of_every_codec_come_back_as_they_were(
    door: DoorThread, consumer: Any, new_topic: conftest.NewTopic, codec: str
) -> None:
    topic = new_topic().name
    values: list[bytes | None] = [*(b"value %d " % number * 20 for number in range(200)), None, b""]

    publish(door, topic, values, **{"compression.type": codec})

    messages = read(consumer, topic, len(values))
    assert [message.value() for message in messages] == values
    assert [message.offset() for message in messages] == list(range(len(values)))
    assert {message.key() for message in messages} == {b"key"}
    assert messages[0].headers() == [("h", b"1"), ("n", None)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_messages_are_published_with_every_acks(
    door: DoorThread, consumer: Any, new_topic: conftest.NewTopic, acks: str
) -> None:
    topic = new_topic().name

    publish(door, topic, [b"a", b"b", b"c"], acks=acks)

    assert [message.value() for message in read(consumer, topic, 3)] == [b"a", b"b", b"c"]


def test_an_idempotent_producer_stores_everything_once_and_in_order(
    door: DoorThread, consumer: Any, new_topic: conftest.NewTopic
) -> None:
    topic = new_topic().name
    values: list[bytes | None] = [b"%d" % number for number in range(5_000)]

    publish(door, topic, values, **{"enable.idempotence": True, "batch.num.messages": 50})

    assert [message.value() for message in read(consumer, topic, len(values))] == values


def test_a_big_message_comes_back_whole(
    door: DoorThread, consumer: Any, new_topic: conftest.NewTopic
) -> None:
    topic = new_topic().name
    value = bytes(range(256)) * 40_000

    publish(door, topic, [value], **{"message.max.bytes": 15_000_000})

    assert read(consumer, topic, 1)[0].value() == value


def test_reading_begins_at_any_offset(door: DoorThread, consumer: Any, new_topic: conftest.NewTopic) -> None:
    topic = new_topic().name
    publish(door, topic, [b"%d" % number for number in range(100)])

    assert read(consumer, topic, 1, offset=57)[0].value() == b"57"


def test_offsets_are_found_by_time_and_at_the_ends(
    door: DoorThread, consumer: Any, new_topic: conftest.NewTopic
) -> None:
    topic = new_topic().name
    producer = Producer({"bootstrap.servers": door.address})
    for number in range(10):
        producer.produce(topic, b"%d" % number, timestamp=RECENT_MS + number * 1_000)
    assert producer.flush(PATIENCE_S) == 0

    [found] = consumer.offsets_for_times([TopicPartition(topic, 0, RECENT_MS + 4_500)], timeout=PATIENCE_S)

    assert found.offset == 5
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S) == (0, 10)


def test_a_topic_is_created_when_it_is_first_published_to(door: DoorThread, consumer: Any) -> None:
    publish(door, "first-named-by-librdkafka", [b"a"])

    listed = consumer.list_topics("first-named-by-librdkafka", timeout=PATIENCE_S)
    assert len(listed.topics["first-named-by-librdkafka"].partitions) == BrokerConfig().default_partitions


def test_topics_are_created_listed_grown_and_deleted(admin: Any) -> None:
    admin.create_topics([admin_module.NewTopic("administered", 2, 1)])["administered"].result(PATIENCE_S)
    admin.create_partitions([admin_module.NewPartitions("administered", 5)])["administered"].result(
        PATIENCE_S
    )

    assert len(admin.list_topics(timeout=PATIENCE_S).topics["administered"].partitions) == 5
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([admin_module.NewTopic("administered", 2, 1)])["administered"].result(PATIENCE_S)

    admin.delete_topics(["administered"])["administered"].result(PATIENCE_S)

    assert "administered" not in admin.list_topics(timeout=PATIENCE_S).topics


def test_settings_are_described_and_altered(admin: Any, new_topic: conftest.NewTopic) -> None:
    topic = new_topic().name
    change = admin_module.ConfigEntry(
        "retention.ms", "60000", incremental_operation=admin_module.AlterConfigOpType.SET
    )
    resource = admin_module.ConfigResource(
        admin_module.ResourceType.TOPIC, topic, incremental_configs=[change]
    )

    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)

    described = admin_module.ConfigResource(admin_module.ResourceType.TOPIC, topic)
    settings = admin.describe_configs([described])[described].result(PATIENCE_S)
    assert settings["retention.ms"].value == "60000"
    assert not settings["retention.ms"].is_default


def test_the_cluster_and_its_topics_are_described(admin: Any, new_topic: conftest.NewTopic) -> None:
    topic = new_topic(partitions=2)

    cluster = admin.describe_cluster(request_timeout=PATIENCE_S).result(PATIENCE_S)

    assert [node.id for node in cluster.nodes] == [1]
    assert topic.name in admin.list_topics(timeout=PATIENCE_S).topics


def test_records_are_deleted_and_offsets_listed(
    door: DoorThread, admin: Any, new_topic: conftest.NewTopic
) -> None:
    topic = new_topic().name
    publish(door, topic, [b"%d" % number for number in range(10)])
    here = TopicPartition(topic, 0, 4)

    deleted = admin.delete_records([here])[here].result(PATIENCE_S)

    place = TopicPartition(topic, 0)
    earliest = admin.list_offsets({place: admin_module.OffsetSpec.earliest()})[place].result(PATIENCE_S)
    latest = admin.list_offsets({place: admin_module.OffsetSpec.latest()})[place].result(PATIENCE_S)
    assert deleted.low_watermark == 4
    assert (earliest.offset, latest.offset) == (4, 10)


def test_a_message_above_the_limit_is_refused(door: DoorThread, new_topic: conftest.NewTopic) -> None:
    topic = new_topic(max_message_bytes="1000").name
    reports: list[Any] = []
    producer = Producer({"bootstrap.servers": door.address})

    producer.produce(topic, b"x" * 2_000, on_delivery=lambda error, _: reports.append(error))
    producer.flush(PATIENCE_S)

    assert [error.name() for error in reports] == ["MSG_SIZE_TOO_LARGE"]
