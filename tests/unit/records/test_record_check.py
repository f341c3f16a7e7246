"""Records at the door: sound ones pass however they are looked at, broken ones are refused by their place."""

import random
from collections.abc import Sequence

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from goqueue.model.errors import InvalidBatch, InvalidRecord
from goqueue.records.layout import HEADER_BYTES, Codec, read_header
from goqueue.records.record_check import LARGE_BYTES, check_incoming, check_records
from goqueue.records.record_shape import RECORD_HEADERS_MAX
from tests.unit.records.hostile import batch_of, bomb, record, varint

LARGE_COUNT = 12_000
"""Records of 100 bytes that make a large batch."""


def built(
    values: Sequence[bytes | None],
    *,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    step_ms: int = 1,
) -> memoryview:
    """The records of a batch as a client library builds it."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
    for index, value in enumerate(values):
        builder.append(index, 1_700_000_000_000 + index * step_ms, key, value, list(headers))
    return memoryview(builder.build())[HEADER_BYTES:]


def chained(*parts: bytes) -> memoryview:
    return memoryview(bytearray(b"".join(parts)))


@pytest.mark.parametrize("is_thorough", [False, True])
@pytest.mark.parametrize("count", [1, 2, 16, 17, 63, 64, 65, 300, LARGE_COUNT])
@pytest.mark.parametrize("key", [None, b"", b"key", b"k" * 70])
def test_records_as_libraries_build_them_pass(count: int, key: bytes | None, is_thorough: bool) -> None:
    records = built([b"v" * 100] * count, key=key)

    is_plain = check_records(records, count, is_thorough=is_thorough)

    assert is_plain == (is_thorough or count == 1 or len(records) >= LARGE_BYTES)


@pytest.mark.parametrize("is_thorough", [False, True])
@pytest.mark.parametrize("headers", [[("trace", b"1"), ("é" * 40, None)], [("", b"")]])
@pytest.mark.parametrize("count", [1, 20, LARGE_COUNT])
def test_records_with_headers_pass_and_are_not_called_plain(
    count: int, headers: list[tuple[str, bytes | None]], is_thorough: bool
) -> None:
    records = built([b"v" * 100] * count, headers=headers)

    assert not check_records(records, count, is_thorough=is_thorough)


@pytest.mark.parametrize("is_thorough", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_records_of_any_length_and_time_pass(seed: int, is_thorough: bool) -> None:
    chance = random.Random(seed)
    values = [chance.choice((None, b"", chance.randbytes(chance.randrange(300)))) for _ in range(9_000)]

    records = built(values, step_ms=chance.choice((0, 1, 70, 10**9)))

    check_records(records, len(values), is_thorough=is_thorough)


FIRST = record(offset_delta=0)
BROKEN_FIRST = {
    "garbage": chained(b"no records at all"),
    "a size beyond the batch": chained(varint(1_000), FIRST),
    "a size below 0": chained(varint(-7), FIRST),
    "no size": chained(varint(0), FIRST),
    "another offset": chained(record(offset_delta=3)),
    "a value beyond the record": chained(record(value=b"abc", value_length=9), FIRST),
    "a value before the record's end": chained(record(value=b"abc", value_length=1), FIRST),
    "a value of less than null": chained(record(value=b"abc", value_length=-2), FIRST),
    "a number without end": chained(b"\xff" * 40),
    "an empty batch": chained(),
}


@pytest.mark.parametrize("is_thorough", [False, True])
@pytest.mark.parametrize("count", [1, 2, 40])
@pytest.mark.parametrize("broken", BROKEN_FIRST)
def test_a_batch_that_begins_wrongly_is_refused(broken: str, count: int, is_thorough: bool) -> None:
    with pytest.raises(InvalidBatch):
        check_records(BROKEN_FIRST[broken], count, is_thorough=is_thorough)


def _with_headers(names: Sequence[bytes], count: int | None = None) -> memoryview:
    body = b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(len(names) if count is None else count)
    body += b"".join(varint(len(name)) + name + varint(-1) for name in names)
    return chained(varint(len(body)) + body)


@pytest.mark.parametrize("names", [[b"\xff\xfe"], [b"fine", b"\x80"]])
def test_a_header_whose_name_is_no_text_is_refused(names: list[bytes]) -> None:
    with pytest.raises(InvalidRecord, match="UTF-8"):
        check_records(_with_headers(names), 1, is_thorough=False)


@pytest.mark.parametrize("count", [-1, RECORD_HEADERS_MAX + 1, 2**40])
def test_a_record_that_says_it_has_impossibly_many_headers_is_refused(count: int) -> None:
    with pytest.raises(InvalidRecord, match="headers"):
        check_records(_with_headers([], count), 1, is_thorough=False)


def _spoilt(kind: str, index: int, *, offset_delta: int) -> bytes:
    """A record of the usual length that is wrong in one way."""
    value = b"v" * 100
    match kind:
        case "offset":
            return record(offset_delta=offset_delta + 1, value=value)
        case "value length":
            return record(offset_delta=offset_delta, value=value, value_length=90)
        case "header count":
            return record(offset_delta=offset_delta, value=value)[:-1] + varint(1)
        case "key length":
            whole = bytearray(record(offset_delta=offset_delta, value=value))
            whole[len(varint(200)) + 2 + len(varint(offset_delta))] = 4
            return bytes(whole)
        case "time":
            whole = bytearray(record(offset_delta=offset_delta, value=value))
            whole[len(varint(200)) + 1] |= 0x80
            return bytes(whole)
    raise AssertionError(kind)


KINDS = ["offset", "value length", "header count", "key length", "time"]


@pytest.mark.parametrize("is_thorough", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [1, 63, 64, 4_000, 8_191, 8_192, LARGE_COUNT - 1])
def test_one_bad_record_among_thousands_that_lie_alike_is_found(
    kind: str, place: int, is_thorough: bool
) -> None:
    parts = [record(offset_delta=index, value=b"v" * 100) for index in range(LARGE_COUNT)]
    parts[place] = _spoilt(kind, place, offset_delta=place)

    with pytest.raises(InvalidRecord) as refused:
        check_records(chained(*parts), LARGE_COUNT, is_thorough=is_thorough)

    # One wrong length may show as the next record's fault.
    assert refused.value.record_index in (place, place + 1, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [1, 10, 50, 99])
def test_a_thorough_check_finds_a_bad_record_in_a_small_batch(kind: str, place: int) -> None:
    for count in (place + 1, 100):
        parts = [record(offset_delta=index, value=b"v" * 100) for index in range(count)]
        parts[place] = _spoilt(kind, place, offset_delta=place)

        with pytest.raises(InvalidBatch):
            check_records(chained(*parts), count, is_thorough=True)


@pytest.mark.parametrize("is_thorough", [False, True])
@pytest.mark.parametrize("said", [LARGE_COUNT - 1, LARGE_COUNT + 1])
def test_a_wrong_count_is_found_in_a_large_batch(said: int, is_thorough: bool) -> None:
    records = built([b"v" * 100] * LARGE_COUNT)

    with pytest.raises(InvalidBatch):
        check_records(records, said, is_thorough=is_thorough)


@pytest.mark.parametrize("said", [1, 19, 21, 500])
def test_a_thorough_check_finds_a_wrong_count_in_a_small_batch(said: int) -> None:
    with pytest.raises(InvalidBatch):
        check_records(built([b"v"] * 20), said, is_thorough=True)


@pytest.mark.parametrize("seed", range(300))
def test_no_bytes_make_a_check_fail_but_by_refusing(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice((1, 3, 20, 200))
    records = bytearray(
        built([chance.randbytes(chance.randrange(40)) for _ in range(count)], headers=[("a", b"")])
    )
    for _ in range(chance.randrange(1, 6)):
        records[chance.randrange(len(records))] = chance.choice(
            (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
        )
    try:
        check_records(memoryview(records), count, is_thorough=True)
    except InvalidBatch:
        return
    # What passes can be opened by a library that clients use, whole and with rising offsets.
    body = batch_of(bytes(records), count=count)
    assert [opened.offset for opened in DefaultRecordBatch(body)] == list(range(count))


def test_compressed_batches_are_opened_where_that_is_asked_for() -> None:
    hostile = batch_of(bomb(Codec.GZIP), codec=Codec.GZIP)

    passed = check_incoming(hostile, max_batch_bytes=1 << 21, inspect_compressed=False, is_thorough=True)
    assert passed.headers == [read_header(hostile)]
    with pytest.raises(InvalidRecord):
        check_incoming(hostile, max_batch_bytes=1 << 21, inspect_compressed=True, is_thorough=False)
