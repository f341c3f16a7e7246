"""Kafka's primitive types: round trips, and what is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.edge.kafka.wire import Malformed, Reader, count, string, varint


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_a_variable_length_number_reads_back_as_it_was_packed(value: int) -> None:
    reader = Reader(memoryview(varint(value)))

    assert reader.varint() == value
    assert reader.left == 0


@given(st.one_of(st.none(), st.text(max_size=200)), st.booleans())
def test_a_string_reads_back_as_it_was_packed(text: str | None, flexible: bool) -> None:
    reader = Reader(memoryview(string(text, flexible=flexible)))

    assert reader.string_or_null(flexible=flexible) == text
    assert reader.left == 0


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused_but_never_reach_behind_the_frame(frame: bytes) -> None:
    for read in (Reader.varint, Reader.int64, Reader.uuid, Reader.skip_tags):
        reader = Reader(memoryview(frame))
        try:
            read(reader)
        except Malformed:
            continue
        assert reader.position <= len(frame)


@pytest.mark.parametrize("flexible", [True, False])
def test_an_array_that_claims_more_items_than_bytes_is_refused(flexible: bool) -> None:
    reader = Reader(memoryview(count(2**31 - 2, flexible=flexible) + b"few"))

    with pytest.raises(Malformed):
        reader.count(flexible=flexible)


def test_a_negative_length_is_refused() -> None:
    with pytest.raises(Malformed):
        Reader(memoryview(struct.pack(">i", -7))).bytes_or_null(flexible=False)


def test_a_string_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(Malformed):
        Reader(memoryview(b"\x00\x02\xff\xfe")).string(flexible=False)


def test_null_is_refused_where_a_value_must_stand() -> None:
    with pytest.raises(Malformed):
        Reader(memoryview(b"\xff\xff")).string(flexible=False)


def test_a_variable_length_number_that_does_not_end_is_refused() -> None:
    with pytest.raises(Malformed):
        Reader(memoryview(b"\xff" * 9)).varint()


def test_tagged_fields_are_passed_over() -> None:
    reader = Reader(memoryview(b"\x02" + b"\x05\x03abc" + b"\x09\x00" + b"rest"))

    reader.skip_tags()

    assert bytes(reader.take(reader.left)) == b"rest"
