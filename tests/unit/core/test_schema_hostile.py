"""Schemas of strangers: deep, tangled, pointing at themselves or nowhere. Each is answered, and soon."""

import json
import time

import pytest

from goqueue.core.schemas.json_documents import Json, parse_json_schema
from goqueue.core.schemas.json_rules import json_breaks
from goqueue.core.schemas.parsing import breaks, parse
from goqueue.core.schemas.protobuf_files import parse_protobuf
from goqueue.core.schemas.protobuf_rules import protobuf_breaks
from goqueue.model.errors import InvalidSchema
from goqueue.model.schemas import SchemaKind, SchemaText

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
SOON_S = 2.0


def in_draft_2020(**schema: Json) -> str:
    return json.dumps({"$schema": DRAFT_2020, **{name.replace("_", "$", 1): schema[name] for name in schema}})


def test_alternatives_within_alternatives_are_compared_soon() -> None:
    parts = {
        f"d{n}": {
            "anyOf": [
                {"$ref": f"#/definitions/d{n + 1}"},
                {"type": "array", "items": {"$ref": f"#/definitions/d{n + 1}"}},
            ]
        }
        for n in range(30)
    }
    schema = parse_json_schema(
        json.dumps({"$ref": "#/definitions/d0", "definitions": {**parts, "d30": {"type": "string"}}})
    )
    begun_s = time.process_time()

    assert json_breaks(schema, schema) == []
    assert time.process_time() - begun_s < SOON_S


def test_what_takes_too_long_to_compare_is_said_not_to_fit() -> None:
    # Each part is an alternative of all the others and of itself: what is known of one leans on the rest.
    count = 10
    parts = {
        f"d{n}": {"anyOf": [{"properties": {"p": {"$ref": f"#/definitions/d{m}"}}} for m in range(count)]}
        for n in range(count)
    }
    schema = parse_json_schema(json.dumps({"$ref": "#/definitions/d0", "definitions": parts}))

    assert [each.rule for each in json_breaks(schema, schema)] == ["schema_too_complex"]


def test_messages_that_are_part_of_each_other_are_compared_soon() -> None:
    types = [
        f"message M{n} {{ M{(n + 1) % 40} a = 1; M{(n + 2) % 40} b = 2; M{(n + 3) % 40} c = 3; }}"
        for n in range(40)
    ]
    file = parse_protobuf('syntax = "proto3";' + "\n".join(types))
    begun_s = time.process_time()

    assert protobuf_breaks(file.descriptor, file.descriptor) == []
    assert time.process_time() - begun_s < SOON_S


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (SchemaKind.JSON, '{"items":' * 3000 + "{}" + "}" * 3000),
        (SchemaKind.JSON, '{"items":' * 400 + "{}" + "}" * 400),
        (SchemaKind.AVRO, '{"type":"array","items":' * 900 + '"int"' + "}" * 900),
        (SchemaKind.PROTOBUF, "message M {" * 500 + "}" * 500),
    ],
)
def test_what_is_nested_too_deeply_is_refused(kind: SchemaKind, text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(SchemaText(kind, text), {})


def test_a_schema_that_is_part_of_itself_without_end_is_said_not_to_fit() -> None:
    one = parse_json_schema(in_draft_2020(_ref="#", minLength=1))
    two = parse_json_schema(in_draft_2020(_ref="#", minLength=2))

    assert [each.rule for each in breaks(two, one)] == ["schema_too_complex"]


@pytest.mark.parametrize(
    "text",
    [
        '{"$schema": "http://127.0.0.1:1/draft"}',
        '{"$ref": "http://127.0.0.1:1/other.json"}',
        '{"$ref": "file:///etc/passwd"}',
        '{"$ref": "#nowhere"}',
        '{"properties": {"default": {"$ref": "#/nowhere"}}}',
    ],
)
def test_a_schema_that_points_outside_or_nowhere_is_refused_and_nobody_is_asked_for_it(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_json_schema(text)


@pytest.mark.parametrize(("pattern", "fits"), [(r"^\p{Lu}", True), ("^(a+)+$", False), ("^(?!x)", True)])
def test_patterns_of_names_are_read_as_where_data_is_checked_and_always_end(pattern: str, fits: bool) -> None:
    name = "A" + "a" * 60 + "!" if fits else "a" * 60 + "!"
    closed = {"additionalProperties": False, "patternProperties": {pattern: {"type": "string"}}}
    old = parse_json_schema(json.dumps({**closed, "properties": {name: {"type": "string"}}}))
    new = parse_json_schema(json.dumps({**closed, "properties": {}}))

    assert (json_breaks(new, old) == []) is fits


@pytest.mark.parametrize("keyword", ["default", "const", "examples", "enum"])
def test_what_looks_like_a_reference_in_data_is_none(keyword: str) -> None:
    data = {"$ref": "#/nowhere"}

    schema = parse_json_schema(json.dumps({keyword: [data] if keyword in ("examples", "enum") else data}))

    assert json_breaks(schema, schema) == []


@pytest.mark.parametrize(
    ("reference", "place"),
    [
        ("#/$defs/the%20code", {}),
        ("#code", {"$anchor": "code"}),
        ("http://shop.example/code.json", {"$id": "http://shop.example/code.json"}),
        ("code.json", {"$id": "code.json"}),
    ],
)
def test_a_change_behind_a_reference_is_seen_however_it_is_written(
    reference: str, place: dict[str, str]
) -> None:
    def schema(kind: str) -> str:
        return in_draft_2020(
            _id="http://shop.example/order.json",
            properties={"p": {"$ref": reference}},
            _defs={"the code": {**place, "type": kind}},
        )

    old, new = parse_json_schema(schema("integer")), parse_json_schema(schema("string"))

    assert [(each.path, each.rule) for each in json_breaks(new, old)] == [
        ("#/properties/p/type", "type_narrowed")
    ]
    assert json_breaks(old, old) == []


def test_a_reference_in_another_document_counts_from_there() -> None:
    def order(kind: str) -> Json:
        address = parse_json_schema(
            json.dumps({"properties": {"zip": {"$ref": "#/$defs/zip"}}, "$defs": {"zip": {"type": kind}}})
        )
        return parse_json_schema(
            '{"properties": {"to": {"$ref": "address.json"}}}', {"address.json": address}
        )

    assert json_breaks(order("string"), order("string")) == []
    assert [each.path for each in json_breaks(order("integer"), order("string"))] == [
        "#/properties/to/properties/zip/type"
    ]


def test_what_stands_beside_a_reference_counts_in_newer_drafts_alone() -> None:
    def schema(draft: str, **beside: int) -> Json:
        return parse_json_schema(
            json.dumps({"$schema": draft, "$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}, **beside})
        )

    newer = json_breaks(schema(DRAFT_2020, maxLength=3), schema(DRAFT_2020))
    draft_7 = "http://json-schema.org/draft-07/schema#"
    older = json_breaks(schema(draft_7, maxLength=3), schema(draft_7))

    assert ([each.rule for each in newer], older) == (["maxLength_added"], [])
    assert json_breaks(schema(DRAFT_2020), schema(DRAFT_2020, maxLength=3)) == []
