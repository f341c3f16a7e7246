"""Compacted topics through Kafka's clients: keys are asked for, and what is left is read to its end."""

from collections.abc import Sequence
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from goqueue.broker.compaction.compacting import compact, look_at
from goqueue.model.ids import TopicName
from goqueue.model.ids import TopicPartition as Place
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.unit.broker.running import until

# The library declares types but does not export these names to type checkers.
admin_module: Any = confluent_kafka.admin
PATIENCE_S = 30
COMPACT = {"cleanup_policy": "compact", "segment_bytes": "4096"}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def compact_now(door: DoorThread, topic: str) -> tuple[int, int]:
    """Seal and compact all there is; messages before and after."""

    async def work() -> tuple[int, int]:
        partition = door.broker.partition(Place(TopicName(topic), 0))
        partition.hurry()
        # The producer was answered when its decision was safe; markers and the mark follow.
        await until(lambda: partition.last_stable_offset == partition.log.end_offset)
        partition.log.roll()
        looked = await look_at(door.broker, partition)
        assert looked is not None
        done = await compact(door.broker, partition, looked)
        assert done is not None
        return done.records_before, done.records_after

    return door.run(work())


def publish(
    door: DoorThread, topic: str, pairs: Sequence[tuple[bytes | None, bytes | None]], **settings: object
) -> list[Any]:
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": door.address, "linger.ms": 5, **settings})
    for key, value in pairs:
        producer.produce(topic, value, key=key, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    return [error for error in errors if error]


def read_to_end(
    door: DoorThread, topic: str, isolation: str = "read_committed", offset: int = OFFSET_BEGINNING
) -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": door.address,
            "group.id": "readers",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 20,
        }
    )
    consumer.assign([TopicPartition(topic, 0, offset)])
    found: list[Any] = []
    try:
        while True:
            message: Any = consumer.poll(PATIENCE_S)
            assert message is not None, f"the end did not come behind {len(found)} messages"
            if message.error() is None:
                found.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return found
            else:
                raise KafkaException(message.error())
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_a_consumer_reads_the_newest_of_each_key_and_comes_to_the_end(
    door: DoorThread, new_topic: NewTopic, codec: str
) -> None:
    topic = new_topic(**COMPACT).name
    pairs = [(b"k%d" % (number % 5), b"value %d " % number * 20) for number in range(200)]
    assert publish(door, topic, pairs[:150], **{"compression.type": codec, "batch.num.messages": 7}) == []
    assert publish(door, topic, pairs[150:], **{"compression.type": codec, "batch.num.messages": 7}) == []

    assert compact_now(door, topic) == (200, 5)
    found = read_to_end(door, topic)
    assert [(message.offset(), message.key(), message.value()) for message in found] == [
        (offset, *pairs[offset]) for offset in range(195, 200)
    ]
    assert [message.offset() for message in read_to_end(door, topic, offset=197)] == [197, 198, 199]
    # All offsets of it are covered: one that is gone leads to the next that is there.
    assert next(message.offset() for message in read_to_end(door, topic, offset=40)) == 195


def test_a_consumer_comes_to_the_end_of_a_log_of_which_nothing_is_left(
    door: DoorThread, new_topic: NewTopic
) -> None:
    topic = new_topic(**COMPACT, delete_retention_ms="0").name
    assert publish(door, topic, [(b"k", b"v"), (b"l", b"v"), (b"k", None), (b"l", None)]) == []
    compact_now(door, topic)
    assert [message.value() for message in read_to_end(door, topic)] == [None, None]
    compact_now(door, topic)
    assert read_to_end(door, topic) == []
    assert publish(door, topic, [(b"k", b"again")]) == []
    assert [message.offset() for message in read_to_end(door, topic)] == [4]


def test_a_message_without_a_key_is_an_invalid_record(door: DoorThread, new_topic: NewTopic) -> None:
    topic = new_topic(**COMPACT).name
    for codec in CODECS:
        errors = publish(door, topic, [(b"k", b"v"), (None, b"v")], **{"compression.type": codec})
        assert {error.code() for error in errors} == {KafkaError.INVALID_RECORD}
    assert publish(door, topic, [(b"", b"v")]) == []
    assert len(read_to_end(door, topic)) == 1


def test_transactions_are_read_as_before_compaction(door: DoorThread, new_topic: NewTopic) -> None:
    topic = new_topic(**COMPACT, delete_retention_ms="0").name
    producer = Producer(
        {"bootstrap.servers": door.address, "transactional.id": f"writer of {topic}", "linger.ms": 0}
    )
    producer.init_transactions(PATIENCE_S)
    expected: dict[bytes, bytes] = {}
    for number in range(12):
        producer.begin_transaction()
        pairs = {b"k%d" % (number % 3): b"%d" % number, b"once %d" % number: b"%d" % number}
        for key, value in pairs.items():
            producer.produce(topic, value, key=key)
        if number % 4 == 3:
            producer.flush(PATIENCE_S)
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)
            expected |= pairs
    for _ in range(3):
        compact_now(door, topic)
        for isolation in ("read_committed", "read_uncommitted"):
            assert {
                message.key(): message.value() for message in read_to_end(door, topic, isolation)
            } == expected
        # The producer goes on counting where it was.
        producer.begin_transaction()
        producer.produce(topic, b"more", key=b"more")
        producer.commit_transaction(PATIENCE_S)
        expected[b"more"] = b"more"


def test_the_policy_is_shown_and_changed_by_kafkas_tools(door: DoorThread, new_topic: NewTopic) -> None:
    topic = new_topic().name
    admin = admin_module.AdminClient({"bootstrap.servers": door.address})
    resource = admin_module.ConfigResource(admin_module.ConfigResource.Type.TOPIC, topic)
    entry = admin_module.ConfigEntry(
        "cleanup.policy",
        "compact,delete",
        incremental_operation=admin_module.AlterConfigOpType.SET,
    )
    resource.add_incremental_config(entry)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)
    [shown] = admin.describe_configs(
        [admin_module.ConfigResource(admin_module.ConfigResource.Type.TOPIC, topic)]
    ).values()
    assert shown.result(PATIENCE_S)["cleanup.policy"].value == "compact,delete"
    assert publish(door, topic, [(None, b"v")])[0].code() == KafkaError.INVALID_RECORD
