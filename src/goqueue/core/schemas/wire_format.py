"""How data names its schema: by an id in front of it, or in a header beside it.

In front stand a zero byte and the id in four; data of a Protobuf schema tells next which message of the file
it is, by its place there and from there inwards.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from goqueue.model.messages import Headers
from goqueue.model.schemas import GUID_HEADERS, SCHEMA_ID_HEADER

_ID = Struct(">xI")
PREFIX_BYTES = _ID.size
FIRST_MESSAGE = (0,)
_ID_DIGITS_MAX = 10
_INDEXES_MAX = 100
_INDEX_BYTES_MAX = 5
_GUID_END = 17
"""Before a guid stands a byte that tells it from an id."""


class Named(NamedTuple):
    """What data says about itself."""

    schema_id: int
    payload: bytes
    is_prefixed: bool


class MessageIndexes(NamedTuple):
    """Which message of a Protobuf file data is, and the data."""

    indexes: tuple[int, ...]
    payload: bytes


def named_in_front(data: bytes) -> Named | None:
    """By a prefix before the data; None when there is none."""
    if len(data) < PREFIX_BYTES or data[0]:
        return None
    return Named(_ID.unpack_from(data)[0], data[PREFIX_BYTES:], is_prefixed=True)


def prefix_of(schema_id: int) -> bytes:
    """What stands in front of data of a schema."""
    return _ID.pack(schema_id)


def named_in_header(value: bytes, headers: Headers) -> Named | None:
    """By a header. The value may have the prefix too, and is then the same as without the header."""
    for name, text in headers:
        if name == SCHEMA_ID_HEADER and text is not None and text.isdigit() and len(text) <= _ID_DIGITS_MAX:
            prefixed = named_in_front(value)
            if prefixed is not None and prefixed.schema_id == int(text):
                return prefixed
            return Named(int(text), value, is_prefixed=False)
    return None


def guid_beside(part: str, headers: Headers) -> tuple[UUID, bytes] | None:
    """The guid that a header names a value's or key's schema by, and what follows it; None: there is none."""
    for name, data in headers:
        if name == GUID_HEADERS[part] and data is not None and len(data) >= _GUID_END and data[0] == 1:
            return UUID(bytes=data[1:_GUID_END]), data[_GUID_END:]
    return None


def read_indexes(data: bytes) -> MessageIndexes | None:
    """Which message prefixed data says it is; None when it does not say."""
    if data[:1] == b"\x00":
        return MessageIndexes(FIRST_MESSAGE, data[1:])  # short for the first, which is the usual one
    count, position = _read_index(data, 0)
    if not 0 < count <= _INDEXES_MAX:
        return None
    indexes = []
    for _ in range(count):
        index, position = _read_index(data, position)
        if index < 0:
            return None
        indexes.append(index)
    return MessageIndexes(tuple(indexes), data[position:])


def _read_index(data: bytes, position: int) -> tuple[int, int]:
    """A number in zigzag form, and the position behind it; -1 when there is none."""
    number = 0
    for shift, byte in enumerate(data[position : position + _INDEX_BYTES_MAX]):
        number |= (byte & 0x7F) << (7 * shift)
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), position + shift + 1
    return -1, position


def place_text(indexes: Iterable[int]) -> str:
    """The place of a message in a Protobuf file."""
    return "/".join(map(str, indexes))
