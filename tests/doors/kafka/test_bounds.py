"""Counts that a client names: each has its bound, and a short request has no endless reply."""

import struct
from types import SimpleNamespace

import pytest
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.kafka.wire import REQUEST_ITEMS_MAX
from goqueue.model.settings import BrokerConfig, GroupConfig, KiB, Limits, MiB
from tests.doors.kafka import group_requests, requests
from tests.doors.kafka.conftest import NewTopic, OpenDoor
from tests.doors.kafka.raw_client import RawClient, encode_request, record_batch


def test_a_request_of_too_many_items_is_refused(raw: RawClient) -> None:
    names = ("a",) * (REQUEST_ITEMS_MAX + 1)

    raw.send(ApiKey.DESCRIBE_GROUPS, 4, groups=names, include_authorized_operations=False)

    assert raw.is_closed()


def test_items_of_all_arrays_count_together(raw: RawClient) -> None:
    half = REQUEST_ITEMS_MAX // 2 + 1
    topics = tuple(SimpleNamespace(name=name, partition_indexes=(0,) * half) for name in ("a", "b"))

    raw.send(ApiKey.OFFSET_FETCH, 5, group_id="g", topics=topics)

    assert raw.is_closed()


def test_only_a_produce_may_be_as_large_as_batches_are(open_door: OpenDoor) -> None:
    door = open_door(kafka_config=KafkaConfig(plain_request_bytes_max=64 * KiB))
    with RawClient(door.port) as raw:
        raw.ask(ApiKey.METADATA, 9, **requests.metadata("large", create=True))
        batch = record_batch(b"x" * 100_000)
        reply = raw.ask(ApiKey.PRODUCE, 9, **requests.produce("large", batch))
        assert reply.responses[0].partition_responses[0].error_code is ErrorCode.none

        raw.send(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=("x" * 30_000,) * 3)

        assert raw.is_closed()


def test_what_is_asked_for_often_is_told_once(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    often = 1_000

    named = raw.ask(ApiKey.METADATA, 9, **requests.metadata(*(topic.name,) * often))
    by_id = raw.ask(
        ApiKey.METADATA,
        12,
        **{
            **requests.metadata(),
            "topics": tuple(SimpleNamespace(name=str(n), topic_id=topic.topic_id) for n in range(often)),
        },
    )
    groups = raw.ask(ApiKey.DESCRIBE_GROUPS, 4, groups=("g",) * often, include_authorized_operations=False)
    resource = SimpleNamespace(resource_type=2, resource_name=topic.name, configuration_keys=None)
    configs = raw.ask(
        ApiKey.DESCRIBE_CONFIGS,
        1,
        resources=(resource,) * often,
        include_synonyms=False,
        include_documentation=False,
    )

    assert [len(reply.topics) for reply in (named, by_id)] == [1, 1]
    assert [len(groups.groups), len(configs.results)] == [1, 1]


def test_all_topics_together_have_a_bound(open_door: OpenDoor) -> None:
    door = open_door(BrokerConfig(limits=Limits(partitions=5)))
    with RawClient(door.port) as raw:

        def create(name: str, partitions: int) -> ErrorCode:
            reply = raw.ask(ApiKey.CREATE_TOPICS, 5, **requests.create_topic(name, partitions=partitions))
            return ErrorCode(reply.topics[0].error_code)

        assert create("first", 4) is ErrorCode.none
        assert create("second", 2) is ErrorCode.invalid_partitions
        assert create("second", 1) is ErrorCode.none
        grown = SimpleNamespace(name="first", count=5, assignments=None)
        reply = raw.ask(
            ApiKey.CREATE_PARTITIONS, 1, topics=(grown,), timeout=requests.SECOND, validate_only=False
        )
        assert reply.results[0].error_code is ErrorCode.invalid_partitions


def test_a_member_says_no_more_of_itself_than_it_may(open_door: OpenDoor) -> None:
    door = open_door(BrokerConfig(groups=GroupConfig(initial_delay_ms=0)))
    with RawClient(door.port) as raw:
        protocols = tuple(SimpleNamespace(name=f"p{n}", metadata=b"x" * (MiB // 2)) for n in range(3))

        reply = raw.ask(
            ApiKey.JOIN_GROUP, 3, **{**group_requests.join("g", "m"), "protocols": protocols, "member_id": ""}
        )

        assert reply.error_code is ErrorCode.offset_metadata_too_large


@pytest.mark.parametrize("size", [1, 3, 40])
def test_a_tagged_field_that_is_longer_than_it_says_is_refused(raw: RawClient, size: int) -> None:
    frame = encode_request(
        ApiKey.DESCRIBE_CLUSTER, 1, 7, include_cluster_authorized_operations=False, endpoint_type=1
    )
    raw.send_frame(frame[:-1] + struct.pack(">BBB", 1, 0, 60 + size) + b"x" * size)

    assert raw.is_closed()
