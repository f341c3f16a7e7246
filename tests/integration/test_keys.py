"""Where each kind of publisher puts a key: the table of docs/keys.md, with the real clients."""

import asyncio
import zlib
from collections.abc import Callable, Mapping

import httpx
import mmh3
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.partitioner import murmur2
from confluent_kafka import Producer
from kafka import KafkaProducer

from goqueue.client import GoQueue
from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow

PARTITIONS = 7
KEYS = [f"customer-{number}".encode() for number in range(40)]

Landed = Mapping[bytes, int]


def by_murmur3(key: bytes) -> int:
    return mmh3.hash(key, 0, signed=False) % PARTITIONS


def by_murmur2(key: bytes) -> int:
    return int(murmur2(key) & 0x7FFF_FFFF) % PARTITIONS


def by_crc32(key: bytes) -> int:
    return zlib.crc32(key) % PARTITIONS


def over_http(broker: RunningBroker) -> None:
    messages = [{"key": key.decode(), "value": "v"} for key in KEYS]
    httpx.post(f"{broker.http}/topics/keyed/messages", json={"messages": messages}).raise_for_status()


def with_our_client(broker: RunningBroker) -> None:
    with GoQueue(broker.http) as queue, queue.producer() as producer:
        for key in KEYS:
            producer.send("keyed", "v", key=key)


def with_librdkafka(broker: RunningBroker, **settings: str) -> None:
    producer = Producer({"bootstrap.servers": broker.kafka, **settings})
    for key in KEYS:
        producer.produce("keyed", b"v", key=key)
    assert producer.flush(30) == 0


def with_librdkafka_like_java(broker: RunningBroker) -> None:
    with_librdkafka(broker, partitioner="murmur2_random")


def with_aiokafka(broker: RunningBroker, **options: object) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.kafka, **options) as producer:
            for key in KEYS:
                await producer.send_and_wait("keyed", b"v", key=key)

    asyncio.run(send())


def with_aiokafka_like_http(broker: RunningBroker) -> None:
    def like_http(key: bytes, all_partitions: list[int], available: list[int]) -> int:
        return all_partitions[mmh3.hash(key, 0, signed=False) % len(all_partitions)]

    with_aiokafka(broker, partitioner=like_http)


def with_kafka_python(broker: RunningBroker) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.kafka)
    try:
        for sent in [producer.send("keyed", b"v", key=key) for key in KEYS]:
            sent.get(timeout=30)
    finally:
        producer.close()


@pytest.mark.parametrize(
    ("publish", "partition_of"),
    [
        (over_http, by_murmur3),
        (with_our_client, by_murmur3),
        (with_aiokafka_like_http, by_murmur3),
        (with_aiokafka, by_murmur2),
        (with_kafka_python, by_murmur2),
        (with_librdkafka_like_java, by_murmur2),
        (with_librdkafka, by_crc32),
    ],
)
def test_a_key_lands_where_the_page_says(
    broker: RunningBroker,
    publish: Callable[[RunningBroker], None],
    partition_of: Callable[[bytes], int],
) -> None:
    create_topic(broker.kafka, "keyed", partitions=PARTITIONS)

    publish(broker)

    assert landed(broker) == {key: partition_of(key) for key in KEYS}


@pytest.mark.parametrize(
    ("partitioner", "publish_as_clients_do", "partition_of"),
    [
        ("murmur2", with_kafka_python, by_murmur2),
        ("murmur2", with_aiokafka, by_murmur2),
        ("crc32", with_librdkafka, by_crc32),
    ],
)
def test_with_the_topics_partitioner_all_publishers_agree(
    broker: RunningBroker,
    partitioner: str,
    publish_as_clients_do: Callable[[RunningBroker], None],
    partition_of: Callable[[bytes], int],
) -> None:
    settings = {"goqueue.partitioner": partitioner}
    body = {"name": "keyed", "num_partitions": PARTITIONS, "settings": settings}
    httpx.post(f"{broker.http}/topics", json=body).raise_for_status()

    for publish in (publish_as_clients_do, over_http, with_our_client):
        publish(broker)
        assert landed(broker) == {key: partition_of(key) for key in KEYS}


def landed(broker: RunningBroker) -> Landed:
    """The partition of each key, read back over HTTP."""
    found: dict[bytes, int] = {}
    for partition in range(PARTITIONS):
        reply = httpx.get(f"{broker.http}/topics/keyed/partitions/{partition}/messages?limit=100")
        for message in reply.raise_for_status().json()["messages"]:
            assert found.setdefault(message["key"].encode(), partition) == partition
    return found
