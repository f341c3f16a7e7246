"""Consumer groups as real clients use them: cooperative rebalances, static members, automatic commits."""

import asyncio
import time
from collections.abc import Callable, Iterator

import aiokafka
import kafka
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.settings import BrokerConfig, GroupConfig
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread

PATIENCE_S = 30
PARTITIONS = 4


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    config = BrokerConfig(groups=GroupConfig(initial_delay_ms=20))
    opened = DoorThread(tmp_path_factory.mktemp("data"), config, KafkaConfig())
    yield opened
    opened.close()


@pytest.fixture
def topic(door: DoorThread, new_topic: NewTopic) -> str:
    """A topic with ten messages in each of its four partitions."""
    name = new_topic(partitions=PARTITIONS).name
    producer = Producer({"bootstrap.servers": door.address})
    for number in range(10 * PARTITIONS):
        producer.produce(name, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    return name


def consumer(door: DoorThread, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": door.address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 6_000,
            **settings,
        }
    )


def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> list[bytes]:
    """Let consumers work until something has come true; what they have read meanwhile."""
    values = []
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come true"
        for one in consumers:
            message = one.poll(0.05)
            if message is not None and message.error() is None:
                values.append(message.value() or b"")
    return values


def owned(one: Consumer) -> set[int]:
    return {partition.partition for partition in one.assignment()}


def test_a_cooperative_newcomer_takes_its_share_and_the_rest_is_not_interrupted(
    door: DoorThread, topic: str
) -> None:
    revoked: list[int] = []
    first = consumer(door, "cooperative", **{"partition.assignment.strategy": "cooperative-sticky"})
    second = consumer(door, "cooperative", **{"partition.assignment.strategy": "cooperative-sticky"})
    first.subscribe([topic], on_revoke=lambda _, lost: revoked.extend(p.partition for p in lost))
    poll_until(lambda: len(owned(first)) == PARTITIONS, first)

    second.subscribe([topic])
    poll_until(lambda: len(owned(second)) == 2, first, second)

    assert owned(first) | owned(second) == set(range(PARTITIONS))
    assert set(revoked) == owned(second)
    first.close()
    poll_until(lambda: len(owned(second)) == PARTITIONS, second)
    second.close()


def test_a_static_member_comes_back_to_its_partitions_without_disturbing_others(
    door: DoorThread, topic: str
) -> None:
    disturbed: list[object] = []
    static = consumer(door, "static", **{"group.instance.id": "desk-1"})
    other = consumer(door, "static", **{"group.instance.id": "desk-2"})
    static.subscribe([topic])
    other.subscribe([topic], on_revoke=lambda _, lost: disturbed.append(lost))
    poll_until(lambda: len(owned(static)) == 2 == len(owned(other)), static, other)
    before = owned(static)
    disturbed.clear()
    static.close()

    again = consumer(door, "static", **{"group.instance.id": "desk-1"})
    again.subscribe([topic])
    poll_until(lambda: len(owned(again)) == 2, again, other)

    assert owned(again) == before
    assert disturbed == []
    other.close()
    again.close()


def test_what_was_committed_automatically_is_not_read_again(door: DoorThread, topic: str) -> None:
    def reader() -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            topic,
            bootstrap_servers=door.address,
            group_id="automatic",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=50,
            heartbeat_interval_ms=100,
        )

    first = reader()
    read = {next(first).value for _ in range(10 * PARTITIONS)}
    first.close()
    producer = Producer({"bootstrap.servers": door.address})
    producer.produce(topic, b"fresh", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    second = reader()
    fresh = next(second)
    end = second.committed(kafka.TopicPartition(topic, 1))
    second.close()

    assert len(read) == 10 * PARTITIONS
    assert (fresh.value, end) == (b"fresh", 10)


def test_a_session_of_aiokafka_in_a_group(door: DoorThread, topic: str) -> None:
    assigned: list[int] = []

    class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
        async def on_partitions_revoked(self, revoked: set[aiokafka.TopicPartition]) -> None:
            pass

        async def on_partitions_assigned(self, given: set[aiokafka.TopicPartition]) -> None:
            assigned.extend(sorted(partition.partition for partition in given))

    async def session() -> None:
        reader = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=door.address,
            group_id="session",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            metadata_max_age_ms=500,
        )
        reader.subscribe(pattern=f"^{topic}$", listener=Listener())
        async with reader, asyncio.timeout(PATIENCE_S):
            values = {(await reader.getone()).value for _ in range(10 * PARTITIONS)}
            assert len(values) == 10 * PARTITIONS
            place = aiokafka.TopicPartition(topic, 2)
            assert await reader.committed(place) is None
            reader.pause(*(aiokafka.TopicPartition(topic, p) for p in (0, 1, 3)))
            reader.seek(place, 9)
            assert (await reader.getone()).offset == 9
            await reader.commit({place: (10, "a note")})
            assert await reader.committed(place) == 10

    asyncio.run(session())
    assert assigned == list(range(PARTITIONS))


def test_tools_see_and_change_groups(door: DoorThread, topic: str) -> None:
    one = consumer(door, "tools")
    one.subscribe([topic])
    poll_until(lambda: len(owned(one)) == PARTITIONS, one)
    one.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    admin = AdminClient({"bootstrap.servers": door.address})

    view = admin.describe_consumer_groups(["tools"])["tools"].result(PATIENCE_S)
    assert (view.state.name, len(view.members)) == ("STABLE", 1)
    assert len(view.members[0].assignment.topic_partitions) == PARTITIONS
    one.close()

    wanted = ConsumerGroupTopicPartitions("tools", [TopicPartition(topic, 0, 7)])
    admin.alter_consumer_group_offsets([wanted])["tools"].result(PATIENCE_S)
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("tools")])["tools"].result(
        PATIENCE_S
    )
    assert [(place.partition, place.offset) for place in found.topic_partitions] == [(0, 7)]
    admin.delete_consumer_groups(["tools"])["tools"].result(PATIENCE_S)
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert "tools" not in {group.group_id for group in listed.valid}
