"""Whether bytes are as an Avro schema says: a walk over them that builds nothing.

Readers for trusted data will not do at a door. Those written in C follow a recursive type as deep as the
data says, until the process has no stack left; and none of them tells where data goes wrong. A schema
becomes functions, one a type, each leading from where a value begins to where the next one does.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from goqueue.core.schemas.limits import TooMuch

Json = Any

Walk = Callable[[bytes, int], int]
"""From the position of a value to the one behind it. Raises `_Misfit`, or IndexError where the data ends."""
_LONG_BYTES_MAX = 10
_NAMED = ("record", "error", "enum", "fixed")
_NS_A_BYTE = 50
_NS_A_TYPE = 60
"""For each type that stands around a byte."""
_INT32_RANGE = range(-(2**31), 2**31)


class _Misfit(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.path: list[str] = []


class AvroJudge:
    """Of no more than `bytes_max` bytes at a time."""

    def __init__(self, form: bytes, bytes_max: int) -> None:
        schema: Json = msgspec.json.decode(form)
        self._walk = walk_of(schema, named_types(schema))
        self._bytes_max = bytes_max

    def misfit(self, payload: bytes) -> str | None:
        """Why bytes are not as the schema says, and where; None when they fit."""
        if len(payload) > self._bytes_max:
            raise TooMuch
        return misfit_of(self._walk, payload)


def avro_ns(form: bytes) -> int:
    """What a byte of data may take to check."""
    schema: Json = msgspec.json.decode(form)
    return _NS_A_BYTE + _NS_A_TYPE * depth_of(schema, named_types(schema))


def misfit_of(walk: Walk, data: bytes) -> str | None:
    """Why data is not what a walk goes over, and where; None when it is."""
    try:
        end = walk(data, 0)
    except _Misfit as misfit:
        return f"#/{'/'.join(misfit.path)}: {misfit.text}"
    except IndexError:
        return "#/: the data ends too early"
    except RecursionError:
        return "#/: the data is nested too deeply"
    return None if end == len(data) else f"#/: {len(data) - end} bytes are left over"


def walk_of(schema: Json, named: Mapping[str, Json]) -> Walk:
    """The walk over data of a parsed schema; `named` are the types that it may refer to."""
    return _Walks(named).walk(schema)


def named_types(schema: Json) -> dict[str, Json]:
    """The types of a schema that have names, by these."""
    found: dict[str, Json] = {}
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            if part.get("type") in _NAMED and isinstance(part.get("name"), str):
                found[part["name"]] = part
            waiting += (part[key] for key in ("type", "items", "values", "fields") if key in part)
    return found


def depth_of(schema: Json, named: Mapping[str, Json]) -> int:
    """How many types may stand within one another at a single byte."""
    known: dict[str, int] = {}

    def deepest(parts: Iterable[Json]) -> int:
        return max(map(depth, parts), default=0)

    def depth(part: Json) -> int:
        match part:
            case list():
                return 1 + deepest(part)
            case str():
                return 1 if part in _PRIMITIVES else depth(named[part])
            case {"type": "record" | "error", "name": str(name), "fields": list(fields)}:
                if name not in known:
                    known[name] = 0  # within itself it takes at least a byte each time
                    known[name] = 1 + deepest(field["type"] for field in fields)
                return known[name]
            case {"items": inner} | {"values": inner}:
                return 1 + depth(inner)
            case {"type": inner} if not isinstance(inner, str):
                return depth(inner)
        return 1

    return depth(schema)


class _Walks:
    def __init__(self, named: Mapping[str, Json]) -> None:
        self._named = named
        self._made: dict[str, Walk | None] = {}
        """None: it is being made, so that it is part of itself."""

    def walk(self, schema: Json) -> Walk:
        match schema:
            case list():
                return _union([self.walk(branch) for branch in schema])
            case str():
                return _PRIMITIVES.get(schema) or self._by_name(schema)
            case {"type": "record" | "error" | "enum" | "fixed", "name": str(name)}:
                return self._named_type(name, schema)
            case {"type": "array", "items": items}:
                return _array(self.walk(items))
            case {"type": "map", "values": values}:
                return _array(_entry(self.walk(values)))
            case {"type": inner}:
                return self.walk(inner)
        raise AssertionError(f"no Avro type: {schema!r}")

    def _by_name(self, name: str) -> Walk:
        return self._named_type(name, self._named[name])

    def _named_type(self, name: str, schema: Json) -> Walk:
        made = self._made.get(name)
        if made is None and name in self._made:
            return self._later(name)
        if made is None:
            self._made[name] = None
            made = self._made[name] = self._new(schema)
        return made

    def _later(self, name: str) -> Walk:
        def walk(data: bytes, position: int) -> int:
            made = self._made[name]
            assert made is not None, "data is walked over when all is made"
            return made(data, position)

        return walk

    def _new(self, schema: Json) -> Walk:
        match schema["type"]:
            case "enum":
                return _enum(len(schema["symbols"]))
            case "fixed":
                return _fixed(schema["size"])
        fields = [(str(field["name"]), self.walk(field["type"])) for field in schema["fields"]]
        # What has no bytes is not walked over: a record may have any number of such fields.
        fields = [field for field in fields if field[1] is not _nothing]
        return _record(fields) if fields else _nothing


def _record(fields: list[tuple[str, Walk]]) -> Walk:
    def walk(data: bytes, position: int) -> int:
        try:
            for field in fields:
                position = field[1](data, position)
        except _Misfit as misfit:
            misfit.path.insert(0, field[0])
            raise
        except IndexError:
            ended = _Misfit("the data ends here")
            ended.path.append(field[0])
            raise ended from None
        return position

    return walk


def _union(branches: list[Walk]) -> Walk:
    count = len(branches)

    def walk(data: bytes, position: int) -> int:
        branch, position = _long(data, position)
        if not 0 <= branch < count:
            raise _Misfit(f"branch {branch} of a union of {count}")
        return branches[branch](data, position)

    return walk


def _array(item: Walk) -> Walk:
    def walk(data: bytes, position: int) -> int:
        while True:
            count, position = _long(data, position)
            if count == 0:
                return position
            if count < 0:
                count = -count
                _, position = _long(data, position)
            if item is _nothing:
                continue
            if count > len(data) - position:  # each takes a byte at least: do not even begin
                raise _Misfit(f"{count} items where {len(data) - position} bytes are left")
            for _ in range(count):
                position = item(data, position)

    return walk


def _entry(value: Walk) -> Walk:
    def walk(data: bytes, position: int) -> int:
        return value(data, _string(data, position))

    return walk


def _enum(count: int) -> Walk:
    def walk(data: bytes, position: int) -> int:
        symbol, position = _long(data, position)
        if not 0 <= symbol < count:
            raise _Misfit(f"symbol {symbol} of an enum of {count}")
        return position

    return walk


def _fixed(size: int) -> Walk:
    def walk(data: bytes, position: int) -> int:
        end = position + size
        if end > len(data):
            raise IndexError
        return end

    return walk if size else _nothing


def _nothing(_: bytes, position: int) -> int:
    return position


def _boolean(data: bytes, position: int) -> int:
    if data[position] > 1:
        raise _Misfit(f"{data[position]} is no boolean")
    return position + 1


def _int(data: bytes, position: int) -> int:
    number, position = _long(data, position)
    if number not in _INT32_RANGE:
        raise _Misfit(f"{number} is no int of 32 bits")
    return position


def _skip_long(data: bytes, position: int) -> int:
    end = position + 1
    while data[end - 1] & 0x80:
        if end - position == _LONG_BYTES_MAX:
            raise _Misfit("a number of more than 64 bits")
        end += 1
    return end


def _bytes(data: bytes, position: int) -> int:
    size, position = _long(data, position)
    if size < 0:
        raise _Misfit(f"a length of {size}")
    if position + size > len(data):
        raise IndexError
    return position + size


def _string(data: bytes, position: int) -> int:
    end = _bytes(data, position)
    start = _skip_long(data, position)
    try:
        data[start:end].decode()
    except UnicodeDecodeError as error:
        raise _Misfit("text that is not UTF-8") from error
    return end


def _long(data: bytes, position: int) -> tuple[int, int]:
    """A number of variable length, and the position behind it."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    number, shift = byte & 0x7F, 7
    start = position
    while byte & 0x80:
        position += 1
        if position - start == _LONG_BYTES_MAX:
            raise _Misfit("a number of more than 64 bits")
        byte = data[position]
        number |= (byte & 0x7F) << shift
        shift += 7
    return (number >> 1) ^ -(number & 1), position + 1


_PRIMITIVES: dict[str, Walk] = {
    "null": _nothing,
    "boolean": _boolean,
    "int": _int,
    "long": _skip_long,
    "float": _fixed(4),
    "double": _fixed(8),
    "bytes": _bytes,
    "string": _string,
}
