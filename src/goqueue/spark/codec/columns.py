"""The columns of a topic as a table, and the Arrow types that Spark expects of them.

| column | type | |
| --- | --- | --- |
| topic | string | |
| partition | int32 | |
| offset | int64 | |
| timestamp | timestamp[us, UTC] | the producer's, or the broker's where the topic says so |
| key, value | binary | null where the message has none |
| headers | list<struct<key: string, value: binary>> | in the message's order, names may repeat |
| priority | int32 | the lane: 0 critical, 1 high, 2 normal, 3 low, 4 background |
| traceparent | string | the last header of that name; null where there is none |
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from goqueue.model.errors import Invalid

HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
COLUMN_TYPES: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.field("element", HEADER_TYPE)),
    "priority": pa.int32(),
    "traceparent": pa.string(),
}
_NULLABLE = ("key", "value", "traceparent")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns asked for, in their order. Only these are decoded.

    The schema is kept exactly as given, because Spark compares names, order, types and nullability.
    """

    schema: pa.Schema

    def __post_init__(self) -> None:
        problems = [problem for field in self.schema if (problem := _problem_with(field))]
        names = self.schema.names
        problems += [
            f"column {name} stands twice" for name in sorted({n for n in names if names.count(n) > 1})
        ]
        if problems:
            raise Invalid("; ".join(problems))

    @classmethod
    def named(cls, names: Sequence[str]) -> "Columns":
        """Columns for work that needs no schema of Spark's."""
        unknown = [name for name in names if name not in COLUMN_TYPES]
        if unknown:
            raise Invalid("; ".join(_unknown(name) for name in unknown))
        return cls(pa.schema([pa.field(name, COLUMN_TYPES[name]) for name in names]))

    def has(self, *names: str) -> bool:
        """Whether one of these columns is asked for."""
        return any(name in self.schema.names for name in names)


def _problem_with(field: pa.Field) -> str:
    expected = COLUMN_TYPES.get(field.name)
    if expected is None:
        return _unknown(field.name)
    if _shape(field.type) != _shape(expected):
        return f"column {field.name} is of type {expected}, not {field.type}"
    if field.name in _NULLABLE and not field.nullable:
        return f"column {field.name} must allow nulls: a message may have none"
    if field.name == "headers" and not field.type.value_type.field("value").nullable:
        return "the values of headers must allow nulls: a header may have none"
    return ""


def _unknown(name: str) -> str:
    return f"there is no column {name}: choose from {', '.join(COLUMN_TYPES)}"


def _shape(kind: pa.DataType) -> object:
    """A type without the names of list children and without nullability, which are the caller's to choose."""
    if pa.types.is_list(kind):
        return [_shape(kind.value_type)]
    if pa.types.is_struct(kind):
        return {child.name: _shape(child.type) for child in kind}
    return kind
