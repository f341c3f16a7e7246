"""Messages that do not fit their topic's schemas, through the Kafka door: raw requests and real clients."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from struct import pack
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition
from kio.schema.errors import ErrorCode

from goqueue.broker.schemas.verbs import register_schema
from goqueue.broker.topics.verbs import create_topic
from goqueue.edge.kafka.apis import ApiKey
from goqueue.model.schema_commands import RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.topics import CreateTopic
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient, record_batch

PATIENCE_S = 30
NewChecked = Callable[..., str]


@pytest.fixture(scope="module")
def schema_id(door: DoorThread) -> int:
    """Of whole numbers, in a subject of no topic."""
    return door.run(
        register_schema(
            door.broker,
            RegisterSchema(subject="numbers", schema=SchemaText(SchemaKind.JSON, '{"type": "integer"}')),
        )
    ).schema_id


@pytest.fixture
def new_checked(door: DoorThread, new_topic: NewTopic, schema_id: int) -> NewChecked:
    """Creates a topic that checks messages in full against whole numbers."""

    def create(on_invalid: str = "refuse", *, has_quarantine: bool = False) -> str:
        settings = {"goqueue.schema.validation": "full", "goqueue.schema.on.invalid": on_invalid}
        topic = new_topic(**settings).name
        text = SchemaText(SchemaKind.JSON, '{"type": "integer"}')
        assert (
            door.run(
                register_schema(door.broker, RegisterSchema(subject=f"{topic}-value", schema=text))
            ).schema_id
            == schema_id
        )
        if has_quarantine:
            door.run(create_topic(door.broker, CreateTopic(name=f"{topic}.quarantine", partitions=1)))
        return topic

    return create


@pytest.fixture
def framed(schema_id: int) -> Callable[[bytes], bytes]:
    return lambda payload: pack(">xI", schema_id) + payload


@pytest.fixture
def consumer(door: DoorThread) -> Iterator[Any]:
    opened = Consumer(
        {
            "bootstrap.servers": door.address,
            "group.id": "readers",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    yield opened
    opened.close()


def read(consumer: Any, topic: str) -> list[tuple[int, bytes]]:
    """Offsets and payloads of all messages up to the end."""
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[int, bytes]] = []
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "neither a message nor the end came"
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF
            return found
        found.append((message.offset(), message.value()[5:]))


class Sender:
    """A producer of confluent-kafka that remembers what became of its messages."""

    def __init__(self, door: DoorThread, topic: str, **settings: object) -> None:
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": door.address, "linger.ms": 50, "retry.backoff.ms": 10, **settings}
        )
        self._errors: list[Any] = []

    def send(self, *values: bytes) -> list[Any]:
        """The error of each message, or None, in the order given; they go in one batch."""
        self._errors = []
        for value in values:
            self._producer.produce(self._topic, value, on_delivery=self._reported)
        assert self._producer.flush(PATIENCE_S) == 0
        return self._errors

    def _reported(self, error: Any, _: object) -> None:
        self._errors.append(error)


@pytest.mark.parametrize("version", [7, 8, 9])
def test_a_refused_batch_names_each_record_that_does_not_fit(
    raw: RawClient, new_checked: NewChecked, framed: Callable[[bytes], bytes], version: int
) -> None:
    topic = new_checked()
    batch = record_batch(framed(b"1"), framed(b'"x"'), b"bare", codec=1)

    reply = raw.ask(ApiKey.PRODUCE, version, **requests.produce(topic, batch))

    [outcome] = reply.responses[0].partition_responses
    assert (outcome.error_code, outcome.base_offset) == (ErrorCode.invalid_record, -1)
    if version >= 8:
        errors = {error.batch_index: error.batch_index_error_message for error in outcome.record_errors}
        assert errors[1] == 'value: #/: "x" is not of type "integer"'
        assert errors[2].startswith("value: it is not JSON")
        assert list(errors) == [1, 2]
        assert outcome.error_message == errors[1] + " (and 1 more messages)"
    offsets = raw.ask(ApiKey.LIST_OFFSETS, 4, **requests.list_offsets(topic, -1))
    assert offsets.topics[0].partitions[0].offset == 0


@pytest.mark.parametrize("is_idempotent", [False, True])
def test_confluent_kafka_hears_which_message_was_bad_and_goes_on(
    door: DoorThread,
    consumer: Any,
    new_checked: NewChecked,
    framed: Callable[[bytes], bytes],
    is_idempotent: bool,
) -> None:
    topic = new_checked()
    sender = Sender(door, topic, **{"enable.idempotence": is_idempotent})

    # With a single bad one librdkafka calls all of them bad.
    errors = sender.send(framed(b"1"), framed(b'"x"'), framed(b"2"), framed(b'"y"'))
    bad, other = KafkaError.INVALID_RECORD, KafkaError._INVALID_DIFFERENT_RECORD
    assert [error.code() for error in errors] == [other, bad, other, bad]

    assert sender.send(framed(b"3")) == sender.send(framed(b"4")) == [None]
    assert [payload for _, payload in read(consumer, topic)] == [b"3", b"4"]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_an_idempotent_producer_is_not_disturbed_by_what_is_kept_aside(
    door: DoorThread, consumer: Any, new_checked: NewChecked, framed: Callable[[bytes], bytes], codec: str
) -> None:
    topic = new_checked("quarantine")  # whose topic for that is created meanwhile
    sender = Sender(door, topic, **{"enable.idempotence": True, "compression.type": codec})

    payloads = [b"1", b'"x"', b"2", b'"y"', b'"z"']
    assert sender.send(*map(framed, payloads)) == [None] * 5
    assert sender.send(framed(b'"w"')) == sender.send(framed(b"3")) == [None]

    assert read(consumer, topic) == [(0, b"1"), (2, b"2"), (6, b"3")]
    kept = read(consumer, f"{topic}.quarantine")
    assert kept == [(0, b'"x"'), (1, b'"y"'), (2, b'"z"'), (3, b'"w"')]


@pytest.fixture
def with_holes(door: DoorThread, new_checked: NewChecked, framed: Callable[[bytes], bytes]) -> str:
    """A topic of four batches of one message each, of which the first and the third are empty by now."""
    topic = new_checked("quarantine", has_quarantine=True)
    sender = Sender(door, topic, **{"linger.ms": 0})
    for payload in (b'"x"', b"1", b'"y"', b"2"):
        assert sender.send(framed(payload)) == [None]
    return topic


def test_aiokafka_passes_over_what_is_missing(door: DoorThread, with_holes: str) -> None:
    async def look() -> list[tuple[int, bytes | None]]:
        consumer = AIOKafkaConsumer(bootstrap_servers=door.address)
        await consumer.start()
        try:
            source = AiokafkaPartition(with_holes, 0)
            consumer.assign([source])
            await consumer.seek_to_beginning(source)
            async with asyncio.timeout(PATIENCE_S):
                return [(m.offset, m.value[5:]) for m in [await consumer.getone() for _ in range(2)]]
        finally:
            await consumer.stop()

    assert asyncio.run(look()) == [(1, b"1"), (3, b"2")]


def test_kafka_python_passes_over_what_is_missing(door: DoorThread, with_holes: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=door.address, consumer_timeout_ms=PATIENCE_S * 1_000)
    try:
        source = KafkaPythonPartition(with_holes, 0)
        consumer.assign([source])
        consumer.seek_to_beginning(source)
        assert [(m.offset, m.value[5:]) for m in islice(consumer, 2)] == [(1, b"1"), (3, b"2")]
    finally:
        consumer.close()


def test_a_transaction_commits_around_what_is_kept_aside(
    door: DoorThread, consumer: Any, new_checked: NewChecked, framed: Callable[[bytes], bytes]
) -> None:
    topic = new_checked("quarantine", has_quarantine=True)
    producer = Producer({"bootstrap.servers": door.address, "transactional.id": topic, "linger.ms": 50})
    producer.init_transactions(PATIENCE_S)
    for payloads in ((b"1", b'"x"'), (b'"y"',), (b"2",)):
        producer.begin_transaction()
        for payload in payloads:
            producer.produce(topic, framed(payload))
        producer.commit_transaction(PATIENCE_S)

    assert [payload for _, payload in read(consumer, topic)] == [b"1", b"2"]
    assert [payload for _, payload in read(consumer, f"{topic}.quarantine")] == [b'"x"', b'"y"']
