"""Groups of real consumers with `group.protocol=consumer`, who come, are killed, and outlive a broker."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.integration.clients import NumberedLoad, create_topic
from tests.integration.conftest import StartBroker
from tests.integration.group_member import CONSUMER_PROTOCOL, GROUP, GroupMember
from tests.integration.running_broker import RunningBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PATIENCE_S = 60
PARTITIONS = 6
Enrol = Callable[[], GroupMember]


@pytest.fixture
def broker(start_broker: StartBroker) -> RunningBroker:
    """One that notices soon when a member has gone."""
    return start_broker("--groups-consumer-heartbeat-ms=200", "--groups-consumer-session-ms=2000")


@pytest.fixture
def enrol(broker: RunningBroker) -> Iterator[Enrol]:
    """Starts members of one group; none of them outlives its test."""
    members: list[GroupMember] = []

    def start() -> GroupMember:
        members.append(GroupMember(CONSUMER_PROTOCOL, broker.kafka, "load"))
        return members[-1]

    yield start
    for member in members:
        member.kill()


def publish_until(load: NumberedLoad, condition: Callable[[], bool]) -> None:
    """Publish a little at a time, as consumers can keep up with, until something has come true."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come true"
        load.publish_until(partial(is_published, load, load.count + 10 * PARTITIONS))
        load.finish()


def is_published(load: NumberedLoad, count: int) -> bool:
    return load.count >= count


def wait_until(condition: Callable[[], bool], problem: Callable[[], str]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, problem()
        time.sleep(0.05)


def committed_in_all(bootstrap: str) -> int:
    """How many messages the group has committed, over all partitions, as a tool sees it."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    try:
        places = [TopicPartition("load", partition) for partition in range(PARTITIONS)]
        return sum(max(place.offset, 0) for place in reader.committed(places, timeout=PATIENCE_S))
    finally:
        reader.close()


def test_members_come_and_die_and_their_broker_too_and_nothing_is_lost(
    broker: RunningBroker, enrol: Enrol
) -> None:
    create_topic(broker.kafka, "load", partitions=PARTITIONS)
    load = NumberedLoad(broker.kafka, "load", partitions=PARTITIONS)
    members = [enrol(), enrol()]
    publish_until(load, lambda: all(member.has_read() for member in members))

    newcomer = enrol()
    members.append(newcomer)
    publish_until(load, newcomer.has_read)
    members[0].kill()
    broker.kill()
    broker.start()
    latecomer = enrol()
    members.append(latecomer)
    publish_until(load, latecomer.has_read)
    load.finish()

    def read() -> set[int]:
        return {value for member in members for value in member.values}

    wait_until(
        lambda: len(read()) == load.count, lambda: f"{load.count - len(read())} messages were not read"
    )
    assert load.refused == []
    assert read() == set(range(load.count))
    wait_until(lambda: committed_in_all(broker.kafka) == load.count, lambda: "not everything was committed")
    admin = AdminClient({"bootstrap.servers": broker.kafka, "log_level": 0})
    described = admin.describe_consumer_groups([GROUP])[GROUP].result(PATIENCE_S)
    owned = [place.partition for m in described.members for place in m.assignment.topic_partitions]
    assert sorted(owned) == list(range(PARTITIONS))
    assert [len(m.assignment.topic_partitions) for m in described.members] == [2, 2, 2]
