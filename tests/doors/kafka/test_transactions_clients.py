"""Transactions of three client libraries: what is committed is seen whole, what is aborted never."""

import asyncio
from collections.abc import Iterator
from typing import Any

import confluent_kafka.admin
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AiokafkaPartition
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer

from goqueue.model.topics import TopicView
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread

# The library declares types but does not export these names to type checkers.
admin_module: Any = confluent_kafka.admin
PATIENCE_S = 30


@pytest.fixture
def topic(new_topic: NewTopic) -> TopicView:
    return new_topic(partitions=3)


@pytest.fixture
def producer(door: DoorThread, topic: TopicView) -> Any:
    return new_producer(door, f"writer of {topic.name}")


def new_producer(door: DoorThread, transactional_id: str, **settings: object) -> Any:
    opened = Producer(
        {"bootstrap.servers": door.address, "transactional.id": transactional_id, "linger.ms": 0, **settings}
    )
    opened.init_transactions(PATIENCE_S)
    return opened


@pytest.fixture
def readers(door: DoorThread) -> Iterator[dict[str, Any]]:
    """One that reads committed messages only, and one that reads all."""
    opened = {isolation: new_reader(door, isolation) for isolation in ("read_committed", "read_uncommitted")}
    yield opened
    for reader in opened.values():
        reader.close()


def new_reader(door: DoorThread, isolation: str, group: str = "readers") -> Any:
    return Consumer(
        {
            "bootstrap.servers": door.address,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 20,
        }
    )


def read_all(reader: Any, topic: str, partitions: int = 3) -> list[bytes]:
    """What a reader sees up to the end of each partition."""
    reader.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    values: list[bytes] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = reader.poll(PATIENCE_S)
        assert message is not None, f"the end of {partitions} partitions did not come"
        if message.error() is None:
            values.append(message.value())
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ended.add(message.partition())
    return sorted(values)


def put(producer: Any, topic: str, *values: bytes) -> None:
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 3)


def test_what_was_committed_is_seen_and_what_was_aborted_is_not(
    producer: Any, topic: TopicView, readers: dict[str, Any]
) -> None:
    for number in range(3):
        producer.begin_transaction()
        put(producer, topic.name, b"%d a" % number, b"%d b" % number, b"%d c" % number)
        if number == 1:
            producer.flush(PATIENCE_S)
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)

    everything = [b"%d %c" % (number, letter) for number in range(3) for letter in b"abc"]
    assert read_all(readers["read_committed"], topic.name) == [v for v in everything if v[:1] != b"1"]
    assert read_all(readers["read_uncommitted"], topic.name) == everything


def test_what_is_open_holds_back_readers_of_committed_messages_only(
    door: DoorThread, producer: Any, topic: TopicView, readers: dict[str, Any]
) -> None:
    producer.begin_transaction()
    put(producer, topic.name, b"open")
    producer.flush(PATIENCE_S)
    plain = Producer({"bootstrap.servers": door.address})
    put(plain, topic.name, b"behind it", b"elsewhere")
    assert plain.flush(PATIENCE_S) == 0

    assert read_all(readers["read_committed"], topic.name) == [b"elsewhere"]
    assert read_all(readers["read_uncommitted"], topic.name) == [b"behind it", b"elsewhere", b"open"]

    producer.commit_transaction(PATIENCE_S)
    assert read_all(readers["read_committed"], topic.name) == [b"behind it", b"elsewhere", b"open"]


def test_a_zombie_is_fenced_by_its_successor(
    door: DoorThread, topic: TopicView, readers: dict[str, Any]
) -> None:
    zombie = new_producer(door, f"shared by {topic.name}")
    zombie.begin_transaction()
    put(zombie, topic.name, b"of the zombie")
    zombie.flush(PATIENCE_S)
    successor = new_producer(door, f"shared by {topic.name}")
    successor.begin_transaction()
    put(successor, topic.name, b"of the successor")
    successor.commit_transaction(PATIENCE_S)

    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(PATIENCE_S)

    assert refused.value.args[0].fatal()
    assert refused.value.args[0].code() == KafkaError._FENCED
    assert read_all(readers["read_committed"], topic.name) == [b"of the successor"]


def test_consume_transform_produce_moves_offsets_with_its_messages(
    door: DoorThread, producer: Any, topic: TopicView, new_topic: NewTopic
) -> None:
    source = new_topic().name
    plain = Producer({"bootstrap.servers": door.address})
    for number in range(4):
        plain.produce(source, b"%d" % number)
    assert plain.flush(PATIENCE_S) == 0
    reader = new_reader(door, "read_committed", group=f"group of {source}")
    reader.subscribe([source])

    def transform(count: int) -> None:
        producer.begin_transaction()
        for _ in range(count):
            message = reader.poll(PATIENCE_S)
            assert message is not None and message.error() is None
            producer.produce(topic.name, b"done " + message.value(), partition=0)
        position = reader.position(reader.assignment())
        producer.send_offsets_to_transaction(position, reader.consumer_group_metadata(), PATIENCE_S)

    def committed() -> int:
        [found] = reader.committed([TopicPartition(source, 0)], timeout=PATIENCE_S)
        return int(found.offset)

    transform(2)
    producer.commit_transaction(PATIENCE_S)
    assert committed() == 2
    transform(2)
    producer.abort_transaction(PATIENCE_S)
    assert committed() == 2
    reader.close()
    assert read_all(new_reader(door, "read_committed"), topic.name) == [b"done 0", b"done 1"]


def test_offsets_of_an_open_transaction_are_told_to_be_unstable(
    door: DoorThread, producer: Any, topic: TopicView
) -> None:
    group = f"group of {topic.name}"
    metadata = new_reader(door, "read_committed", group=group).consumer_group_metadata()
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(topic.name, 0, 7)], metadata, PATIENCE_S)

    reader = new_reader(door, "read_committed", group=group)
    with pytest.raises(KafkaException) as refused:
        reader.committed([TopicPartition(topic.name, 0)], timeout=1)
    assert refused.value.args[0].code() in (KafkaError.UNSTABLE_OFFSET_COMMIT, KafkaError._TIMED_OUT)

    producer.commit_transaction(PATIENCE_S)
    assert reader.committed([TopicPartition(topic.name, 0)], timeout=PATIENCE_S)[0].offset == 7
    reader.close()


def test_the_end_of_a_partition_depends_on_who_asks(
    door: DoorThread, producer: Any, topic: TopicView
) -> None:
    admin = admin_module.AdminClient({"bootstrap.servers": door.address})
    levels = confluent_kafka.IsolationLevel
    latest = {TopicPartition(topic.name, 0): admin_module.OffsetSpec.latest()}

    def end(level: Any) -> int:
        [found] = admin.list_offsets(latest, isolation_level=level).values()
        return int(found.result(PATIENCE_S).offset)

    producer.begin_transaction()
    put(producer, topic.name, b"open")
    producer.flush(PATIENCE_S)
    assert (end(levels.READ_COMMITTED), end(levels.READ_UNCOMMITTED)) == (0, 1)
    producer.abort_transaction(PATIENCE_S)
    assert (end(levels.READ_COMMITTED), end(levels.READ_UNCOMMITTED)) == (2, 2)


def test_aiokafka_commits_and_aborts(door: DoorThread, topic: TopicView) -> None:
    async def walk() -> tuple[list[bytes], int | None]:
        producer = AIOKafkaProducer(
            bootstrap_servers=door.address, transactional_id=f"aiokafka of {topic.name}"
        )
        await producer.start()
        group = f"aiokafka group of {topic.name}"
        source = AiokafkaPartition(topic.name, 2)
        for number in range(4):
            await producer.begin_transaction()
            await producer.send_and_wait(topic.name, b"%d" % number, partition=number % 2)
            if number % 2:
                await producer.abort_transaction()
            else:
                await producer.send_offsets_to_transaction({source: number}, group)
                await producer.commit_transaction()
        await producer.stop()
        reader = AIOKafkaConsumer(
            bootstrap_servers=door.address,
            group_id=group,
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        await reader.start()
        places = [AiokafkaPartition(topic.name, number) for number in range(3)]
        reader.assign(places)
        await reader.seek_to_beginning(*places)
        found = [message.value for message in [await reader.getone(), await reader.getone()]]
        committed = await reader.committed(source)
        await reader.stop()
        return sorted(found), committed

    assert asyncio.run(asyncio.wait_for(walk(), PATIENCE_S)) == ([b"0", b"2"], 2)


def test_kafka_python_commits_and_aborts(door: DoorThread, readers: dict[str, Any], topic: TopicView) -> None:
    producer = KafkaProducer(bootstrap_servers=door.address, transactional_id=f"python of {topic.name}")
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        producer.send(topic.name, b"%d" % number, partition=number % 2).get(PATIENCE_S)
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()

    assert read_all(readers["read_committed"], topic.name) == [b"0", b"2"]
