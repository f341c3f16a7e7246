"""A mirrored batch: the same records, but no producer's and in no transaction any more."""

import pytest
from crc32c import crc32c

from goqueue.model.errors import Invalid
from goqueue.model.ids import NO_PRODUCER
from goqueue.model.messages import Lane, Message
from goqueue.records.batch import leave_out, open_batch
from goqueue.records.layout import (
    CRC_END,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Codec,
    check_batches,
    read_header,
    stamp_producer,
)
from goqueue.spark.jobs.mirror import unsigned
from tests.unit.spark.framed import batch, rewritten

MESSAGES = [Message(value=b"value", key=b"key"), Message(value=None)]


def test_a_batch_of_nobody_is_copied_byte_for_byte() -> None:
    body = batch(MESSAGES, codec=Codec.LZ4)

    assert unsigned(memoryview(body)) == bytes(body)


@pytest.mark.parametrize("attributes", [0, TRANSACTIONAL])
def test_producer_and_transaction_are_taken_off(attributes: int) -> None:
    body = rewritten(batch(MESSAGES), attributes=attributes)
    stamp_producer(memoryview(body), producer_id=7, producer_epoch=1, base_sequence=40)

    copied = unsigned(memoryview(body))

    header = read_header(copied)
    assert (header.producer_id, header.base_sequence, header.attributes) == (NO_PRODUCER, -1, 0)
    assert header.crc == crc32c(copied[CRC_END:])
    assert copied[HEADER_BYTES:] == body[HEADER_BYTES:]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_batch_with_messages_missing_is_closed_up(codec: Codec) -> None:
    body = memoryview(batch([*MESSAGES, MESSAGES[0]], codec=codec))
    with_gap = leave_out(open_batch(body, Lane.NORMAL), read_header(body), {1})

    copied = unsigned(with_gap)

    [header] = check_batches(memoryview(bytearray(copied)), max_batch_bytes=1_000)
    assert (header.record_count, header.codec) == (2, codec)
    kept = open_batch(memoryview(copied), Lane.NORMAL)
    assert [(message.offset, message.value) for message in kept] == [(0, b"value"), (1, b"value")]


def test_a_topic_with_the_brokers_time_is_refused() -> None:
    body = rewritten(batch(MESSAGES), attributes=LOG_APPEND_TIME)

    with pytest.raises(Invalid, match="use replay"):
        unsigned(memoryview(body))
