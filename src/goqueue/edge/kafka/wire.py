"""Kafka's primitive types as bytes: a reader over one frame, and functions that pack.

Nothing a client sends is believed before it is checked: a length that reaches behind the frame is
`Malformed`, so no request can make the broker reserve memory for bytes that never came. How many items
a request may have in all is bounded too.
"""

from struct import Struct, error
from typing import TypeVar
from uuid import UUID

T = TypeVar("T")

INT8 = Struct(">b")
INT16 = Struct(">h")
INT32 = Struct(">i")
INT64 = Struct(">q")
FLOAT64 = Struct(">d")

NO_TAGS = b"\x00"
REQUEST_ITEMS_MAX = 50_000
"""Items that all arrays of a request have together. Two bytes may become an object of a hundred, and to read
so many holds the loop."""
_VARINT_BYTES_MAX = 5


class Malformed(Exception):
    """A frame that cannot be understood. Its connection is closed: what follows cannot be trusted."""


class TooManyItems(Malformed):
    """More items than the reader lets pass; whoever has let it pass fewer than others may read anew."""


class Reader:
    """Reads one frame from front to back."""

    __slots__ = ("buffer", "items_left", "position")

    def __init__(self, buffer: memoryview, position: int = 0) -> None:
        self.buffer = buffer
        self.position = position
        self.items_left = REQUEST_ITEMS_MAX

    @property
    def left(self) -> int:
        return len(self.buffer) - self.position

    def unpack(self, layout: Struct) -> tuple[int, ...]:
        """Several fixed fields at once."""
        position = self.position
        self.position = position + layout.size
        try:
            return layout.unpack_from(self.buffer, position)
        except error:
            raise Malformed("the frame ends inside a field") from None

    def int8(self) -> int:
        return self.unpack(INT8)[0]

    def int16(self) -> int:
        return self.unpack(INT16)[0]

    def int32(self) -> int:
        return self.unpack(INT32)[0]

    def int64(self) -> int:
        return self.unpack(INT64)[0]

    def float64(self) -> float:
        return self.unpack(FLOAT64)[0]

    def boolean(self) -> bool:
        return self.unpack(INT8)[0] != 0

    def varint(self) -> int:
        """An unsigned number, seven bits a byte, the lowest first."""
        buffer, position, shift, value = self.buffer, self.position, 0, 0
        for byte in buffer[position : position + _VARINT_BYTES_MAX]:
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.position = position
                return value
            shift += 7
        raise Malformed("a variable-length number does not end")

    def take(self, size: int) -> memoryview:
        """The next `size` bytes, not copied."""
        position = self.position
        end = position + size
        if size < 0 or end > len(self.buffer):
            raise Malformed(f"a field of {size} bytes where {self.left} are left")
        self.position = end
        return self.buffer[position:end]

    def uuid(self) -> UUID | None:
        """None for the id that is all zeros: Kafka's way to say that there is none."""
        taken = bytes(self.take(16))
        return UUID(bytes=taken) if any(taken) else None

    def bytes_or_null(self, *, flexible: bool) -> memoryview | None:
        size = self.varint() - 1 if flexible else self.int32()
        return None if size == -1 else self.take(size)

    def string_or_null(self, *, flexible: bool) -> str | None:
        size = self.varint() - 1 if flexible else self.int16()
        if size == -1:
            return None
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError:
            raise Malformed("a string is not UTF-8") from None

    def string(self, *, flexible: bool) -> str:
        return self.required(self.string_or_null(flexible=flexible))

    def count_or_null(self, *, flexible: bool) -> int | None:
        """How many items an array has. Each takes at least a byte, so a count beyond the frame is a lie."""
        count = self.varint() - 1 if flexible else self.int32()
        if count == -1:
            return None
        if not 0 <= count <= self.left:
            raise Malformed(f"an array of {count} items where {self.left} bytes are left")
        self.items_left -= count
        if self.items_left < 0:
            raise TooManyItems(f"more than {REQUEST_ITEMS_MAX} items in one request")
        return count

    def count(self, *, flexible: bool) -> int:
        count = self.count_or_null(flexible=flexible)
        return self.required(count) if count is None else count

    def skip_tags(self) -> None:
        """Pass over tagged fields: all of them are optional by definition."""
        if self.position < len(self.buffer) and self.buffer[self.position] == 0:
            self.position += 1
            return
        for _ in range(self.varint()):
            self.varint()
            self.take(self.varint())

    @staticmethod
    def required(value: T | None) -> T:
        if value is None:
            raise Malformed("null where a value must stand")
        return value


def varint(value: int) -> bytes:
    """An unsigned number, seven bits a byte, the lowest first."""
    if value < 0x80:
        return value.to_bytes(1, "big")
    packed = bytearray()
    while value >= 0x80:
        packed.append(value & 0x7F | 0x80)
        value >>= 7
    packed.append(value)
    return bytes(packed)


def count(value: int, *, flexible: bool) -> bytes:
    """The number of items of an array that follows."""
    return varint(value + 1) if flexible else INT32.pack(value)


def string(text: str | None, *, flexible: bool) -> bytes:
    if text is None:
        return NO_TAGS if flexible else b"\xff\xff"
    encoded = text.encode()
    return (varint(len(encoded) + 1) if flexible else INT16.pack(len(encoded))) + encoded
