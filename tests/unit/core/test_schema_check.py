"""What a topic asks of its messages: ids that count there, data that fits, and texts that name the place."""

import json
from io import BytesIO
from struct import pack

import fastavro
import pytest

from goqueue.core.schemas.checkers import Checkers
from goqueue.core.schemas.checking import MessageCheck
from goqueue.core.schemas.registry import Registry
from goqueue.model.messages import Headers
from goqueue.model.schemas import SchemaKind, SchemaReference, SchemaText, SchemaValidation, SubjectStrategy
from goqueue.model.settings import SchemaConfig, TopicSettings
from tests.unit.core.schema_steps import decide, problem_of

JSON_ORDER = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "to": {"properties": {"zip": {"type": "string"}}}},
        "required": ["id"],
    }
)
AVRO_ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {
                "name": "to",
                "type": {
                    "type": "record",
                    "name": "Address",
                    "fields": [
                        {"name": "zip", "type": "string"},
                        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
                    ],
                },
            },
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "more", "type": {"type": "map", "values": ["null", "double", "Address"]}},
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
            {"name": "is_new", "type": "boolean"},
            {"name": "at", "type": {"type": "int", "logicalType": "date"}},
            {"name": "raw", "type": "bytes"},
            {"name": "ratio", "type": "float"},
        ],
    }
)
ORDER = {
    "id": -300,
    "to": {"zip": "8000", "kind": "B"},
    "tags": ["a", "ü"],
    "more": {"x": None, "y": 1.5, "z": {"zip": "", "kind": "A"}},
    "hash": b"ab",
    "is_new": True,
    "at": 19_000,
    "raw": b"\x00\xff",
    "ratio": 0.5,
}
PROTO = """
syntax = "proto3"; package shop;
message Order { int64 id = 1; Address to = 2; map<string, Address> others = 3; repeated Address all = 4;
  message Line { string text = 1; } }
message Address { string zip = 1; }
"""
FIRST = b"\x00"
"""The short form of the indexes [0]."""


class Topic:
    """The topic `orders`, a registry, and what it says to messages."""

    def __init__(
        self,
        validation: SchemaValidation = SchemaValidation.FULL,
        strategy: SubjectStrategy = SubjectStrategy.TOPIC_NAME,
    ) -> None:
        self.registry = Registry()
        self.checkers = Checkers(SchemaConfig())
        self.settings = TopicSettings(schema_validation=validation, schema_subject_strategy=strategy)

    def register(self, subject: str, kind: SchemaKind, text: str, *references: SchemaReference) -> int:
        place, events = decide(self.registry, subject, SchemaText(kind, text, references))
        for event in events:
            self.registry.apply(event)
        return place.schema_id

    def problem(self, value: bytes | None, key: bytes | None = None, headers: Headers = ()) -> str | None:
        check = MessageCheck(self.registry, self.checkers, "orders", self.settings)
        return problem_of(check, self.registry, self.checkers, value, key, headers)


def framed(schema_id: int, payload: bytes) -> bytes:
    return pack(">xI", schema_id) + payload


def avro(value: object, schema: str = AVRO_ORDER) -> bytes:
    buffer = BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(schema)), value)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b'{"id": 1}', "value: it carries no schema id"),
        (framed(9, b"{}"), "value: Schema 9 not found"),
        (framed(2, b"{}"), "value: schema 2 does not stand in subject orders-value or orders"),
        (framed(3, b"{}"), "value: schema 3 does not stand in subject orders-value or orders"),
        (framed(1, b"no JSON at all"), None),
        (None, None),
    ],
    ids=["none", "unknown", "another subject's", "deleted", "one of its own", "no value"],
)
def test_an_id_must_be_registered_for_the_topic(value: bytes | None, text: str | None) -> None:
    topic = Topic(SchemaValidation.ID)
    topic.register("orders-value", SchemaKind.JSON, JSON_ORDER)
    topic.register("payments-value", SchemaKind.JSON, "true")
    topic.register("orders-value", SchemaKind.JSON, '{"title": "Order"}')
    topic.registry.apply(topic.registry.delete_version("orders-value", 2, is_permanent=False)[1][0])

    assert topic.problem(value) == text


def test_the_id_may_stand_in_a_header_with_or_without_the_frame() -> None:
    topic = Topic()
    order = topic.register("orders", SchemaKind.JSON, JSON_ORDER)  # the topic's name, as older clients do
    header: Headers = (("schema-id", b"%d" % order),)

    assert topic.problem(b'{"id": 1}', headers=header) is None
    assert topic.problem(framed(order, b'{"id": 1}'), headers=header) is None
    assert topic.problem(b'{"id": "x"}', headers=header) == 'value: #/id: "x" is not of type "integer"'
    assert topic.problem(b'{"id": 1}', headers=(("schema-id", b"7"),)) == "value: Schema 7 not found"


def test_json_is_checked_down_to_the_place_that_fails() -> None:
    topic = Topic()
    order = topic.register("orders-value", SchemaKind.JSON, JSON_ORDER)

    assert topic.problem(framed(order, b'{"id": 1, "to": {"zip": "8000"}}')) is None
    assert topic.problem(framed(order, b'{"id": 1, "to": {"zip": 8}}')) == (
        'value: #/to/zip: 8 is not of type "string"'
    )
    assert topic.problem(framed(order, b"{}")) == 'value: #/: "id" is a required property'
    assert "it is not JSON" in (topic.problem(framed(order, b"{")) or "")
    assert "it is not JSON" in (topic.problem(framed(order, b"[" * 100_000)) or "")


def test_a_text_without_an_id_is_checked_by_the_latest_schema_of_the_topic() -> None:
    topic = Topic()
    assert topic.problem(b"1") == "value: no schema is registered under orders-value or orders"
    topic.register("orders-value", SchemaKind.JSON, '{"type": "string"}')
    topic.register("orders-value", SchemaKind.JSON, '{"type": ["string", "integer"]}')

    assert topic.problem(b"1") is None
    assert topic.problem(b"1.5") == 'value: #/: 1.5 is not of types "integer", "string"'


def test_other_data_than_json_must_name_its_schema() -> None:
    topic = Topic()
    topic.register("orders-value", SchemaKind.AVRO, '"null"')

    assert topic.problem(b"") == "value: it carries no schema id, as data of a schema of kind AVRO must"


def test_a_schema_without_a_draft_is_of_draft_7_also_for_data() -> None:
    topic = Topic()
    # The list form of `items` means something else in later drafts.
    order = topic.register("orders-value", SchemaKind.JSON, '{"items": [{"type": "string"}]}')

    assert topic.problem(framed(order, b"[1]")) == 'value: #/0: 1 is not of type "string"'


def test_avro_data_is_walked_to_its_end() -> None:
    topic = Topic()
    order = topic.register("orders-value", SchemaKind.AVRO, AVRO_ORDER)
    good = avro(ORDER)

    assert topic.problem(framed(order, good)) is None
    assert topic.problem(framed(order, good + b"\x00")) == "value: #/: 1 bytes are left over"
    for length in range(len(good)):
        assert topic.problem(framed(order, good[:length])) is not None, length


def test_avro_data_of_any_bytes_is_judged_and_never_an_accident() -> None:
    topic = Topic()
    order = topic.register("orders-value", SchemaKind.AVRO, AVRO_ORDER)
    good = avro(ORDER)

    for position in range(len(good)):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            data = good[:position] + bytes([byte]) + good[position + 1 :]
            problem = topic.problem(framed(order, data))
            assert problem is None or problem.startswith("value: #/"), (position, byte)


@pytest.mark.parametrize(
    ("schema", "data", "text"),
    [
        ('"boolean"', b"\x02", "#/: 2 is no boolean"),
        ('"int"', b"\x80\x80\x80\x80\x10", "#/: 2147483648 is no int of 32 bits"),
        ('"long"', b"\xff" * 10 + b"\x01", "#/: a number of more than 64 bits"),
        ('"bytes"', b"\x01", "#/: a length of -1"),
        ('"string"', b"\x02\xff", "#/: text that is not UTF-8"),
        ('["null", "int"]', b"\x04", "#/: branch 2 of a union of 2"),
        (AVRO_ORDER, b"\x00\x02a\x04", "#/to/kind: symbol 2 of an enum of 2"),
        (AVRO_ORDER, b"\x00\x02a", "#/to/kind: the data ends here"),
        ('{"type": "array", "items": "double"}', b"\xfe\xff\xff\xff\x0f\x00", "items where 1 bytes are left"),
    ],
)
def test_what_is_wrong_with_avro_data_is_named_with_its_place(schema: str, data: bytes, text: str) -> None:
    topic = Topic()
    order = topic.register("orders-value", SchemaKind.AVRO, schema)

    assert text in (topic.problem(framed(order, data)) or "")


def test_hostile_avro_data_costs_neither_the_stack_nor_the_day() -> None:
    topic = Topic()
    chain = '{"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}'
    endless = topic.register("orders-value", SchemaKind.AVRO, chain)
    nulls = topic.register("orders", SchemaKind.AVRO, '{"type": "array", "items": "null"}')

    assert topic.problem(framed(endless, b"\x02" * 1_000_000)) == "value: #/: the data is nested too deeply"
    assert topic.problem(framed(endless, b"\x02" * 100 + b"\x00")) is None
    assert topic.problem(framed(nulls, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00")) is None


def test_avro_types_of_other_schemas_are_followed() -> None:
    topic = Topic()
    topic.register("address", SchemaKind.AVRO, '{"type": "fixed", "name": "Zip", "size": 4}')
    text = '{"type": "record", "name": "Order", "fields": [{"name": "zip", "type": "Zip"}]}'
    order = topic.register("orders-value", SchemaKind.AVRO, text, SchemaReference("Zip", "address", 1))

    assert topic.problem(framed(order, b"8000")) is None
    assert topic.problem(framed(order, b"800")) == "value: #/zip: the data ends here"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (FIRST + b"\x08\x05", None),
        (b"\x02\x00\x08\x05", None),
        (b"\x02\x02\x0a\x0480ab", None),
        (b"\x04\x00\x00\x0a\x01x", None),
        (FIRST + b"\x12\x06\x0a\x048000\x22\x00", None),
        (FIRST + b"\x1a\x09\x0a\x01k\x12\x04\x0a\x02ab", None),
        (b"\x02\x06", "schema 1 has no message [3]"),
        (b"", "it does not say which message of schema 1 it is"),
        (b"\x02\x01\x00", "it does not say which message of schema 1 it is"),
        (FIRST + b"\x08", "#/: it is no shop.Order"),
        (FIRST + b"\x0a\x01x", "#/1: the schema has no field of this number and wire type"),
        (FIRST + b"\x12\x02\x28\x01", "#/to/5: the schema has no field"),
        (FIRST + b"\x22\x02\x28\x01", "#/all/5: the schema has no field"),
        (FIRST + b"\x1a\x07\x0a\x01k\x12\x02\x28\x01", "#/others/5: the schema has no field"),
    ],
)
def test_protobuf_data_is_parsed_as_the_message_it_says_it_is(data: bytes, text: str | None) -> None:
    topic = Topic()
    order = topic.register("orders-value", SchemaKind.PROTOBUF, PROTO)

    problem = topic.problem(framed(order, data))

    assert problem is None if text is None else text in (problem or "")


def test_a_required_field_that_is_missing_is_named() -> None:
    topic = Topic()
    text = "message Order { required int64 id = 1; }"
    order = topic.register("orders-value", SchemaKind.PROTOBUF, text)

    assert topic.problem(framed(order, FIRST)) == "value: #/id: a required field is missing"


def test_a_header_means_the_first_protobuf_message() -> None:
    topic = Topic()
    order = topic.register("orders-value", SchemaKind.PROTOBUF, PROTO)

    assert topic.problem(b"\x08\x05", headers=(("schema-id", b"%d" % order),)) is None


@pytest.mark.parametrize(
    ("strategy", "prefix"),
    [(SubjectStrategy.RECORD_NAME, ""), (SubjectStrategy.TOPIC_RECORD_NAME, "orders-")],
)
@pytest.mark.parametrize(
    ("kind", "text", "name", "data"),
    [
        (SchemaKind.JSON, JSON_ORDER, "Order", b'{"id": 1}'),
        (SchemaKind.AVRO, AVRO_ORDER, "shop.Order", avro(ORDER)),
        (SchemaKind.PROTOBUF, PROTO, "shop.Address", b"\x02\x02\x0a\x01x"),
    ],
)
def test_a_subject_may_go_by_the_name_of_the_record(
    strategy: SubjectStrategy, prefix: str, kind: SchemaKind, text: str, name: str, data: bytes
) -> None:
    topic = Topic(strategy=strategy)
    elsewhere = topic.register("orders-value", kind, text)

    assert topic.problem(framed(elsewhere, data)) == (
        f"value: schema {elsewhere} does not stand in subject {prefix}{name}"
    )
    assert topic.register(prefix + name, kind, text) == elsewhere
    assert topic.problem(framed(elsewhere, data)) is None


def test_data_without_a_name_has_no_subject_that_goes_by_it() -> None:
    topic = Topic(strategy=SubjectStrategy.RECORD_NAME)
    text = topic.register("orders-value", SchemaKind.AVRO, '"string"')

    assert "has no name for data of it" in (topic.problem(framed(text, b"\x00")) or "")
    assert topic.problem(b'"x"') == "value: it carries no schema id"


def test_keys_are_checked_where_they_name_a_schema_and_the_topic_has_one_for_them() -> None:
    topic = Topic()
    value = topic.register("orders-value", SchemaKind.JSON, "true")
    number = pack(">q", 7)
    assert topic.problem(b"1", key=number) is None  # only looks as if
    key = topic.register("orders-key", SchemaKind.JSON, '{"type": "integer"}')

    assert topic.problem(b"1", key=framed(key, b"1")) is None
    assert topic.problem(b"1", key=b"plain") is None
    assert topic.problem(None, key=framed(key, b'""')) == 'key: #/: "" is not of type "integer"'
    assert topic.problem(b"1", key=framed(value, b"1")) == (
        f"key: schema {value} does not stand in subject orders-key"
    )


def test_keys_by_record_name_are_checked_when_their_id_is_known() -> None:
    topic = Topic(SchemaValidation.ID, SubjectStrategy.RECORD_NAME)
    order = topic.register("Order", SchemaKind.JSON, JSON_ORDER)
    nameless = topic.register("x", SchemaKind.JSON, "true")

    assert topic.problem(framed(order, b""), key=framed(order, b"")) is None
    assert topic.problem(framed(order, b""), key=framed(99, b"")) is None
    assert "has no name" in (topic.problem(framed(order, b""), key=framed(nameless, b"")) or "")


def test_a_text_never_quotes_more_than_a_glance_of_the_data() -> None:
    topic = Topic()
    topic.register("orders-value", SchemaKind.JSON, '{"type": "integer"}')

    assert len(topic.problem(b'"' + b"x" * 100_000 + b'"') or "") == 500


def test_a_header_may_name_the_schema_by_its_guid_for_value_and_key() -> None:
    topic = Topic()
    topic.register("orders-value", SchemaKind.PROTOBUF, PROTO)
    topic.register("orders-key", SchemaKind.AVRO, '"string"')
    value_guid = SchemaText(SchemaKind.PROTOBUF, PROTO).guid
    key_guid = SchemaText(SchemaKind.AVRO, '"string"').guid
    in_header: Headers = (
        ("__value_schema_id", b"\x01" + value_guid.bytes + b"\x02\x02"),  # its second message
        ("__key_schema_id", b"\x01" + key_guid.bytes),
    )

    assert topic.problem(b"\x0a\x01x", b"\x02k", in_header) is None
    assert topic.problem(b"\x10\x01", b"\x02k", in_header) == (
        "value: #/2: the schema has no field of this number and wire type"
    )
    assert (topic.problem(b"\x0a\x01x", b"\x08k", in_header) or "").startswith("key: ")


def test_a_guid_that_nobody_has_is_named() -> None:
    topic = Topic(SchemaValidation.ID)
    unknown: Headers = (("__value_schema_id", b"\x01" + bytes(15) + b"\x07"),)

    assert topic.problem(b"{}", headers=unknown) == (
        "value: Schema 00000000-0000-0000-0000-000000000007 not found"
    )
