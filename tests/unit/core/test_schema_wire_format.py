"""How data names its schema: an id in front, a header beside it, a place in a Protobuf file."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.schemas.wire_format import (
    MessageIndexes,
    Named,
    guid_beside,
    named_in_front,
    named_in_header,
    place_text,
    prefix_of,
    read_indexes,
)
from goqueue.model.schemas import GUID_HEADERS, SCHEMA_ID_HEADER

GUID = UUID(int=0x1234)


@given(st.integers(0, 2**32 - 1), st.binary(max_size=20))
def test_an_id_in_front_of_data_is_read_back(schema_id: int, payload: bytes) -> None:
    assert named_in_front(prefix_of(schema_id) + payload) == Named(schema_id, payload, True)


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x00\x01", b"\x01\x00\x00\x00\x01x", b'{"a":1}'])
def test_data_without_an_id_in_front_names_none(data: bytes) -> None:
    assert named_in_front(data) is None


@pytest.mark.parametrize(
    ("text", "schema_id"),
    [
        (b"7", 7),
        (b"007", 7),
        (b"9999999999", 9_999_999_999),
        (b"12345678901", None),
        (b"-7", None),
        (b"7 ", None),
        (b"0x7", None),
        (b"", None),
        (None, None),
    ],
)
def test_a_header_names_an_id_in_digits(text: bytes | None, schema_id: int | None) -> None:
    named = named_in_header(b"data", ((SCHEMA_ID_HEADER, text),))

    assert named == (None if schema_id is None else Named(schema_id, b"data", False))


def test_a_value_may_have_both_and_is_then_the_same_as_with_one() -> None:
    headers = (("other", b"1"), (SCHEMA_ID_HEADER, b"7"))

    assert named_in_header(prefix_of(7) + b"data", headers) == Named(7, b"data", True)
    other = prefix_of(8) + b"data"
    assert named_in_header(other, headers) == Named(7, other, False), "it only looks like a prefix"
    assert named_in_header(b"data", (("other", b"1"),)) is None


def test_a_header_that_cannot_be_read_leaves_the_word_to_the_next() -> None:
    headers = ((SCHEMA_ID_HEADER, b"none"), (SCHEMA_ID_HEADER, b"7"))

    assert named_in_header(b"x", headers) == Named(7, b"x", False)


@pytest.mark.parametrize("part", list(GUID_HEADERS))
def test_a_guid_beside_the_data_is_read_with_what_follows_it(part: str) -> None:
    name = GUID_HEADERS[part]

    assert guid_beside(part, ((name, b"\x01" + GUID.bytes),)) == (GUID, b"")
    assert guid_beside(part, ((name, b"\x01" + GUID.bytes + b"\x02\x04"),)) == (GUID, b"\x02\x04")


@pytest.mark.parametrize(
    "data", [None, b"", b"\x01", b"\x01" + GUID.bytes[:-1], b"\x00" + GUID.bytes, b"\x02" + GUID.bytes]
)
def test_what_is_no_guid_names_none(data: bytes | None) -> None:
    part, name = next(iter(GUID_HEADERS.items()))

    assert guid_beside(part, ((name, data),)) is None


def zigzag(number: int) -> bytes:
    number <<= 1
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=8), st.binary(max_size=8))
def test_the_place_of_a_message_in_its_file_is_read_back(indexes: list[int], payload: bytes) -> None:
    data = zigzag(len(indexes)) + b"".join(map(zigzag, indexes)) + payload

    assert read_indexes(data) == MessageIndexes(tuple(indexes), payload)


def test_a_single_zero_is_short_for_the_first_message() -> None:
    assert read_indexes(b"\x00data") == MessageIndexes((0,), b"data")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",  # minus one message
        zigzag(2) + zigzag(1),  # the second is missing
        zigzag(1) + b"\x01",  # minus one
        zigzag(101) + bytes(101),
        zigzag(1) + b"\x80" * 5 + b"\x01",
        b"\x80" * 9,
    ],
)
def test_data_that_does_not_say_which_message_it_is_names_none(data: bytes) -> None:
    assert read_indexes(data) is None


def test_as_many_levels_as_may_be_are_read() -> None:
    read = read_indexes(zigzag(100) + bytes(100) + b"x")

    assert read == MessageIndexes((0,) * 100, b"x")


def test_a_place_reads_from_the_outside_in() -> None:
    assert (place_text((3, 0, 12)), place_text((0,))) == ("3/0/12", "0")
