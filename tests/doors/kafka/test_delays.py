"""Delay by record headers, through the Kafka door."""

import time

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from kio.schema.errors import ErrorCode

from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import HOST, DoorThread
from tests.doors.kafka.raw_client import RawClient, record_batch
from tests.doors.kafka.test_produce import ask, end_offset

PATIENCE_S = 20


def received(door: DoorThread, topic: str, count: int) -> list[tuple[bytes, float]]:
    """Values, and how many milliseconds behind its timestamp each came."""
    consumer = Consumer({"bootstrap.servers": f"{HOST}:{door.port}", "group.id": "g"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes, float]] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append((message.value() or b"", time.time() * 1000 - message.timestamp()[1]))
    consumer.close()
    return found


@pytest.mark.parametrize("is_idempotent", [True, False])
def test_a_kafka_producer_delays_messages_by_a_header(
    door: DoorThread, new_topic: NewTopic, is_idempotent: bool
) -> None:
    topic = new_topic().name
    errors: list[object] = []

    def note(error: object, _: Message) -> None:
        errors.append(error)

    producer = Producer(
        {
            "bootstrap.servers": f"{HOST}:{door.port}",
            "enable.idempotence": is_idempotent,
            "linger.ms": 50,
        }
    )
    producer.produce(topic, b"first", partition=0, on_delivery=note)
    producer.flush(PATIENCE_S)  # now it is connected, and a second is long
    due = b"%d" % (time.time() * 1000 + 1_500)
    for n in range(6):
        producer.produce(
            topic,
            b"%d" % n,
            partition=0,
            headers=[("goqueue-deliver-at", due)] if n % 2 else None,
            on_delivery=note,
        )
    producer.flush(PATIENCE_S)
    for n in (6, 7):  # behind a batch that ended with a delayed message, and behind one of nothing else
        producer.produce(
            topic, b"%d" % n, partition=0, headers=[("goqueue-delay-ms", b"1500")], on_delivery=note
        )
        producer.flush(PATIENCE_S)
    producer.produce(topic, b"8", partition=0, on_delivery=note)
    producer.flush(PATIENCE_S)

    found = received(door, topic, 10)

    assert errors == [None] * 10
    assert [value for value, _ in found[:5]] == [b"first", b"0", b"2", b"4", b"8"]
    assert [value for value, _ in found[5:]] == [b"1", b"3", b"5", b"6", b"7"]
    assert all(late_ms >= 0 for _, late_ms in found)


def test_a_transaction_delays_what_it_commits_and_nothing_else(door: DoorThread, new_topic: NewTopic) -> None:
    topic = new_topic().name
    producer = Producer({"bootstrap.servers": f"{HOST}:{door.port}", "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for number, end in enumerate(
        (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    ):
        producer.begin_transaction()
        producer.produce(
            topic, b"%d later" % number, partition=0, headers=[("goqueue-delay-ms", b"%d" % (300 - number))]
        )
        producer.produce(topic, b"%d now" % number, partition=0)
        producer.flush(PATIENCE_S)
        end(PATIENCE_S)

    found = received(door, topic, 4)

    assert sorted(value for value, _ in found) == [b"0 later", b"0 now", b"2 later", b"2 now"]
    assert all(late_ms >= 0 for value, late_ms in found if value.endswith(b"later"))


def test_a_compressed_batch_is_opened_where_the_topic_says_so(
    raw: RawClient, door: DoorThread, new_topic: NewTopic
) -> None:
    batch = record_batch(b"x", codec=1, headers=[("goqueue-delay-ms", b"3600000")])
    plain, inspected = new_topic().name, new_topic(goqueue_inspect_compressed="true").name

    assert ask(raw, plain, batch).base_offset == ask(raw, inspected, batch).base_offset == 0

    assert (end_offset(raw, plain), end_offset(raw, inspected)) == (1, 0)


def test_a_senseless_delay_is_refused_and_the_record_named(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name

    outcome = ask(raw, topic, record_batch(b"a", b"b", headers=[("goqueue-delay-ms", b"soon")]))

    assert outcome.error_code == ErrorCode.invalid_record
    assert "goqueue-delay-ms" in outcome.error_message
    assert end_offset(raw, topic) == 0
