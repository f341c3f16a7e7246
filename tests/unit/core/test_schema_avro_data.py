"""Avro data: whatever Avro's writers write with a schema fits it, and nothing that was cut short does."""

import io
import json

import fastavro
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.core.schemas import jobs
from goqueue.core.schemas.checkers import Prepared
from goqueue.core.schemas.json_documents import Json
from goqueue.core.schemas.sources import Check, SourceText
from goqueue.model.schemas import SchemaKind

Typed = tuple[Json, st.SearchStrategy[object]]
"""A schema, and values of it."""
_encode = msgspec.msgpack.encode

PRIMITIVES: list[Typed] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=6)),
    ("string", st.text(max_size=6)),
    ({"type": "enum", "name": "E", "symbols": ["a", "b", "c"]}, st.sampled_from("abc")),
    ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3)),
]


def array_of(inner: Typed) -> Typed:
    return {"type": "array", "items": inner[0]}, st.lists(inner[1], max_size=3)


def map_of(inner: Typed) -> Typed:
    return {"type": "map", "values": inner[0]}, st.dictionaries(st.text(max_size=3), inner[1], max_size=3)


def record_of(inner: Typed) -> Typed:
    fields: list[Json] = [{"name": "x", "type": inner[0]}, {"name": "n", "type": "int"}]
    values = st.fixed_dictionaries({"x": inner[1], "n": st.integers(0, 9)})
    return {"type": "record", "name": "R", "fields": fields}, values


def maybe(inner: Typed) -> Typed:
    if inner[0] == "null":
        return inner
    return ["null", inner[0]], st.none() | inner[1]


SCHEMAS = st.sampled_from(PRIMITIVES) | st.builds(
    lambda inner, around: around(inner),
    st.sampled_from(PRIMITIVES),
    st.sampled_from(
        [
            array_of,
            map_of,
            record_of,
            maybe,
            lambda t: array_of(record_of(maybe(t))),
            lambda t: maybe(map_of(t)),
        ]
    ),
)


def misfits(schema: Json, *payloads: bytes) -> list[str | None]:
    """What is wrong with each of some data."""
    source = SourceText("AVRO", json.dumps(schema))
    prepared = msgspec.msgpack.decode(jobs.prepare(_encode([source])), type=Prepared)
    assert not prepared.problem
    found: list[str | None] = []
    while len(found) < len(payloads):  # it answers of as many as it has time for
        check = Check(SchemaKind.AVRO, prepared.form, (), list(payloads[len(found) :]))
        found += msgspec.msgpack.decode(jobs.check(_encode(check)), type=list[str | None])
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_was_written_with_a_schema_fits_it_and_not_when_it_is_cut_short_or_too_long(
    data: st.DataObject,
) -> None:
    schema, values = data.draw(SCHEMAS)
    value = data.draw(values)
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), value)
    written = buffer.getvalue()

    whole, longer, *cut = misfits(
        schema, written, written + b"\x00", *(written[:end] for end in range(len(written)))
    )

    assert whole is None
    assert longer is not None
    assert all(problem is not None for problem in cut)
