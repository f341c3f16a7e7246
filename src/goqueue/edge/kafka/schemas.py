"""Requests and replies that are not hot, by the schemas of the kio library.

kio has one frozen dataclass a message and version; a version's modules are loaded when a client first
speaks it. Replies are written by kio, which looks fields up by name: a handler builds one object with
the fields of all versions, and each version takes what it knows. Requests are read here, not by kio:
its native reader reserves memory for any array length a client claims and aborts the whole process
when there is not that much, so that one small frame would stop the broker.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import Field, fields
from datetime import timedelta
from functools import cache, partial
from types import NoneType, UnionType
from typing import cast, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_writer
from kio.static.protocol import Entity, ResponsePayload

from goqueue.edge.kafka.wire import Malformed, Reader

Decode = Callable[[Reader], object]
_LEVELS = 3
"""How deep arrays stand within arrays: transactions, their topics, the partitions of these."""


class Reply:
    """What a handler answers. Only what counts against a tenant's rate asks a client to slow down."""

    __slots__ = ()
    throttle_time: timedelta = timedelta(0)


class TellingToWait:
    """A reply with another time in it for which its client is not served."""

    def __init__(self, reply: Reply, throttle_ms: int) -> None:
        self._reply = reply
        self.throttle_time = timedelta(milliseconds=throttle_ms)

    def __getattr__(self, name: str) -> object:
        return getattr(self._reply, name)


def decode_request(api_key: int, version: int, reader: Reader) -> object:
    """The request in a frame, as kio's dataclass of that version.

    Bytes behind it are no error: librdkafka leaves three behind a request for the metadata of all topics.
    """
    return _request_decoder(api_key, version)(reader)


def encode_reply(api_key: int, version: int, reply: Reply | TellingToWait) -> bytes:
    """The body of a reply in one version's layout."""
    buffer = io.BytesIO()
    _reply_writer(api_key, version)(buffer, cast(ResponsePayload, reply))
    return buffer.getvalue()


def has_more_items(reply: Reply, most: int) -> bool:
    """Whether a reply has more items than that in its arrays and in those down to the third level: what makes
    it long to write. Looks at no more of them than that.
    """
    left = most
    items: list[object] = [reply]
    for _ in range(_LEVELS):
        arrays = [value for item in items for value in _values(item) if isinstance(value, tuple)]
        left -= sum(map(len, arrays))
        if left < 0:
            return True
        items = [item for array in arrays for item in array]
    return False


def _values(item: object) -> Iterator[object]:
    return (getattr(item, name) for name in getattr(item, "__slots__", ()))


@cache
def _request_decoder(api_key: int, version: int) -> Decode:
    return _entity_decoder(load_request_schema(api_key, version))


@cache
def _reply_writer(api_key: int, version: int) -> Callable[[io.BytesIO, ResponsePayload], None]:
    return entity_writer(load_response_schema(api_key, version))


def _entity_decoder(entity: type[Entity]) -> Decode:
    flexible = entity.__flexible__
    plain: list[tuple[str, Decode]] = []
    tagged: dict[int, tuple[str, Decode]] = {}
    for field in fields(entity):
        named = (field.name, _field_decoder(field, flexible))
        if (tag := field.metadata.get("tag")) is None:
            plain.append(named)
        else:
            tagged[tag] = named

    def decode(reader: Reader) -> Entity:
        values = {name: read(reader) for name, read in plain}
        if flexible:
            _decode_tags(reader, tagged, values)
        return entity(**values)

    return decode


def _decode_tags(reader: Reader, tagged: dict[int, tuple[str, Decode]], values: dict[str, object]) -> None:
    for _ in range(reader.varint()):
        tag, size = reader.varint(), reader.varint()
        start = reader.position
        reader.take(size)
        if tag in tagged:
            name, read = tagged[tag]
            reader.position = start
            values[name] = read(reader)
            if reader.position > start + size:
                raise Malformed(f"a tagged field is longer than the {size} bytes it says")
            reader.position = start + size


def _field_decoder(field: Field[object], flexible: bool) -> Decode:
    declared, nullable = _without_none(field.type)
    if get_origin(declared) is not tuple:
        return _value_decoder(field, declared, flexible=flexible, nullable=nullable)
    item = _value_decoder(field, get_args(declared)[0], flexible=flexible, nullable=False)
    return partial(_decode_array, item=item, flexible=flexible, nullable=nullable)


def _without_none(declared: object) -> tuple[object, bool]:
    if get_origin(declared) is not UnionType:
        return declared, False
    (inner,) = (member for member in get_args(declared) if member is not NoneType)
    return inner, True


def _decode_array(
    reader: Reader, *, item: Decode, flexible: bool, nullable: bool
) -> tuple[object, ...] | None:
    count = reader.count_or_null(flexible=flexible)
    if count is None:
        return None if nullable else reader.required(None)
    return tuple(item(reader) for _ in range(count))


def _value_decoder(field: Field[object], declared: object, *, flexible: bool, nullable: bool) -> Decode:
    match field.metadata.get("kafka_type"):
        case None if nullable:
            return partial(_decode_if_there, entity=_entity_decoder(cast(type[Entity], declared)))
        case None:
            return _entity_decoder(cast(type[Entity], declared))
        case "string" if nullable:
            return partial(Reader.string_or_null, flexible=flexible)
        case "string":
            return partial(Reader.string, flexible=flexible)
        case "bytes" | "records" if nullable:
            return partial(Reader.bytes_or_null, flexible=flexible)
        case "bytes" | "records":
            return lambda reader: reader.required(reader.bytes_or_null(flexible=flexible))
        case name:
            return _FIXED[name]


def _decode_if_there(reader: Reader, *, entity: Decode) -> object:
    """One that may be left out: a byte says whether it is there."""
    return None if reader.int8() < 0 else entity(reader)


def _milliseconds(reader: Reader) -> timedelta:
    return timedelta(milliseconds=reader.int32())


_FIXED: dict[str, Decode] = {
    "int8": Reader.int8,
    "int16": Reader.int16,
    "int32": Reader.int32,
    "int64": Reader.int64,
    "float64": Reader.float64,
    "bool": Reader.boolean,
    "uuid": Reader.uuid,
    "timedelta_i32": _milliseconds,
}
