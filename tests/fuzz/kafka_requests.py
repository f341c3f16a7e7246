"""Kafka's requests by their schemas, right in every byte or with a lie here and there.

Bytes are made here, not by kio's writers, which refuse to write what is wrong. What a field is called decides
what may stand in it: names, ids and epochs come from a small stock, so that requests often fit together
and get past the first refusal.
"""

import random
import struct
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, get_args, get_origin
from uuid import UUID

from kio.index import load_request_schema

from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.wire import varint
from goqueue.records.layout import HEADER_BYTES, seal
from tests.doors.kafka.raw_client import record_batch

_PRODUCE_KNOWN = 3
INTEGERS = {
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "timedelta_i32": ">i",
    "timedelta_i64": ">q",
}
_ODD_TEXTS = ("", ".", "..", "a" * 300, "a" * 32_000, "x\0y", "\n", "__consumer_offsets", "é😀", "a/b", "%00")
_SETTINGS = (
    "retention.ms",
    "segment.bytes",
    "max.message.bytes",
    "goqueue.inspect.records",
    "goqueue.retries.max",
)
_REGEXES = ("fuzz-.*", "(a+)+$", "(" * 100, "[", ".*" * 50, "^(?:x{1,1000}){1,1000}$")
_USUAL = {
    "replication_factor": (-1, 1, 1, 1, 2),
    "resource_type": (2, 2, 2, 2, 4, 32),
    "session_id": (0, 0, 0, 1),
    "session_epoch": (-1, -1, 0),
    "share_session_epoch": (0, 0, 0, 1, 1, 2, -1),
    "member_epoch": (0, 0, 0, 1, 2, -1),
    "current_leader_epoch": (-1, -1, -1, 0, 1),
    "config_operation": (0, 0, 1, 2, 3),
    "endpoint_type": (1, 1, 2),
}
_SHARE = (
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
)
_CONSUMER = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE)
_VARINT_LIES = (0, 1, 2, 127, 1 << 16, 1 << 28, (1 << 31) - 1, 1 << 31, (1 << 35) - 1)


@dataclass
class Stock:
    """Words that mean something to the broker, or will once they have been used."""

    topics: list[str] = field(default_factory=lambda: [f"fuzz-{number}" for number in range(6)])
    topic_ids: list[UUID] = field(default_factory=lambda: [UUID(int=1)])
    groups: list[str] = field(default_factory=lambda: [f"fuzz-group-{number}" for number in range(6)])
    members: list[str] = field(default_factory=lambda: ["", "m1", "m2", "m3"])
    transactional_ids: list[str] = field(default_factory=lambda: ["fuzz-tx-1", "fuzz-tx-2"])
    producer_ids: list[int] = field(default_factory=lambda: [-1, 0])


class Maker:
    """Makes requests from one source of chance.

    `lies` is how often a field is not what it should be, `nulls` how often it is null where it must not be.
    """

    def __init__(self, chance: random.Random, stock: Stock, lies: float, nulls: float | None = None) -> None:
        self._chance = chance
        self._stock = stock
        self._lies = lies
        self._nulls = lies if nulls is None else nulls
        self._groups = stock.groups
        self._is_about_settings = False

    def request(self, api_key: int, version: int) -> bytes:
        """A whole frame without its size."""
        if self._chance.random() < 0.9:
            # Requests of one protocol meet in groups of their own; now and then one comes to the others'.
            first = 0 if api_key in _SHARE else 2 if api_key in _CONSUMER else 4
            self._groups = self._stock.groups[first : first + 2]
        # kio does not know the oldest versions of Produce, which are the third without its first field.
        is_old = api_key == ApiKey.PRODUCE and version < _PRODUCE_KNOWN
        schema: Any = load_request_schema(api_key, _PRODUCE_KNOWN if is_old else version)
        client_id = self._chance.choice((b"\xff\xff", b"\0\0", b"\0\4fuzz"))
        header = struct.pack(">hhi", api_key, version, self._chance.getrandbits(31)) + client_id
        if schema.__header_schema__.__flexible__:
            header += b"\0"
        return header + self._entity(schema, skipped=int(is_old))

    def _entity(self, schema: Any, *, skipped: int = 0) -> bytes:
        flexible = schema.__flexible__
        plain = [one for one in fields(schema) if "tag" not in one.metadata]
        body = b"".join(self._field(one, flexible) for one in plain[skipped:])
        return body + self._tags(schema) if flexible else body

    def _tags(self, schema: Any) -> bytes:
        tagged = [one for one in fields(schema) if "tag" in one.metadata and self._chance.random() < 0.3]
        parts = [varint(len(tagged))]
        for one in tagged:
            content = self._field(one, True)
            size = self._varint_lie() if self._lie() else len(content)
            parts += (varint(one.metadata["tag"]), varint(size), content)
        if not tagged and self._lie():
            return varint(self._varint_lie())
        return b"".join(parts)

    def _field(self, one: Field[Any], flexible: bool) -> bytes:
        declared: Any = one.type
        nullable = False
        if get_origin(declared) is UnionType:
            (declared,) = (member for member in get_args(declared) if member is not NoneType)
            nullable = True
        is_null = self._chance.random() < (0.2 if nullable else self._nulls)
        if nullable and get_origin(declared) is not tuple and one.metadata.get("kafka_type") is None:
            return b"\xff" if is_null else b"\x01" + self._entity(declared)
        if get_origin(declared) is not tuple:
            return self._value(one, declared, flexible, is_null=is_null)
        if is_null:
            return _count(-1, flexible)
        self._is_about_settings = one.name == "configs"
        items = [
            self._value(one, get_args(declared)[0], flexible, is_null=self._chance.random() < self._nulls)
            for _ in range(
                self._chance.choice((0, 0, 0, 1) if "assignments" in one.name else (0, 1, 1, 1, 2, 3))
            )
        ]
        said = self._varint_lie() - 1 if self._lie() else len(items)
        return _count(said, flexible) + b"".join(items)

    def _value(self, one: Field[Any], declared: Any, flexible: bool, *, is_null: bool) -> bytes:
        kind = one.metadata.get("kafka_type")
        match kind:
            case None:
                return self._entity(declared)
            case "string":
                return self._string(None if is_null else self._text(one.name), flexible)
            case "bytes" | "records":
                return self._bytes(None if is_null else self._content(one.name), flexible)
            case "uuid":
                return self._chance.choice(self._stock.topic_ids).bytes if not self._lie() else bytes(16)
            case "bool":
                return self._chance.choice((b"\0", b"\1"))
            case "float64":
                return struct.pack(">d", self._chance.random())
            case "uint16":
                return struct.pack(">H", self._chance.getrandbits(16))
            case _:
                return struct.pack(INTEGERS[kind], self._integer(one.name, INTEGERS[kind]))

    def _string(self, text: str | None, flexible: bool) -> bytes:
        if text is None:
            return b"\0" if flexible else b"\xff\xff"
        data = text.encode() if not self._lie() else self._chance.randbytes(4)
        if flexible:
            return varint(self._varint_lie() if self._lie() else len(data) + 1) + data
        said = self._chance.choice((-2, -32_768, 32_767, len(data) + 1)) if self._lie() else len(data)
        return struct.pack(">h", min(said, 32_767)) + data[:32_767]

    def _bytes(self, data: bytes | None, flexible: bool) -> bytes:
        if data is None:
            return b"\0" if flexible else b"\xff\xff\xff\xff"
        if flexible:
            return varint(self._varint_lie() if self._lie() else len(data) + 1) + data
        said = self._chance.choice((-2, -(2**31), 2**31 - 1, len(data) + 1)) if self._lie() else len(data)
        return struct.pack(">i", said) + data

    def _text(self, name: str) -> str:
        chance, stock = self._chance, self._stock
        if chance.random() < 0.03:
            return chance.choice(_ODD_TEXTS)
        if "regex" in name:
            return chance.choice(_REGEXES)
        for part, words in (
            ("group", self._groups),
            ("member_id", stock.members),
            ("instance", ["i1", "i2"]),
            ("transactional", stock.transactional_ids),
            ("protocol_type", ["consumer"]),
            ("assignor", ["uniform", "range"]),
            ("key", [*stock.groups, *stock.transactional_ids, "retention.ms"]),
            ("value", ["1", "-1", "true", "x" * 100, "9" * 400, "65536", str(2**63)]),
            ("resource_name", stock.topics),
        ):
            if part in name:
                return chance.choice(words)
        return chance.choice(_SETTINGS if self._is_about_settings else stock.topics)

    def _content(self, name: str) -> bytes:
        if name != "records":
            return self._chance.choice((b"", b"\0\1", self._chance.randbytes(30), b"\0\0\0\0\0\1\0\4topx"))
        chance = self._chance
        batch = bytearray(
            record_batch(
                *(chance.randbytes(chance.randrange(40)) for _ in range(chance.choice((1, 2, 30)))),
                codec=chance.choice((0, 0, 0, 1, 2, 3)),
                producer_id=chance.choice(self._stock.producer_ids),
                producer_epoch=chance.choice((-1, 0, 1)),
                base_sequence=chance.choice((-1, 0, 1, 5)),
                is_transactional=chance.random() < 0.2,
                headers=chance.choice(
                    (None, None, [("goqueue-delay-ms", b"5")], [("goqueue-priority", b"9")])
                ),
            )
        )
        if self._lie():
            for _ in range(chance.randrange(1, 4)):
                batch[chance.randrange(chance.choice((HEADER_BYTES, len(batch))))] = chance.choice(
                    (0, 255, 128)
                )
            if chance.random() < 0.8 and len(batch) > HEADER_BYTES:
                seal(memoryview(batch))
        return bytes(batch) * chance.choice((1, 1, 2))

    def _integer(self, name: str, layout: str) -> int:
        chance = self._chance
        bits = 8 * struct.calcsize(layout)
        largest = (1 << bits - 1) - 1
        if self._lie():
            return chance.choice((largest, -largest - 1, largest - 1, -2, largest >> 1, 1 << bits // 2))
        if "wait" in name:
            return chance.choice((0, 1))
        if "timeout" in name:
            return min(chance.choice((6_000, 6_000, 6_000, 10_000, 0, 20)), largest)
        if name in _USUAL:
            return chance.choice(_USUAL[name])
        if "producer_id" in name:
            return chance.choice(self._stock.producer_ids)
        if "epoch" in name or "generation" in name:
            return chance.choice((-1, 0, 0, 1, 2, 3))
        if "bytes" in name or "records" in name or "size" in name:
            return min(chance.choice((0, 1, 100, 1 << 20)), largest)
        if name == "acks":
            return chance.choice((-1, -1, 1, 0))
        if "count" in name or "num_partitions" in name:
            return chance.choice((-1, 1, 2, 3))
        return chance.choice((0, 0, 0, 1, 2, 3, -1, 10))

    def _lie(self) -> bool:
        return self._chance.random() < self._lies

    def _varint_lie(self) -> int:
        return self._chance.choice(_VARINT_LIES)


def _count(items: int, flexible: bool) -> bytes:
    return varint(max(items + 1, 0)) if flexible else struct.pack(">i", min(items, 2**31 - 1))


Mutation = Callable[[random.Random, bytearray], None]


def flip(chance: random.Random, frame: bytearray) -> None:
    for _ in range(chance.randrange(1, 8)):
        frame[chance.randrange(len(frame))] = chance.getrandbits(8)


def overwrite(chance: random.Random, frame: bytearray) -> None:
    at = chance.randrange(len(frame))
    frame[at : at + 4] = chance.choice(
        (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\x0f", b"\0" * 4)
    )


def shorten(chance: random.Random, frame: bytearray) -> None:
    del frame[chance.randrange(1, len(frame)) :]


def stuff(chance: random.Random, frame: bytearray) -> None:
    at = chance.randrange(len(frame))
    frame[at:at] = chance.randbytes(chance.randrange(1, 40))


def repeat(chance: random.Random, frame: bytearray) -> None:
    at = chance.randrange(len(frame))
    piece = frame[at : at + chance.randrange(1, 60)]
    frame[at:at] = piece * chance.choice((1, 2, 50))


MUTATIONS: tuple[Mutation, ...] = (flip, overwrite, shorten, stuff, repeat)
