"""Batches from outside: what is let in, and what each kind of damage is called."""

from collections.abc import Callable

import pytest
from crc32c import crc32c

from goqueue.model.errors import (
    InvalidBatch,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    UnsupportedFormat,
    WrongChecksum,
)
from goqueue.model.messages import Message
from goqueue.records.batch import encode, open_batch
from goqueue.records.layout import CRC_END, check_batches, patch, read_header

MAX_BYTES = 1024 * 1024


def a_batch(count: int = 3) -> bytearray:
    [(body, _)] = encode([Message(b"value %d" % n) for n in range(count)], now_ms=1_700_000_000_000)
    return bytearray(body)


def checked(batch: bytearray) -> object:
    return check_batches(memoryview(batch), max_batch_bytes=MAX_BYTES)


def test_good_batches_are_read_one_after_the_other() -> None:
    headers = check_batches(memoryview(a_batch(3) + a_batch(2)), max_batch_bytes=MAX_BYTES)

    assert [header.record_count for header in headers] == [3, 2]
    assert headers[0].max_timestamp_ms == 1_700_000_000_000


def flip_a_value(batch: bytearray) -> None:
    batch[-1] ^= 1


def flip_the_checksum(batch: bytearray) -> None:
    batch[CRC_END - 1] ^= 1


def use_an_old_magic(batch: bytearray) -> None:
    batch[16] = 1


def claim_more_bytes_than_there_are(batch: bytearray) -> None:
    batch[8:12] = (len(batch) - 12 + 1).to_bytes(4, "big")


def claim_a_negative_length(batch: bytearray) -> None:
    batch[8:12] = (-5).to_bytes(4, "big", signed=True)


def lose_the_tail(batch: bytearray) -> None:
    del batch[-3:]


def end_within_the_header(batch: bytearray) -> None:
    del batch[40:]


def be_empty(batch: bytearray) -> None:
    batch.clear()


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (flip_a_value, WrongChecksum),
        (flip_the_checksum, WrongChecksum),
        (use_an_old_magic, UnsupportedFormat),
        (claim_more_bytes_than_there_are, InvalidBatch),
        (claim_a_negative_length, InvalidBatch),
        (lose_the_tail, InvalidBatch),
        (end_within_the_header, InvalidBatch),
        (be_empty, InvalidBatch),
    ],
)
def test_each_kind_of_damage_has_its_error(
    damage: Callable[[bytearray], None], error: type[InvalidBatch]
) -> None:
    batch = a_batch()
    damage(batch)

    with pytest.raises(InvalidBatch) as raised:
        checked(batch)
    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("attributes", "error"), [(0x20, InvalidRecord), (0x08, InvalidRecord), (0x07, InvalidBatch)]
)
def test_a_producer_cannot_send_what_only_the_broker_writes(
    attributes: int, error: type[InvalidBatch]
) -> None:
    batch = a_batch()
    batch[21:23] = attributes.to_bytes(2, "big")
    seal_checksum(batch)

    with pytest.raises(error):
        checked(batch)


def test_a_count_that_contradicts_the_offsets_is_refused() -> None:
    batch = a_batch()
    batch[57:61] = (7).to_bytes(4, "big")
    seal_checksum(batch)

    with pytest.raises(InvalidBatch, match="7 records"):
        checked(batch)


@pytest.mark.parametrize("timestamp", [1_750_000_000_000_000, -(2**62)])
def test_a_time_that_is_not_in_milliseconds_is_refused(timestamp: int) -> None:
    batch = a_batch()
    batch[35:43] = timestamp.to_bytes(8, "big", signed=True)
    seal_checksum(batch)

    with pytest.raises(InvalidTimestamp, match="milliseconds"):
        checked(batch)


def test_a_batch_over_the_limit_is_too_large() -> None:
    with pytest.raises(MessageTooLarge):
        check_batches(memoryview(a_batch()), max_batch_bytes=50)


def test_patching_offset_and_epoch_leaves_the_checksum_true() -> None:
    batch = memoryview(a_batch())

    patch(batch, base_offset=42, leader_epoch=7)

    [header] = check_batches(batch, max_batch_bytes=MAX_BYTES)
    assert (header.base_offset, header.leader_epoch, header.end_offset) == (42, 7, 45)
    assert [message.offset for message in open_batch(batch, 2)] == [42, 43, 44]
    assert read_header(batch) == header


def seal_checksum(batch: bytearray) -> None:
    batch[17:21] = crc32c(batch[CRC_END:]).to_bytes(4, "big")
