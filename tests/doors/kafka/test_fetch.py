"""Fetch: long polls, limits, sessions that are not there, and errors a partition."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import ApiKey
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient, record_batch

VERSION = 12
LONG = timedelta(seconds=60)


def publish(raw: RawClient, topic: str, *values: bytes, partition: int = 0) -> None:
    request = requests.produce(topic, record_batch(*values), partition=partition, acks=-1)
    reply = raw.ask(ApiKey.PRODUCE, 9, **request)
    assert reply.responses[0].partition_responses[0].error_code is ErrorCode.none


def ask(raw: RawClient, topic: str, offset: int, **more: Any) -> Any:
    reply = raw.ask(ApiKey.FETCH, VERSION, **requests.fetch(topic, offset, **more))
    return reply.responses[0].partitions[0]


def test_a_long_poll_ends_when_data_comes(door: DoorThread, raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name
    raw.send(ApiKey.FETCH, VERSION, **requests.fetch(topic, 0, max_wait=LONG))

    with RawClient(door.port) as other:
        publish(other, topic, b"late")

    reply = raw.receive(ApiKey.FETCH, VERSION)
    assert b"late" in reply.responses[0].partitions[0].records


def test_a_long_poll_ends_when_its_time_is_up(raw: RawClient, new_topic: NewTopic) -> None:
    partition = ask(raw, new_topic().name, 0, max_wait=timedelta(milliseconds=20))

    assert (partition.error_code, partition.records) == (ErrorCode.none, b"")


def test_a_long_poll_waits_for_the_least_number_of_bytes(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name
    raw.send(ApiKey.FETCH, VERSION, **requests.fetch(topic, 0, max_wait=LONG, min_bytes=1_000))

    with RawClient(door.port) as other:
        for _ in range(3):
            publish(other, topic, b"x" * 400)

    records = raw.receive(ApiKey.FETCH, VERSION).responses[0].partitions[0].records
    assert len(records) >= 1_000


@pytest.mark.parametrize("offset", [-1, 3])
def test_an_offset_outside_the_log_is_refused_at_once(
    raw: RawClient, new_topic: NewTopic, offset: int
) -> None:
    topic = new_topic().name
    publish(raw, topic, b"a", b"b")

    assert ask(raw, topic, offset, max_wait=LONG).error_code is ErrorCode.offset_out_of_range


def test_a_partition_that_is_not_there_is_refused_at_once(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name

    for partition in (ask(raw, "no-such", 0, max_wait=LONG), ask(raw, topic, 0, partition=7, max_wait=LONG)):
        assert partition.error_code is ErrorCode.unknown_topic_or_partition


def test_an_unknown_topic_id_is_refused_at_once(raw: RawClient) -> None:
    reply = raw.ask(ApiKey.FETCH, 16, **requests.fetch("", 0, topic_id=UUID(int=9), max_wait=LONG))

    assert reply.responses[0].partitions[0].error_code is ErrorCode.unknown_topic_id


@pytest.mark.parametrize(
    ("step", "code"), [(-1, ErrorCode.fenced_leader_epoch), (1, ErrorCode.unknown_leader_epoch)]
)
def test_a_reader_with_another_leader_epoch_must_refresh(
    raw: RawClient, new_topic: NewTopic, step: int, code: ErrorCode
) -> None:
    topic = new_topic()
    epoch = topic.partitions[0].leader_epoch

    assert ask(raw, topic.name, 0, leader_epoch=epoch).error_code is ErrorCode.none
    assert ask(raw, topic.name, 0, leader_epoch=epoch + step).error_code is code


def test_there_are_no_sessions_and_that_is_said(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name

    wanted = raw.ask(ApiKey.FETCH, VERSION, **requests.fetch(topic, 0, session_id=0, session_epoch=0))
    foreign = raw.ask(ApiKey.FETCH, VERSION, **requests.fetch(topic, 0, session_id=5, session_epoch=1))

    assert (wanted.error_code, wanted.session_id) == (ErrorCode.none, 0)
    assert (foreign.error_code, foreign.responses) == (ErrorCode.fetch_session_id_not_found, ())


def test_those_who_read_committed_get_a_list_of_aborted_transactions(
    raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name

    assert ask(raw, topic, 0, isolation_level=0).aborted_transactions is None
    assert ask(raw, topic, 0, isolation_level=1).aborted_transactions == ()


def test_a_limit_below_one_batch_still_brings_that_batch(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name
    publish(raw, topic, b"x" * 10_000)
    publish(raw, topic, b"z" * 10_000)

    records = ask(raw, topic, 0, partition_max_bytes=100, max_bytes=100).records

    assert b"x" * 10_000 in records
    assert b"z" * 100 not in records


def fetch_of_all(topic: str, partitions: int, **limits: Any) -> dict[str, Any]:
    request: dict[str, Any] = requests.fetch(topic, 0, **limits)
    [asked] = request["topics"]
    [pattern] = asked.partitions
    asked.partitions = tuple(
        SimpleNamespace(**{**vars(pattern), "partition": number}) for number in range(partitions)
    )
    return request


@pytest.mark.parametrize(("partition_max_bytes", "max_bytes"), [(400, 100_000), (100_000, 4_000), (400, 400)])
def test_only_the_first_batch_of_all_may_be_larger_than_asked(
    raw: RawClient, new_topic: NewTopic, partition_max_bytes: int, max_bytes: int
) -> None:
    topic = new_topic(partitions=10).name
    for partition in range(1, 10):  # the first has nothing, so it is not the one that may
        publish(raw, topic, b"x" * 5_000, partition=partition)
    publish(raw, topic, b"y" * 5_000, partition=1)

    # Whoever waits for more than fits is answered as well: there is more, and no room for it.
    limits = {"partition_max_bytes": partition_max_bytes, "max_bytes": max_bytes}
    request = fetch_of_all(topic, 10, min_bytes=50_000, max_wait=LONG, **limits)
    partitions = raw.ask(ApiKey.FETCH, VERSION, **request).responses[0].partitions

    assert [len(one.records) > 5_000 for one in partitions] == [False, True] + [False] * 8
    assert [one.records for one in partitions[2:]] == [b""] * 8
    assert b"y" * 100 not in partitions[1].records
    assert [one.high_watermark for one in partitions] == [0, 2] + [1] * 8


def test_what_fits_behind_a_batch_that_does_not_comes_too(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3).name
    for partition, size in enumerate((1_000, 5_000, 1_000)):
        publish(raw, topic, b"x" * size, partition=partition)

    request = fetch_of_all(topic, 3, partition_max_bytes=2_000, max_bytes=4_000)
    partitions = raw.ask(ApiKey.FETCH, VERSION, **request).responses[0].partitions

    assert [len(one.records) > 1_000 for one in partitions] == [True, False, True]


def test_many_small_batches_and_few_large_ones_come_whole(raw: RawClient, new_topic: NewTopic) -> None:
    small, large = new_topic().name, new_topic().name
    for number in range(300):
        publish(raw, small, b"%d" % number)
    for letter in b"abcd":
        publish(raw, large, bytes([letter]) * 100_000)

    few, many = ask(raw, large, 0).records, ask(raw, small, 0).records

    assert all(bytes([letter]) * 100_000 in few for letter in b"abcd")
    assert len(many) == sum(len(record_batch(b"%d" % number)) for number in range(300))


def test_several_partitions_come_in_the_order_asked_each_with_its_own_answer(
    raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic(partitions=3).name
    publish(raw, topic, b"zero", partition=0)
    publish(raw, topic, b"two", partition=2)
    request: dict[str, Any] = requests.fetch(topic, 0)
    [asked] = request["topics"]
    [pattern] = asked.partitions
    asked.partitions = tuple(SimpleNamespace(**{**vars(pattern), "partition": p}) for p in (2, 7, 0, 1))

    partitions = raw.ask(ApiKey.FETCH, VERSION, **request).responses[0].partitions

    assert [partition.partition_index for partition in partitions] == [2, 7, 0, 1]
    assert [partition.high_watermark for partition in partitions] == [1, -1, 1, 0]
    assert b"two" in partitions[0].records
    assert b"zero" in partitions[2].records
    assert partitions[1].error_code is ErrorCode.unknown_topic_or_partition
