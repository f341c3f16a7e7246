"""Produce: what is refused leaves no trace, what comes twice is stored once, replies keep their order."""

import struct
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import ApiKey
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.raw_client import RawClient, record_batch

VERSION = 9
MAGIC_POSITION = 16
LENGTH_POSITION = 8


def outcome_of(reply: Any) -> Any:
    [topic] = reply.responses
    [outcome] = topic.partition_responses
    return outcome


def ask(raw: RawClient, topic: str, records: bytes | None, **more: Any) -> Any:
    return outcome_of(raw.ask(ApiKey.PRODUCE, VERSION, **requests.produce(topic, records, **more)))


def end_offset(raw: RawClient, topic: str) -> int:
    reply = raw.ask(ApiKey.LIST_OFFSETS, 4, **requests.list_offsets(topic, -1))
    return int(reply.topics[0].partitions[0].offset)


def with_flipped_bit(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def with_length(batch: bytes, length: int) -> bytes:
    return batch[:LENGTH_POSITION] + struct.pack(">i", length) + batch[LENGTH_POSITION + 4 :]


def with_magic(batch: bytes, magic: int) -> bytes:
    return batch[:MAGIC_POSITION] + bytes([magic]) + batch[MAGIC_POSITION + 1 :]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (with_flipped_bit(record_batch(b"a")), ErrorCode.corrupt_message),
        (with_length(record_batch(b"a"), 10_000), ErrorCode.invalid_record),
        (with_length(record_batch(b"a"), -5), ErrorCode.invalid_record),
        (record_batch(b"a")[:30], ErrorCode.invalid_record),
        (record_batch(b"a") + b"tail", ErrorCode.invalid_record),
        (with_magic(record_batch(b"a"), 1), ErrorCode.unsupported_for_message_format),
        (with_magic(record_batch(b"a"), 9), ErrorCode.unsupported_for_message_format),
        (b"", ErrorCode.invalid_record),
        (None, ErrorCode.invalid_record),
        (record_batch(b"a", headers=[("goqueue-priority", b"urgent")]), ErrorCode.invalid_record),
    ],
    ids=[
        "wrong checksum",
        "too long",
        "negative length",
        "cut off",
        "bytes behind",
        "old magic",
        "unknown magic",
        "empty",
        "null",
        "unknown lane",
    ],
)
def test_a_bad_batch_is_refused_and_nothing_is_written(
    raw: RawClient, new_topic: NewTopic, records: bytes | None, code: ErrorCode
) -> None:
    topic = new_topic().name
    ask(raw, topic, record_batch(b"before"))

    outcome = ask(raw, topic, records)

    assert (outcome.error_code, outcome.base_offset) == (code, -1)
    assert outcome.error_message
    assert end_offset(raw, topic) == 1


def test_a_batch_above_the_topics_limit_is_refused(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(max_message_bytes="1000").name

    outcome = ask(raw, topic, record_batch(b"x" * 1_000))

    assert outcome.error_code is ErrorCode.message_too_large
    assert end_offset(raw, topic) == 0


def test_a_refused_record_is_named(raw: RawClient, new_topic: NewTopic) -> None:
    batch = record_batch(b"a", b"b", headers=[("goqueue-priority", b"urgent")])

    outcome = ask(raw, new_topic().name, batch)

    assert [error.batch_index for error in outcome.record_errors] == [0]


def test_a_topic_or_partition_that_is_not_there_is_refused(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name

    assert ask(raw, "no-such", record_batch(b"a")).error_code is ErrorCode.unknown_topic_or_partition
    assert ask(raw, topic, record_batch(b"a"), partition=1).error_code is ErrorCode.unknown_topic_or_partition
    assert (
        ask(raw, topic, record_batch(b"a"), partition=-1).error_code is ErrorCode.unknown_topic_or_partition
    )


def test_an_unknown_topic_id_is_refused(raw: RawClient, new_topic: NewTopic) -> None:
    unknown = new_topic().topic_id.int ^ 1
    request = requests.produce("", record_batch(b"a"), topic_id=type(new_topic().topic_id)(int=unknown))

    reply = raw.ask(ApiKey.PRODUCE, 13, **request)

    assert outcome_of(reply).error_code is ErrorCode.unknown_topic_id


def test_the_brokers_own_topics_cannot_be_written(raw: RawClient) -> None:
    assert ask(raw, "__metadata", record_batch(b"a")).error_code is ErrorCode.invalid_topic_exception


def test_an_unknown_number_of_acks_is_refused(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name

    assert ask(raw, topic, record_batch(b"a"), acks=2).error_code is ErrorCode.invalid_required_acks
    assert end_offset(raw, topic) == 0


def test_a_transactional_batch_of_a_producer_that_nobody_knows_is_refused(
    raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name
    batch = record_batch(b"a", producer_id=777_777, producer_epoch=0, base_sequence=0, is_transactional=True)

    outcome = ask(raw, topic, batch, transactional_id="payments")

    assert outcome.error_code is ErrorCode.invalid_producer_id_mapping
    assert end_offset(raw, topic) == 0


def test_acks_none_has_no_reply_and_is_stored(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name

    raw.send(ApiKey.PRODUCE, VERSION, **requests.produce(topic, record_batch(b"a"), acks=0))

    assert end_offset(raw, topic) == 1


def test_acks_none_that_fails_closes_the_connection(raw: RawClient) -> None:
    raw.send(ApiKey.PRODUCE, VERSION, **requests.produce("no-such", record_batch(b"a"), acks=0))

    assert raw.is_closed()


def test_an_idempotent_batch_that_comes_twice_is_stored_once(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name
    producer_id = new_producer_id(raw)
    batches = [
        record_batch(b"a", b"b", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        for sequence in (0, 2, 4)
    ]

    first = [ask(raw, topic, batch, acks=-1).base_offset for batch in batches]
    again = [ask(raw, topic, batch, acks=-1).base_offset for batch in batches]

    assert first == again == [0, 2, 4]
    assert end_offset(raw, topic) == 6


def test_a_gap_in_the_sequence_is_refused(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name
    producer_id = new_producer_id(raw)
    ask(raw, topic, record_batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=0))

    outcome = ask(raw, topic, record_batch(b"c", producer_id=producer_id, producer_epoch=0, base_sequence=2))

    assert outcome.error_code is ErrorCode.out_of_order_sequence_number
    assert end_offset(raw, topic) == 1


def test_an_older_epoch_of_a_producer_is_fenced(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name
    producer_id = new_producer_id(raw)
    ask(raw, topic, record_batch(b"a", producer_id=producer_id, producer_epoch=1, base_sequence=0))

    outcome = ask(raw, topic, record_batch(b"b", producer_id=producer_id, producer_epoch=0, base_sequence=0))

    assert outcome.error_code is ErrorCode.invalid_producer_epoch


@pytest.mark.parametrize("acks", [1, -1])
def test_replies_leave_in_the_order_of_the_requests(raw: RawClient, new_topic: NewTopic, acks: int) -> None:
    topic = new_topic().name
    sent = []
    for value in (b"a", b"b", b"c"):
        sent.append(
            raw.send(ApiKey.PRODUCE, VERSION, **requests.produce(topic, record_batch(value), acks=acks))
        )
        sent.append(raw.send(ApiKey.METADATA, 9, **requests.metadata(topic)))

    answered = []
    for expected_offset in range(3):
        correlation_id, reply = raw.receive_with_id(ApiKey.PRODUCE, VERSION)
        assert outcome_of(reply).base_offset == expected_offset
        answered.append(correlation_id)
        answered.append(raw.receive_with_id(ApiKey.METADATA, 9)[0])

    assert answered == sent


def test_a_large_batch_that_arrives_in_pieces_is_stored_whole(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name
    value = bytes(range(256)) * 32_768

    assert ask(raw, topic, record_batch(value), acks=-1).error_code is ErrorCode.none

    fetched = raw.ask(ApiKey.FETCH, 12, **requests.fetch(topic, 0))
    assert value in fetched.responses[0].partitions[0].records


def test_priorities_split_a_batch_without_changing_offsets(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name

    outcome = ask(raw, topic, record_batch(b"a", b"b", headers=[("goqueue-priority", b"high")]))

    assert (outcome.error_code, outcome.base_offset) == (ErrorCode.none, 0)
    assert end_offset(raw, topic) == 2


def new_producer_id(raw: RawClient) -> int:
    reply = raw.ask(
        ApiKey.INIT_PRODUCER_ID, 1, transactional_id=None, transaction_timeout=requests.SECOND
    )  # fmt: skip
    return int(reply.producer_id)
