"""Which schema may follow which, for each kind, with the rule and the place that are named."""

import json

import pytest

from goqueue.core.schemas.avro_rules import avro_breaks, parse_avro
from goqueue.core.schemas.json_documents import Json, parse_json_schema
from goqueue.core.schemas.json_rules import json_breaks
from goqueue.core.schemas.protobuf_files import parse_protobuf
from goqueue.core.schemas.protobuf_rules import protobuf_breaks
from goqueue.model.errors import InvalidSchema

TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "number"}
WHOLE: Json = {"type": "integer"}


def thing(properties: Json, **keywords: Json) -> Json:
    return {"type": "object", "properties": properties, **keywords}


def closed(properties: Json, **keywords: Json) -> Json:
    return thing(properties, additionalProperties=False, **keywords)


def record(*fields: Json) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


def proto(body: str) -> str:
    return f'syntax = "proto3"; package shop; message Order {{ {body} }}'


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (TEXT, TEXT),
        (True, TEXT),
        (TEXT, False),
        (NUMBER, WHOLE),
        ({"type": ["string", "null"]}, TEXT),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}),
        ({"enum": ["a", "b"]}, {"const": "a"}),
        ({"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 5}),
        (TEXT, {"type": "string", "pattern": "^a"}),
        ({"type": "number", "multipleOf": 2}, {"type": "number", "multipleOf": 4}),
        (closed({"a": TEXT, "b": TEXT}), closed({"a": TEXT})),
        (thing({"a": TEXT}), thing({"a": TEXT, "b": TEXT})),
        (thing({"a": TEXT, "b": {}}), thing({"a": TEXT})),
        (thing({"a": TEXT}), closed({"a": TEXT})),
        (thing({"a": TEXT}), thing({"a": TEXT}, required=["a"])),
        (
            closed({"a": {"type": "string", "default": ""}}, required=["a"]),
            closed({"a": TEXT}),
        ),
        (thing({"a": NUMBER}), thing({}, additionalProperties=WHOLE)),
        (thing({}, dependencies={"a": ["b"]}), thing({}, dependencies={"a": ["b", "c"], "d": ["a"]})),
        (thing({}), thing({}, dependentRequired={"a": ["b"]})),
        ({"oneOf": [TEXT, WHOLE]}, TEXT),
        ({"anyOf": [TEXT, WHOLE, {"type": "null"}]}, {"anyOf": [WHOLE, TEXT]}),
        ({"allOf": [TEXT]}, {"allOf": [TEXT, {"maxLength": 3}]}),
        ({"type": "array", "items": NUMBER}, {"type": "array", "items": WHOLE}),
        ({"not": {"type": "null"}}, {"not": {"type": ["null", "string"]}}),
        (
            {"$ref": "#/$defs/node", "$defs": {"node": thing({"next": {"$ref": "#/$defs/node"}})}},
            {"$ref": "#/$defs/node", "$defs": {"node": thing({"next": {"$ref": "#/$defs/node"}})}},
        ),
    ],
)
def test_what_allows_at_least_as_much_reads_older_json(reader: Json, writer: Json) -> None:
    breaks = json_breaks(parse_json_schema(json.dumps(reader)), parse_json_schema(json.dumps(writer)))

    assert breaks == []


@pytest.mark.parametrize(
    ("reader", "writer", "path", "rule"),
    [
        (False, TEXT, "#", "schema_closed"),
        (WHOLE, NUMBER, "#/type", "type_narrowed"),
        (TEXT, True, "#/type", "type_narrowed"),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, "#/enum", "enum_array_narrowed"),
        ({"type": "string", "enum": ["a"]}, TEXT, "#/enum", "enum_added"),
        ({"type": "string", "maxLength": 3}, {"type": "string", "maxLength": 5}, "#/maxLength",
         "maxLength_narrowed"),
        ({"type": "number", "minimum": 0}, NUMBER, "#/minimum", "minimum_added"),
        ({"type": "string", "pattern": "^a"}, TEXT, "#/pattern", "pattern_added"),
        (thing({"a": TEXT, "b": TEXT}), thing({"a": TEXT}), "#/properties/b",
         "property_added_to_open_content_model"),
        (closed({"a": TEXT}), closed({"a": TEXT, "b": TEXT}), "#/properties/b",
         "property_removed_from_closed_content_model"),
        (closed({"a": TEXT}), thing({"a": TEXT}), "#/additionalProperties", "additional_properties_removed"),
        (thing({"a": TEXT}, required=["a"]), thing({"a": TEXT}), "#/required", "required_attribute_added"),
        (thing({"a": {"type": "object", "properties": {"b": WHOLE}}}),
         thing({"a": {"type": "object", "properties": {"b": TEXT}}}), "#/properties/a/properties/b/type",
         "type_narrowed"),
        ({"oneOf": [TEXT, WHOLE]}, {"type": "boolean"}, "#/oneOf", "sum_type_narrowed"),
        (TEXT, {"oneOf": [TEXT, WHOLE]}, "#/oneOf/1/type", "type_narrowed"),
        ({"allOf": [TEXT, {"maxLength": 3}]}, TEXT, "#/allOf/1/maxLength", "maxLength_added"),
        ({"not": {"type": ["null", "string"]}}, {"not": {"type": "null"}}, "#/not", "not_type_extended"),
        ({"type": "array", "items": WHOLE}, {"type": "array", "items": TEXT}, "#/items/type",
         "type_narrowed"),
    ],
)  # fmt: skip
def test_what_allows_less_names_the_place_and_the_rule(
    reader: Json, writer: Json, path: str, rule: str
) -> None:
    breaks = json_breaks(parse_json_schema(json.dumps(reader)), parse_json_schema(json.dumps(writer)))

    assert (path, rule) in [(each.path, each.rule) for each in breaks]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "3",
        '{"type": "nonsense"}',
        '{"properties": []}',
        '{"$ref": "#/$defs/missing"}',
        '{"$ref": "x.json"}',
    ],
)
def test_a_json_schema_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_json_schema(text)


def test_a_json_schema_may_refer_to_another_by_its_name() -> None:
    money = parse_json_schema(json.dumps(NUMBER))
    order = parse_json_schema(json.dumps(thing({"total": {"$ref": "money.json"}})), {"money.json": money})
    older = parse_json_schema(json.dumps(thing({"total": TEXT})))

    assert [each.rule for each in json_breaks(order, older)] == ["type_narrowed"]
    assert order.validator.is_valid({"total": 3}) and not order.validator.is_valid({"total": "3"})


@pytest.mark.parametrize(
    ("reader", "writer", "rules"),
    [
        (record({"name": "a", "type": "long"}), record({"name": "a", "type": "int"}), []),
        (record(), record({"name": "a", "type": "int"}), []),
        (record({"name": "a", "type": "int", "default": 0}), record(), []),
        (record({"name": "a", "type": "int"}), record(), ["reader_field_missing_default_value"]),
        (record({"name": "a", "type": "int"}), record({"name": "a", "type": "string"}), ["type_mismatch"]),
        (
            record({"name": "a", "type": ["null", "int"]}),
            record({"name": "a", "type": ["null", "int", "string"]}),
            ["missing_union_branch"],
        ),
        ('"string"', '"string"', []),
        ("string", '"bytes"', []),
    ],
)
def test_avro_follows_the_rules_of_schema_resolution(reader: str, writer: str, rules: list[str]) -> None:
    breaks = avro_breaks(parse_avro(reader), parse_avro(writer))

    assert [each.rule for each in breaks] == rules


@pytest.mark.parametrize(
    "text", ["{", '{"type": "recor"}', '{"type": "record", "fields": []}', record({"name": "a"})]
)
def test_an_avro_schema_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_avro(text)


def test_an_avro_schema_may_use_the_types_of_another() -> None:
    money = parse_avro(
        json.dumps({"type": "record", "name": "shop.Money", "fields": [{"name": "n", "type": "int"}]})
    )
    order = parse_avro(
        record({"name": "a", "type": "shop.Money"}, {"name": "b", "type": "shop.Money"}), {"money": money}
    )

    assert avro_breaks(order, order) == []


@pytest.mark.parametrize(
    ("reader", "writer", "rules"),
    [
        ("int64 a = 1;", "int32 a = 1;", []),
        ("bytes a = 1;", "string a = 1;", []),
        ("string a = 1; int32 b = 2;", "string a = 1;", []),
        ("", "string a = 1;", []),
        ("string renamed = 1;", "string a = 1;", []),
        ("map<string, int64> a = 1;", "map<string, int32> a = 1;", []),
        ("oneof one { string a = 1; int32 b = 2; }", "string a = 1;", []),
        ("optional string a = 1;", "string a = 1;", []),
        ("", "optional string a = 1;", []),
        ("string a = 1;", "int32 a = 1;", ["field_kind_changed"]),
        ("sint32 a = 1;", "int32 a = 1;", ["field_kind_changed"]),
        ("repeated int32 a = 1;", "int32 a = 1;", ["field_numeric_label_changed"]),
        ("repeated string a = 1;", "string a = 1;", []),
        (
            "oneof one { string a = 1; int32 b = 2; }",
            "string a = 1; int32 b = 2;",
            ["multiple_fields_moved_to_oneof"],
        ),
        ("oneof one { string a = 1; }", "oneof one { string a = 1; int32 b = 2; }", ["oneof_field_removed"]),
        (
            "oneof one { string a = 1; } int32 b = 2;",
            "oneof one { string a = 1; int32 b = 2; }",
            ["oneof_field_removed"],
        ),
        ("string a = 1; int32 b = 2;", "oneof one { string a = 1; int32 b = 2; }", []),
        ("", "oneof one { string a = 1; int32 b = 2; }", []),
        ("oneof two { string a = 1; int32 b = 2; }", "oneof one { string a = 1; int32 b = 2; }", []),
        (
            "oneof one { string a = 1; int32 b = 2; }",
            "oneof one { string a = 1; } int32 b = 2;",
            ["field_moved_to_existing_oneof"],
        ),
        ("oneof one { string a = 1; int32 b = 2; }", "optional string a = 1;", []),
        (
            "oneof one { string a = 1; int32 b = 2; }",
            "optional string a = 1; optional int32 b = 2;",
            ["multiple_fields_moved_to_oneof"],
        ),
        ("", "message Item { string a = 1; }", ["message_removed"]),
        (
            "message Item { int32 a = 1; } Item item = 1;",
            "message Item { string a = 1; } Item item = 1;",
            ["field_kind_changed"],  # told once, where the type is met first
        ),
        (
            "message Item {} message Thing {} Thing item = 1;",
            "message Item {} message Thing {} Item item = 1;",
            ["field_named_type_changed"],
        ),
    ],
)
def test_protobuf_fields_must_keep_their_meaning_on_the_wire(
    reader: str, writer: str, rules: list[str]
) -> None:
    breaks = protobuf_breaks(
        parse_protobuf(proto(reader)).descriptor, parse_protobuf(proto(writer)).descriptor
    )

    assert [each.rule for each in breaks] == rules


@pytest.mark.parametrize(
    "text",
    [
        "message {",
        'syntax = "proto3";',
        proto("Missing a = 1;"),
        proto("string a = 1; string b = 1;"),
        'syntax = "proto3"; import "other.proto"; message Order {}',
        "AAAA",
    ],
)
def test_a_protobuf_schema_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_protobuf(text)


def test_a_protobuf_schema_may_import_others_and_what_comes_with_protobuf() -> None:
    item = parse_protobuf('syntax = "proto3"; package shop; message Item { string name = 1; }')
    order = parse_protobuf(
        'syntax = "proto3"; package shop; import "item.proto"; import "google/protobuf/timestamp.proto";'
        "message Order { shop.Item item = 1; google.protobuf.Timestamp at = 2; }",
        {"item.proto": item},
    )

    kept = order.descriptor.message_types_by_name["Order"].fields_by_name["item"].message_type
    assert kept is not None and kept.full_name == "shop.Item"
