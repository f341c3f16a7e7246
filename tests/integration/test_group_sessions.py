"""Groups of real consumers, some of them killed, against a real broker, which is killed too."""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.integration.clients import NumberedLoad, create_topic
from tests.integration.group_member import CLIENTS, GroupMember
from tests.integration.running_broker import RunningBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PATIENCE_S = 60
PARTITIONS = 6
Enrol = Callable[[str], GroupMember]


@pytest.fixture
def enrol(broker: RunningBroker) -> Iterator[Enrol]:
    """Starts members of one group; none of them outlives its test."""
    members: list[GroupMember] = []

    def start(client: str) -> GroupMember:
        members.append(GroupMember(client, broker.kafka, "load"))
        return members[-1]

    yield start
    for member in members:
        member.kill()


def publish_until(load: NumberedLoad, condition: Callable[[], bool]) -> None:
    """Publish a little at a time until something has come true."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come true"
        load.publish_until_acked(len(load.acked) + 20)


def test_members_of_three_clients_come_and_die_and_nothing_is_lost(
    broker: RunningBroker, enrol: Enrol
) -> None:
    create_topic(broker.kafka, "load", partitions=PARTITIONS)
    load = NumberedLoad(broker.kafka, "load", partitions=PARTITIONS)
    members = [enrol(client) for client in CLIENTS]
    publish_until(load, lambda: all(member.has_read() for member in members))

    for victim in members[:2]:
        victim.kill()
        newcomer = enrol("aiokafka")
        members.append(newcomer)
        publish_until(load, newcomer.has_read)
    load.finish()

    def read() -> set[int]:
        return {value for member in members for value in member.values}

    deadline_s = time.monotonic() + PATIENCE_S
    while len(read()) < load.count:
        assert time.monotonic() < deadline_s, f"{load.count - len(read())} messages were not read"
        time.sleep(0.05)
    assert load.refused == []
    assert read() == set(range(load.count))


def test_committed_offsets_and_the_group_itself_survive_a_kill(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "load", partitions=2)
    load = NumberedLoad(broker.kafka, "load", partitions=2)
    load.publish_until(lambda: load.count >= 100)
    load.finish()
    consumer = Consumer(
        {
            "bootstrap.servers": broker.kafka,
            "group.id": "survivors",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    consumer.subscribe(["load"])
    places = [TopicPartition("load", partition) for partition in range(2)]
    try:
        committed: dict[int, int] = {}
        for count in (30, 60, 90):
            _read_and_commit(consumer, committed, until_count=count)
            broker.kill()
            broker.start()
            found = consumer.committed(places, timeout=PATIENCE_S)
            assert {place.partition: place.offset for place in found if place.offset >= 0} == committed
        rest = _read(consumer, 10)
        assert len(rest) == 10
    finally:
        consumer.close()


def _read_and_commit(consumer: Consumer, committed: dict[int, int], *, until_count: int) -> None:
    """Read on, one message at a time, and note what the broker has acknowledged as committed."""
    while sum(committed.values()) < until_count:
        _read(consumer, 1)
        places = consumer.commit(asynchronous=False)
        assert places is not None
        committed.update({place.partition: place.offset for place in places if place.offset >= 0})


def _read(consumer: Consumer, count: int) -> list[bytes]:
    values: list[bytes] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while len(values) < count:
        assert time.monotonic() < deadline_s, f"only {len(values)} of {count} messages came"
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            values.append(message.value() or b"")
    return values
