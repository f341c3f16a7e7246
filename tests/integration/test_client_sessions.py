"""One session each of kcat, confluent-kafka, aiokafka and kafka-python against a real broker."""

import asyncio
import shutil
import subprocess

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.integration.clients import create_topic, read_all
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow

VALUES = [b"one", b"two", b"three"]


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_a_session_of_kcat(broker: RunningBroker) -> None:
    _kcat("-P", "-b", broker.kafka, "-t", "session", "-p", "0", "-K:", given="a:one\nb:two\nc:three\n")
    read = _kcat(
        "-C", "-b", broker.kafka, "-t", "session", "-p", "0", "-o", "1", "-e", "-q", "-f", r"%o %k %s\n"
    )
    listed = _kcat("-L", "-b", broker.kafka, "-t", "session")

    assert read.splitlines() == ["1 b two", "2 c three"]
    assert 'topic "session" with 3 partitions' in listed


def test_a_session_of_confluent_kafka(broker: RunningBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.kafka, "compression.type": "zstd"})
    for value in VALUES:
        producer.produce("session", value, key=b"key", headers={"kind": b"number"}, partition=0)
    assert producer.flush(30) == 0

    consumer = Consumer(
        {"bootstrap.servers": broker.kafka, "group.id": "session", "enable.auto.commit": False}
    )
    watermarks = consumer.get_watermark_offsets(TopicPartition("session", 0), timeout=30)
    consumer.close()

    assert watermarks == (0, 3)
    assert read_all(broker.kafka, "session", partitions=3)[0] == VALUES


async def _aiokafka_session(bootstrap: str) -> list[bytes | None]:
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, compression_type="lz4"
    ) as producer:
        for value in VALUES:
            await producer.send_and_wait("session", value, partition=0)
    reader = aiokafka.AIOKafkaConsumer("session", bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    async with reader:
        return [(await reader.getone()).value for _ in VALUES]


def test_a_session_of_aiokafka(broker: RunningBroker) -> None:
    assert asyncio.run(_aiokafka_session(broker.kafka)) == VALUES


def test_a_session_of_kafka_python(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "session", partitions=1)
    producer = kafka.KafkaProducer(bootstrap_servers=broker.kafka, compression_type="gzip")
    placed = [producer.send("session", value).get(timeout=30) for value in VALUES]
    producer.close()
    reader = kafka.KafkaConsumer(bootstrap_servers=broker.kafka, auto_offset_reset="earliest")
    partition = kafka.TopicPartition("session", 0)
    reader.assign([partition])
    read = [next(reader).value for _ in VALUES]
    ends = reader.end_offsets([partition])
    reader.close()

    assert [place.offset for place in placed] == [0, 1, 2]
    assert read == VALUES
    assert ends == {partition: 3}


def _kcat(*arguments: str, given: str = "") -> str:
    return subprocess.run(
        ["kcat", *arguments], input=given, capture_output=True, text=True, timeout=60, check=True
    ).stdout
