"""What goes in at one door comes out at the other, the same."""

import base64

import httpx
import mmh3
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow

BINARY = bytes(range(256))
SETTINGS = {"goqueue.inspect.compressed": "true", "retention.ms": "-1"}


def through_kafka(broker: RunningBroker, topic: str, count: int) -> list[Message]:
    """The first messages of a topic's only partition."""
    consumer = Consumer({"bootstrap.servers": broker.kafka, "group.id": "any", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        messages = consumer.consume(count, timeout=30)
        assert [message.error() for message in messages] == [None] * count
        return messages
    finally:
        consumer.close()


def test_messages_published_over_http_are_read_by_a_kafka_client(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "mixed", partitions=1)
    given = [
        {"value": "text ä", "key": "k", "headers": {"kind": "greeting", "none": None}, "priority": "HIGH"},
        {"value": base64.b64encode(BINARY).decode(), "encoding": "base64"},
        {"value": ""},
    ]

    reply = httpx.post(f"{broker.http}/topics/mixed/messages", json={"messages": given}).json()

    assert [result["offset"] for result in reply["results"]] == [0, 1, 2]
    text, binary, empty = through_kafka(broker, "mixed", 3)
    assert (text.key(), text.value()) == (b"k", "text ä".encode())
    assert text.headers() == [("kind", b"greeting"), ("none", None)]
    assert (binary.key(), binary.value()) == (None, BINARY)
    assert empty.value() == b""


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_messages_of_a_kafka_producer_are_read_over_http(broker: RunningBroker, codec: str) -> None:
    create_topic(broker.kafka, "mixed", partitions=1, settings=SETTINGS)
    producer = Producer({"bootstrap.servers": broker.kafka, "compression.type": codec, "linger.ms": 50})
    padding = b" " * 500  # enough for every codec to be worth its while
    producer.produce(
        "mixed", b"text" + padding, key=b"k", headers=[("h", b"1"), ("h", None)], timestamp=1_000
    )
    producer.produce("mixed", BINARY + padding, headers=[("goqueue-priority", b"critical")])
    producer.produce("mixed", None, key=b"tombstone")
    assert producer.flush(30) == 0

    reply = httpx.get(f"{broker.http}/topics/mixed/partitions/0/messages").json()

    text, binary, tombstone = reply["messages"]
    assert reply["next_offset"] == 3
    assert (text["key"], text["value"].strip(), text["priority"]) == ("k", "text", "normal")
    assert text["timestamp"] == "1970-01-01T00:00:01.000Z"
    assert [(h["name"], h["value"]) for h in text["header_list"]] == [("h", "1"), ("h", None)]
    assert (binary["encoding"], binary["priority"]) == ("base64", "critical")
    assert base64.b64decode(binary["value"]) == BINARY + padding
    assert (tombstone["key"], tombstone["value"]) == ("tombstone", None)


def test_both_doors_send_a_key_to_the_same_partition(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "keyed", partitions=7)
    keys = ["a", "ab", "abc", "hello", "hello world"]
    body = {"messages": [{"value": "x", "key": key} for key in keys]}

    reply = httpx.post(f"{broker.http}/topics/keyed/messages", json=body).json()

    assert [r["partition"] for r in reply["results"]] == [mmh3.hash(key, 0, False) % 7 for key in keys]


def test_both_doors_refuse_what_is_too_large_and_store_nothing(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "small", partitions=1, settings={"max.message.bytes": "1000"})
    refused: list[str] = []
    producer = Producer({"bootstrap.servers": broker.kafka, "enable.idempotence": False})
    producer.produce(
        "small", b"x" * 2000, on_delivery=lambda error, _: refused.append(error.name() if error else "stored")
    )
    assert producer.flush(30) == 0

    reply = httpx.post(f"{broker.http}/topics/small/messages", json={"messages": [{"value": "x" * 2000}]})

    assert refused == ["MSG_SIZE_TOO_LARGE"]
    assert reply.json()["results"][0]["code"] == "message_too_large"
    assert httpx.get(f"{broker.http}/topics/small").json()["total_messages"] == 0
