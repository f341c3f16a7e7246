"""Whether bytes are as an Avro schema says: a walk over them that builds nothing.

Readers for trusted data will not do at a door. Those written in C follow a recursive type as deep as the
data says, until the process has no stack left; and none of them tells where data goes wrong. A schema
becomes functions, one a type, each leading from where a value begins to where the next one does.
"""

from collections.abc import Callable, Mapping

from goqueue.core.schemas.json_documents import Json

Walk = Callable[[bytes, int], int]
"""From the position of a value to the one behind it. Raises `_Misfit`, or IndexError where the data ends."""
_LONG_BYTES_MAX = 10
_INT32_RANGE = range(-(2**31), 2**31)


class _Misfit(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.path: list[str] = []


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
        return _nothing if all(walk is _nothing for _, walk in fields) else _record(fields)


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
