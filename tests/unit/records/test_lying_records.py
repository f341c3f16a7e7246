"""Records that lie about themselves in a batch whose checksum is right: batches are stored unopened."""

import pytest
from cramjam import zstd

from goqueue.model.errors import InvalidBatch, InvalidRecord, InvalidTimestamp
from goqueue.records.batch import open_batch
from goqueue.records.layout import HEADER, RECORDS_MAX, Codec, check_batches, read_header, seal
from tests.unit.records.hostile import MiB, batch_of, record, varint


@pytest.mark.parametrize("count", [1, 3, 2**31 - 1])
def test_a_batch_of_more_or_fewer_records_than_it_says_cannot_be_opened(count: int) -> None:
    with pytest.raises(InvalidRecord, match="cannot be opened"):
        open_batch(batch_of(record() + record(offset_delta=1), count=count), 2)


@pytest.mark.parametrize("length", [-2, 0, 2, 1000, 2**31, 2**62, 2**63 - 40, 2**63 - 1, -(2**63)])
def test_a_record_that_lies_about_its_length_cannot_be_opened(length: int) -> None:
    with pytest.raises(InvalidRecord, match="cannot be opened"):
        open_batch(batch_of(record(value_length=length)), 2)


@pytest.mark.parametrize("deltas", [(0, 0), (5, 7), (1, 0), (-1, 2**40)])
def test_offsets_are_counted_whatever_the_records_say_of_theirs(deltas: tuple[int, int]) -> None:
    records = b"".join(record(offset_delta=delta) for delta in deltas)

    assert [message.offset for message in open_batch(batch_of(records, count=2), 2)] == [0, 1]


def test_a_batch_of_millions_of_records_is_not_let_in() -> None:
    body = batch_of(b"\0" * 100, count=RECORDS_MAX + 1)

    with pytest.raises(InvalidBatch, match="1000001 records"):
        check_batches(body, max_batch_bytes=MiB)


@pytest.mark.parametrize("timestamp_ms", [2**62, -(2**63)])
def test_a_batch_that_begins_at_no_possible_time_is_not_let_in(timestamp_ms: int) -> None:
    body = batch_of(record())
    HEADER.pack_into(body, 0, *read_header(body)._replace(first_timestamp_ms=timestamp_ms))
    seal(body)

    with pytest.raises(InvalidTimestamp):
        check_batches(body, max_batch_bytes=MiB)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_batch_of_millions_of_headers_cannot_be_opened(codec: Codec) -> None:
    headers = b"\0\x01" * 50_000  # neither name nor value
    one = b"\0\0\0" + varint(-1) + varint(-1) + varint(50_000) + headers
    records = (varint(len(one)) + one) * 81

    body = batch_of(records if codec is Codec.NONE else bytes(zstd.compress(records)), count=81, codec=codec)

    with pytest.raises(InvalidRecord, match="more than 4000000 headers"):
        open_batch(body, 2)


def test_a_large_batch_with_some_headers_is_opened() -> None:
    body = batch_of(record(value=bytes(5 * MiB)) + record(offset_delta=1), count=2)

    assert [len(message.value or b"") for message in open_batch(body, 2)] == [5 * MiB, 1]
