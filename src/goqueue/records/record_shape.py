"""One record, read field by field: whether it is whole, and which of its bytes say how it lies.

The bytes that say so are sizes, the offset and the names of headers; times, keys and values may be
anything. Two records of the same shape have the same bytes at these places.
"""

from typing import NamedTuple

from goqueue.model.errors import InvalidRecord
from goqueue.records.varints import read_varint

RECORD_HEADERS_MAX = 10_000
"""Headers of one record from outside."""
WHOLE, TOP_BIT = 0xFF, 0x80
_FIELDS_WITHOUT_HEADERS = len(("size", "attributes", "time", "key", "value", "headers"))


class Field(NamedTuple):
    """Bytes of a record that matter, or of each the bits of a mask."""

    place: int
    end: int
    mask: int


class Shape(NamedTuple):
    size: int
    fields: tuple[Field, ...]
    """All but the offset."""
    offset: Field

    @property
    def has_headers(self) -> bool:
        return len(self.fields) > _FIELDS_WITHOUT_HEADERS


def read_shape(records: memoryview, position: int, index: int) -> Shape:
    """The shape of the record at a position, with so many before it; refuses one that is not whole."""
    try:
        return _Reading(records, position, index).shape()
    except IndexError:
        raise wrong_record(index, "is cut off by the end of the batch") from None


def wrong_record(index: int, what: str) -> InvalidRecord:
    return InvalidRecord(f"record {index} of a batch {what}", record_index=index)


def check_name(records: memoryview, first: int, end: int, index: int) -> None:
    """Names of headers are text to every client, and some stop at one that is not."""
    try:
        str(records[first:end], "utf-8")
    except UnicodeDecodeError:
        raise wrong_record(index, "has a header whose name is not UTF-8") from None


class _Reading:
    """One record from front to back."""

    def __init__(self, records: memoryview, position: int, index: int) -> None:
        self._records = records
        self._start = self._position = position
        self._end = len(records)
        self._index = index
        self._fields: list[Field] = []

    def shape(self) -> Shape:
        size = self._number()
        end = self._position + size
        if size <= 0 or end > self._end:
            raise wrong_record(self._index, f"says it has {size} bytes")
        self._end = end
        attributes = self._number(TOP_BIT)
        if self._fields[-1].end - self._fields[-1].place > 1:
            # They mean nothing yet, and some clients read them as a number, which may have more bytes.
            raise wrong_record(self._index, f"has attributes that nobody knows: {attributes}")
        self._number(TOP_BIT)  # its time
        offset_delta = self._number()
        if offset_delta != self._index:
            raise wrong_record(self._index, f"has the offset {offset_delta} in its batch")
        offset = self._fields.pop()
        self._bytes("key")
        self._bytes("value")
        header_count = self._number()
        if not 0 <= header_count <= RECORD_HEADERS_MAX:
            raise wrong_record(self._index, f"says it has {header_count} headers")
        for _ in range(header_count):
            self._name()
            self._bytes("header's value")
        if self._position != end:
            raise wrong_record(self._index, "does not end where it says")
        return Shape(end - self._start, tuple(self._fields), offset)

    def _number(self, mask: int = WHOLE) -> int:
        number, after = read_varint(self._records, self._position)
        self._fields.append(Field(self._position - self._start, after - self._start, mask))
        self._position = after
        return number

    def _bytes(self, name: str, least: int = -1) -> None:
        size = self._number()
        if size < least or self._position + size > self._end:
            raise wrong_record(self._index, f"has a {name} of {size} bytes")
        self._position += max(size, 0)

    def _name(self) -> None:
        self._bytes("header's name", least=0)
        first = self._start + self._fields[-1].end
        check_name(self._records, first, self._position, self._index)
        self._fields.append(Field(first - self._start, self._position - self._start, WHOLE))
