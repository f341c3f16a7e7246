"""What Kafka's tools ask about nodes and their disks: log dirs, the quorum, topics a page at a time."""

from types import SimpleNamespace
from typing import Any

from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import ApiKey
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.raw_client import RawClient, record_batch
from tests.doors.kafka.test_versions import versions


@versions(ApiKey.DESCRIBE_LOG_DIRS)
def test_the_size_of_partitions_on_the_disk_is_told(
    raw: RawClient, new_topic: NewTopic, version: int
) -> None:
    topic, other = new_topic(partitions=2).name, new_topic().name
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, record_batch(b"x" * 1_000), partition=1, acks=-1))
    some = (SimpleNamespace(topic=topic, partitions=(1,)), SimpleNamespace(topic="nowhere", partitions=(0,)))

    [folder] = raw.ask(ApiKey.DESCRIBE_LOG_DIRS, version, topics=some).results
    [everything] = raw.ask(ApiKey.DESCRIBE_LOG_DIRS, version, topics=None).results

    assert folder.error_code is ErrorCode.none
    [shown] = folder.topics
    [partition] = shown.partitions
    assert (shown.name, partition.partition_index) == (topic, 1)
    assert partition.partition_size > 1_000
    assert {topic, other} <= {one.name for one in everything.topics}


@versions(ApiKey.ALTER_REPLICA_LOG_DIRS)
def test_there_is_no_other_folder_to_move_a_partition_to(
    raw: RawClient, new_topic: NewTopic, version: int
) -> None:
    moved = SimpleNamespace(name=new_topic().name, partitions=(0,))

    reply = raw.ask(
        ApiKey.ALTER_REPLICA_LOG_DIRS, version, dirs=(SimpleNamespace(path="/elsewhere", topics=(moved,)),)
    )

    assert reply.results[0].partitions[0].error_code is ErrorCode.log_dir_not_found


@versions(ApiKey.DESCRIBE_QUORUM)
def test_the_node_leads_the_quorum_of_one(raw: RawClient, version: int) -> None:
    def asked(topic: str) -> Any:
        partition = SimpleNamespace(partition_index=0)
        wanted = SimpleNamespace(topic_name=topic, partitions=(partition,))
        reply = raw.ask(ApiKey.DESCRIBE_QUORUM, version, topics=(wanted,))
        assert reply.error_code is ErrorCode.none
        return reply.topics[0].partitions[0]

    quorum = asked("__cluster_metadata")

    assert (quorum.error_code, quorum.leader_id) == (ErrorCode.none, 1)
    assert [voter.replica_id for voter in quorum.current_voters] == [1]
    assert asked("another").error_code is ErrorCode.unknown_topic_or_partition


def test_topics_are_described_a_page_at_a_time(raw: RawClient, new_topic: NewTopic) -> None:
    names = sorted(new_topic(partitions=3).name for _ in range(3))
    cursor = None
    seen: list[tuple[str, int]] = []
    pages = 0

    while pages == 0 or cursor is not None:
        reply = raw.ask(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            0,
            topics=tuple(SimpleNamespace(name=name) for name in names),
            response_partition_limit=4,
            cursor=cursor,
        )
        seen += [(topic.name, one.partition_index) for topic in reply.topics for one in topic.partitions]
        cursor, pages = reply.next_cursor, pages + 1

    assert seen == [(name, number) for name in names for number in range(3)]
    assert pages == 3


def test_a_page_tells_who_leads_and_what_is_not_there(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic()

    reply = raw.ask(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=(SimpleNamespace(name=topic.name), SimpleNamespace(name="nowhere")),
        response_partition_limit=100,
        cursor=None,
    )

    missing, shown = sorted(reply.topics, key=lambda one: one.name)
    assert (missing.name, missing.error_code) == ("nowhere", ErrorCode.unknown_topic_or_partition)
    assert (shown.topic_id, shown.error_code) == (topic.topic_id, ErrorCode.none)
    [partition] = shown.partitions
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, (1,), (1,))
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((), ())
