"""Three real nodes and Kafka's own admin clients: whichever node they come to, they hear the right thing."""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # of those it exports a few by name
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaAdminClient
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest

from tests.integration.running_cluster import RunningCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
NOT_LEADER, NOT_COORDINATOR = 6, 16


@pytest.fixture(params=["first", "second", "third"])
def admin(all_three: RunningCluster, request: pytest.FixtureRequest) -> Iterator[AdminClient]:
    """A client that was told of one node."""
    at = all_three.kafka[["first", "second", "third"].index(request.param)]
    yield AdminClient({"bootstrap.servers": at})


def results(futures: Any) -> list[Any]:
    return [future.result(30) for future in futures.values()]


def wait_until(holds: Callable[[], object], within_s: float = 60) -> None:
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, "it did not come to be"
        time.sleep(0.05)


def test_a_topic_lives_from_its_creation_to_its_end(admin: AdminClient, all_three: RunningCluster) -> None:
    name = f"life-{time.monotonic_ns()}"
    results(admin.create_topics([NewTopic(name, 4, 3)]))
    for at in all_three.kafka:
        topic = AdminClient({"bootstrap.servers": at}).list_topics(name, timeout=20).topics[name]
        assert topic.error is None, topic.error
        assert {len(partition.replicas) for partition in topic.partitions.values()} == {3}
    results(admin.create_partitions([NewPartitions(name, 6)]))
    setting = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[setting])
    results(admin.incremental_alter_configs([resource]))
    for at in all_three.kafka:
        other = AdminClient({"bootstrap.servers": at})
        assert len(other.list_topics(name, timeout=20).topics[name].partitions) == 6
        [described] = results(other.describe_configs([ConfigResource(ResourceType.TOPIC, name)]))
        assert described["retention.ms"].value == "3600000"
    producer = Producer({"bootstrap.servers": all_three.kafka[0]})
    for number in range(60):
        producer.produce(name, b"%d" % number, partition=number % 6)
    assert producer.flush(30) == 0
    places = [TopicPartition(name, number) for number in range(6)]
    latest, earliest = OffsetSpec.latest(), OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    ends = admin.list_offsets(dict.fromkeys(places, latest))
    assert [end.offset for end in results(ends)] == [10] * 6
    deleted = admin.delete_records([TopicPartition(name, number, 4) for number in range(6)])
    assert [one.low_watermark for one in results(deleted)] == [4] * 6
    starts = admin.list_offsets(dict.fromkeys(places, earliest))
    assert [start.offset for start in results(starts)] == [4] * 6
    results(admin.delete_topics([name]))
    for at in all_three.kafka:
        assert name not in AdminClient({"bootstrap.servers": at}).list_topics(timeout=20).topics


def test_what_cannot_be_is_refused_with_its_reason(admin: AdminClient) -> None:
    def refused(futures: Any) -> str:
        with pytest.raises(KafkaException) as raised:
            results(futures)
        return str(raised.value.args[0].name())

    assert refused(admin.create_topics([NewTopic("four", 1, 4)])) == "INVALID_REPLICATION_FACTOR"
    for nodes in ([[1, 9]], [[1, 1]], [[1, 2], [3]]):
        placed = NewTopic("placed", num_partitions=len(nodes), replica_assignment=nodes)
        assert refused(admin.create_topics([placed])) == "INVALID_REPLICA_ASSIGNMENT"
    assert refused(admin.delete_topics(["nothing"])) == "UNKNOWN_TOPIC_OR_PART"


def test_copies_are_placed_by_hand(admin: AdminClient) -> None:
    name, nodes = f"placed-{time.monotonic_ns()}", [[3, 1], [2, 3]]
    results(admin.create_topics([NewTopic(name, num_partitions=2, replica_assignment=nodes)]))
    results(admin.create_partitions([NewPartitions(name, 3, replica_assignment=[[1, 2]])]))
    partitions = admin.list_topics(name, timeout=20).topics[name].partitions
    assert [partitions[number].replicas for number in range(3)] == [*nodes, [1, 2]]


def test_groups_are_listed_described_changed_and_deleted(
    admin: AdminClient, all_three: RunningCluster
) -> None:
    topic, groups = f"read-{time.monotonic_ns()}", [f"g{time.monotonic_ns()}-{n}" for n in range(6)]
    results(admin.create_topics([NewTopic(topic, 1, 3)]))
    producer = Producer({"bootstrap.servers": all_three.kafka[0]})
    producer.produce(topic, b"v")
    assert producer.flush(30) == 0
    for group in groups:
        commit = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 1)])
        results(admin.alter_consumer_group_offsets([commit]))
    listed = admin.list_consumer_groups(request_timeout=20).result(30)
    assert listed.errors == []
    assert set(groups) <= {found.group_id for found in listed.valid}, "all nodes were asked for their own"
    for group in groups:
        [described] = results(admin.describe_consumer_groups([group], request_timeout=20))
        assert described.group_id == group
        [offsets] = results(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
        assert [(place.topic, place.offset) for place in offsets.topic_partitions] == [(topic, 1)]
    results(admin.delete_consumer_groups(groups, request_timeout=20))
    listed = admin.list_consumer_groups(request_timeout=20).result(30)
    assert not set(groups) & {found.group_id for found in listed.valid}


def test_a_node_that_does_not_lead_says_so(all_three: RunningCluster) -> None:
    admin = KafkaAdminClient(bootstrap_servers=all_three.kafka)
    try:
        admin.create_topics({"asked": {"num_partitions": 3, "replication_factor": 3}})
        leaders = {
            partition["partition_index"]: partition["leader_id"]
            for partition in admin.describe_topics(["asked"])[0]["partitions"]
        }
        for number, leader in leaders.items():
            for node in (1, 2, 3):
                topic = ListOffsetsRequest.ListOffsetsTopic
                asked = ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=0,
                    topics=[
                        topic(
                            name="asked",
                            partitions=[topic.ListOffsetsPartition(partition_index=number, timestamp=-2)],
                        )
                    ],
                )
                reply = admin._manager.run(partial(admin._manager.send, asked, node_id=node))
                [told] = reply.topics[0].partitions
                assert told.error_code == (0 if node == leader else NOT_LEADER), (number, node, leader)
        codes = []
        for node in (1, 2, 3):
            asked = DescribeGroupsRequest(groups=["any"], include_authorized_operations=False)
            reply = admin._manager.run(partial(admin._manager.send, asked, node_id=node))
            codes.append(reply.groups[0].error_code)
        assert sorted(codes) == [0, NOT_COORDINATOR, NOT_COORDINATOR]
    finally:
        admin.close()


def test_another_client_makes_and_deletes_topics_too(all_three: RunningCluster) -> None:
    async def work() -> None:
        for at in all_three.kafka:
            admin = AIOKafkaAdminClient(bootstrap_servers=at)
            await admin.start()
            try:
                name = f"aio-{time.monotonic_ns()}"
                await admin.create_topics([AioNewTopic(name, 2, 3)])
                [topic] = await admin.describe_topics([name])
                assert topic["error_code"] == 0
                assert [len(partition["replicas"]) for partition in topic["partitions"]] == [3, 3]
                await admin.delete_topics([name])
                assert name not in await admin.list_topics()
            finally:
                await admin.close()

    asyncio.run(work())


def test_a_group_goes_on_when_its_coordinator_dies_and_all_is_acknowledged_by_those_left(
    all_three: RunningCluster,
) -> None:
    servers = ",".join(all_three.kafka)
    admin = AdminClient({"bootstrap.servers": servers})
    results(admin.create_topics([NewTopic("surviving", 6, 3)]))
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "enable.idempotence": True})
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "survivors",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6_000,
        }
    )
    consumer.subscribe(["surviving"])
    read: list[bytes] = []

    def publish(numbers: range) -> None:
        for number in numbers:
            producer.produce("surviving", b"%d" % number, key=b"%d" % number)
        assert producer.flush(60) == 0, "the others in sync acknowledge"

    def read_up_to(count: int) -> None:
        deadline_s = time.monotonic() + 60
        while len(set(read)) < count:
            assert time.monotonic() < deadline_s, f"{len(set(read))} of {count}"
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                value = message.value()
                assert value is not None
                read.append(value)
                commit(consumer)

    publish(range(50))
    read_up_to(50)
    [described] = results(admin.describe_consumer_groups(["survivors"], request_timeout=20))
    name = f"node-{described.coordinator.id}"
    all_three.child(name).kill()
    publish(range(50, 100))
    read_up_to(100)
    assert len(read) < 120, "what was committed before is not read again"
    consumer.close()
    all_three.wait_for(f"{name}   ready")


def commit(consumer: Consumer) -> None:
    """As clients do: what is refused while the coordinator changes is said again with the next."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as refused:
        if not refused.args[0].retriable() and refused.args[0].name() not in (
            "_NO_OFFSET",
            "REBALANCE_IN_PROGRESS",
            "ILLEGAL_GENERATION",
            "UNKNOWN_MEMBER_ID",
        ):
            raise
