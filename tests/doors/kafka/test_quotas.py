"""Tenants at the Kafka door: whoever goes too fast is told and held back; other quotas refuse by a code."""

import select
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.tenants.verbs import create_tenant, set_status, tenant_usage
from goqueue.broker.topics.verbs import create_topic, describe_topic
from goqueue.edge.kafka.apis import ApiKey
from goqueue.model.tenant_commands import CreateTenant, DescribeUsage, SetStatus
from goqueue.model.tenants import UNLIMITED_QUOTAS, TenantStatus
from goqueue.model.topics import CreateTopic, DescribeTopic
from tests.doors.kafka import group_requests, requests, test_share_groups
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient, record_batch

_numbers = count(1)


@pytest.fixture
def tenant() -> str:
    """The id of a tenant that no other test uses."""
    return f"tenant-{next(_numbers)}"


@pytest.fixture
def free(door: DoorThread) -> str:
    """A topic that no tenant owns."""
    return door.run(create_topic(door.broker, CreateTopic(name=f"free-{next(_numbers)}", partitions=1))).name


@pytest.fixture
def other(door: DoorThread) -> Iterator[RawClient]:
    """A second client."""
    with RawClient(door.port) as client:
        yield client


def with_topic(door: DoorThread, tenant: str, **quotas: int) -> str:
    """A tenant that has no limits but these, and its topic."""
    command = CreateTenant(tenant_id=tenant, name=tenant, quotas=replace(UNLIMITED_QUOTAS, **quotas))
    door.run(create_tenant(door.broker, command))
    return door.run(create_topic(door.broker, CreateTopic(name=f"{tenant}.orders", partitions=1))).name


def publish(raw: RawClient, topic: str, *values: bytes) -> tuple[ErrorCode, timedelta]:
    reply = raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, record_batch(*values)))
    return reply.responses[0].partition_responses[0].error_code, reply.throttle_time


def fetch(raw: RawClient, topic: str, offset: int = 0, **wishes: Any) -> tuple[Any, timedelta]:
    reply = raw.ask(ApiKey.FETCH, 12, **requests.fetch(topic, offset, **wishes))
    return reply.responses[0].partitions[0], reply.throttle_time


@pytest.mark.parametrize("version", [3, 9])
def test_a_producer_that_is_too_fast_is_told_to_wait_and_held_back_for_so_long(
    door: DoorThread, raw: RawClient, tenant: str, free: str, version: int
) -> None:
    topic = with_topic(door, tenant, publish_rate_limit=20)

    reply = raw.ask(ApiKey.PRODUCE, version, **requests.produce(topic, record_batch(*[b"x"] * 26)))
    told_s = time.monotonic()
    throttle = reply.throttle_time
    assert reply.responses[0].partition_responses[0].error_code is ErrorCode.none
    assert timedelta(milliseconds=200) < throttle <= timedelta(milliseconds=300)

    assert publish(raw, free, b"x") == (ErrorCode.none, timedelta(0))

    # The hold began a little before its reply was read here.
    assert time.monotonic() - told_s > throttle.total_seconds() - 0.1
    code, throttle = publish(raw, topic, b"x")
    assert code is ErrorCode.none and throttle <= timedelta(milliseconds=50)
    assert door.broker.topic(topic).partitions[0].log.end_offset == 27


def test_others_go_on_while_one_is_held_back_and_the_door_does_not_wait_for_it(
    door: DoorThread, raw: RawClient, other: RawClient, tenant: str, free: str
) -> None:
    topic = with_topic(door, tenant, publish_rate_limit=1)
    _, throttle = publish(raw, topic, *[b"x"] * 31)
    assert throttle > timedelta(seconds=29)

    raw.send(ApiKey.PRODUCE, 9, **requests.produce(free, record_batch(b"held")))
    assert publish(other, free, b"x") == (ErrorCode.none, timedelta(0))

    assert select.select([raw.socket], [], [], 0)[0] == []
    assert door.broker.topic(free).partitions[0].log.end_offset == 1


def test_a_producer_that_wants_no_replies_is_held_back_all_the_same(
    door: DoorThread, raw: RawClient, other: RawClient, tenant: str, free: str
) -> None:
    topic = with_topic(door, tenant, publish_rate_limit=1)
    raw.send(ApiKey.PRODUCE, 9, **requests.produce(topic, record_batch(*[b"x"] * 31), acks=0))
    raw.send(ApiKey.PRODUCE, 9, **requests.produce(free, record_batch(b"held")))

    while door.broker.topic(topic).partitions[0].log.end_offset < 31:
        assert publish(other, free, b"x")[0] is ErrorCode.none

    records = fetch(other, free)[0].records
    assert b"held" not in records


def test_bytes_count_as_they_travel(door: DoorThread, raw: RawClient, tenant: str) -> None:
    topic = with_topic(door, tenant, publish_bytes_rate_limit=10_000)

    _, throttle = publish(raw, topic, b"x" * 11_000)

    assert timedelta(milliseconds=80) < throttle < timedelta(milliseconds=200)


def test_a_reader_in_debt_gets_nothing_until_it_is_paid(
    door: DoorThread, raw: RawClient, other: RawClient, tenant: str
) -> None:
    topic = with_topic(door, tenant, consume_rate_limit=20)
    publish(raw, topic, *[b"x"] * 34)

    partition, throttle = fetch(raw, topic)
    assert len(partition.records) > 100
    assert timedelta(milliseconds=600) < throttle <= timedelta(milliseconds=700)
    partition, throttle = fetch(other, topic, max_wait=timedelta(seconds=20))
    assert (partition.error_code, partition.high_watermark) == (ErrorCode.none, 34)
    assert not partition.records and throttle > timedelta(0)
    partition, _ = fetch(other, topic)
    assert partition.records, "the second request waited until the debt was paid"
    assert tenant_usage(door.broker, DescribeUsage(tenant_id=tenant)).totals.messages_consumed == 68


def test_a_fetch_brings_no_more_than_a_second_allows(door: DoorThread, raw: RawClient, tenant: str) -> None:
    topic = with_topic(door, tenant, consume_bytes_rate_limit=3_000)
    for _ in range(10):
        publish(raw, topic, b"x" * 900)

    partition, throttle = fetch(raw, topic)

    assert 900 < len(partition.records) <= 3_000
    assert throttle == timedelta(0)


def test_a_share_consumer_takes_what_a_second_allows_and_is_held_back_then(
    door: DoorThread, raw: RawClient, tenant: str
) -> None:
    describing = DescribeTopic(name=with_topic(door, tenant, consume_rate_limit=5))
    topic = door.run(describe_topic(door.broker, describing))
    publish(raw, topic.name, *[b"x"] * 8)
    group, member = f"{tenant}.workers", "ann"
    test_share_groups.join(raw, group, member, topic)

    first = test_share_groups.fetch(raw, group, member, 0, topic, limit=100)
    assert test_share_groups.acquired(first) == [(0, 4, 1)]
    replies = [test_share_groups.fetch(raw, group, member, epoch, topic, limit=100) for epoch in (1, 2, 3)]

    # At least one message goes to whoever is not in debt, and then there is one.
    throttles = [reply.throttle_time for reply in replies]
    assert max(throttles) > timedelta(milliseconds=50)
    assert all(not reply.responses for reply in replies if reply.throttle_time)


def test_other_quotas_refuse_with_codes_that_clients_do_not_retry(
    door: DoorThread, raw: RawClient, tenant: str
) -> None:
    topic = with_topic(door, tenant, max_storage_bytes=600, max_message_size_bytes=500, max_topics=1)

    assert publish(raw, topic, b"x" * 501)[0] is ErrorCode.message_too_large
    assert publish(raw, topic, b"x" * 200, b"x" * 200)[0] is ErrorCode.none
    assert publish(raw, topic, b"x" * 200)[0] is ErrorCode.none
    assert publish(raw, topic, b"x")[0] is ErrorCode.policy_violation
    reply = raw.ask(ApiKey.CREATE_TOPICS, 5, **requests.create_topic(f"{tenant}.more"))
    assert reply.topics[0].error_code is ErrorCode.policy_violation
    assert "may have 1 topics" in reply.topics[0].error_message


def test_a_suspended_tenants_topics_and_groups_are_not_for_anybody(
    door: DoorThread, raw: RawClient, tenant: str, free: str
) -> None:
    topic = with_topic(door, tenant)
    publish(raw, topic, b"x")
    door.run(
        set_status(door.broker, SetStatus(tenant_id=tenant, status=TenantStatus.SUSPENDED, reason="bill"))
    )

    assert publish(raw, topic, b"x")[0] is ErrorCode.topic_authorization_failed
    assert fetch(raw, topic)[0].error_code is ErrorCode.topic_authorization_failed
    joined = raw.ask(ApiKey.JOIN_GROUP, 5, **group_requests.join(f"{tenant}.workers"))
    assert joined.error_code is ErrorCode.group_authorization_failed
    assert publish(raw, free, b"x")[0] is ErrorCode.none
    door.run(set_status(door.broker, SetStatus(tenant_id=tenant, status=TenantStatus.ACTIVE)))
    assert fetch(raw, topic)[0].records
