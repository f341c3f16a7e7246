"""`group.protocol=consumer` as librdkafka speaks it: members that come and go, static ones, patterns."""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from goqueue.broker.groups.verbs import describe_group
from goqueue.broker.topics.verbs import create_topic
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.group_commands import DescribeGroup
from goqueue.model.groups import GroupView
from goqueue.model.settings import BrokerConfig, GroupConfig
from goqueue.model.topics import CreateTopic
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread

PATIENCE_S = 30
PARTITIONS = 4


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    config = BrokerConfig(groups=GroupConfig(consumer_heartbeat_ms=50, consumer_session_ms=10_000))
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
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )


def poll_until(condition: Callable[[], bool], *consumers: Consumer, read: set[bytes] | None = None) -> None:
    """Let consumers work until something has come true, and note what they read meanwhile."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come true"
        for one in consumers:
            message = one.poll(0.01)
            if message is not None:
                assert message.error() is None
                if read is not None:
                    read.add(message.value() or b"")


def shares(*consumers: Consumer) -> list[int]:
    return [len(one.assignment()) for one in consumers]


def described(door: DoorThread, group: str) -> GroupView:
    async def describe() -> GroupView:
        return describe_group(door.broker, DescribeGroup(group=group))

    return door.run(describe())


def test_members_share_a_topic_and_the_one_that_stays_reads_on_from_what_was_committed(
    door: DoorThread, topic: str
) -> None:
    first, second = consumer(door, "sharing"), consumer(door, "sharing")
    first.subscribe([topic])
    read: set[bytes] = set()
    poll_until(lambda: shares(first) == [4], first, read=read)
    second.subscribe([topic])
    poll_until(lambda: shares(first, second) == [2, 2], first, second, read=read)
    poll_until(lambda: len(read) == 10 * PARTITIONS, first, second, read=read)
    for one in (first, second):
        one.commit(asynchronous=False)
    admin = AdminClient({"bootstrap.servers": door.address})
    shown = admin.describe_consumer_groups(["sharing"])["sharing"].result(PATIENCE_S)
    assert (shown.state.name, shown.type.name, shown.partition_assignor) == ("STABLE", "CONSUMER", "uniform")

    second.close()
    poll_until(lambda: shares(first) == [4], first)

    places = first.committed([TopicPartition(topic, n) for n in range(PARTITIONS)], timeout=PATIENCE_S)
    assert [place.offset for place in places] == [10] * PARTITIONS
    first.close()
    assert admin.delete_consumer_groups(["sharing"])["sharing"].result(PATIENCE_S) is None


def test_a_static_member_that_restarts_moves_nothing(door: DoorThread, topic: str) -> None:
    stays = consumer(door, "static", **{"group.instance.id": "one"})
    restarts = consumer(door, "static", **{"group.instance.id": "two"})
    for one in (stays, restarts):
        one.subscribe([topic])
    poll_until(lambda: shares(stays, restarts) == [2, 2], stays, restarts)
    before = described(door, "static")

    restarts.close()
    back = consumer(door, "static", **{"group.instance.id": "two"})
    back.subscribe([topic])
    poll_until(lambda: shares(stays, back) == [2, 2], stays, back)

    after = described(door, "static")
    assert after.generation == before.generation
    assert {m.instance_id: m.partitions for m in after.members} == {
        m.instance_id: m.partitions for m in before.members
    }
    for one in (stays, back):
        one.close()


def test_a_pattern_finds_topics_that_come_later(door: DoorThread) -> None:
    door.run(create_topic(door.broker, CreateTopic(name="found-now", partitions=1)))
    reader = consumer(door, "patterns", **{"group.remote.assignor": "range"})
    reader.subscribe(["^found-.*"])
    poll_until(lambda: shares(reader) == [1], reader)

    door.run(create_topic(door.broker, CreateTopic(name="found-later", partitions=2)))
    poll_until(lambda: shares(reader) == [3], reader)

    assert {place.topic for place in reader.assignment()} == {"found-now", "found-later"}
    view = described(door, "patterns")
    assert (view.protocol, view.members[0].pattern) == ("range", "(^found-.*)")
    reader.close()
