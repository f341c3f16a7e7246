"""JSON Schema as columns: types mapped, what Spark has no type for refused with its path."""

import pytest

from goqueue.model.errors import Invalid
from goqueue.spark.pipelines.json_schema import JsonColumns, json_columns


def columns(**properties: object) -> JsonColumns:
    return json_columns({"type": "object", "properties": properties}, file_name="orders.json")


@pytest.mark.parametrize(
    ("schema", "ddl"),
    [
        ({"type": "string"}, "STRING"),
        ({"type": "integer"}, "BIGINT"),
        ({"type": "number"}, "DOUBLE"),
        ({"type": "boolean"}, "BOOLEAN"),
        ({"type": "string", "format": "date-time"}, "TIMESTAMP"),
        ({"type": "string", "format": "date"}, "DATE"),
        ({"type": "string", "format": "email"}, "STRING"),
        ({"type": ["null", "integer"]}, "BIGINT"),
        ({"anyOf": [{"type": "null"}, {"type": "number"}]}, "DOUBLE"),
        ({"enum": ["EUR", "USD"]}, "STRING"),
        ({"const": "order"}, "STRING"),
        ({"type": "array", "items": {"type": "integer"}}, "ARRAY<BIGINT>"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "MAP<STRING, DOUBLE>"),
        (
            {"type": "object", "properties": {"a b": {"type": "string"}, "c": {"type": "boolean"}}},
            "STRUCT<`a b`: STRING, `c`: BOOLEAN>",
        ),
    ],
)
def test_a_type_is_mapped(schema: object, ddl: str) -> None:
    assert columns(field=schema).ddl == f"`field` {ddl}"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": ["integer", "string"]}, "#/properties/field: Spark has no one type"),
        ({"type": "object"}, "#/properties/field: an object must say its properties"),
        ({"type": "array"}, "#/properties/field: an array must say what its items are"),
        ({"type": "array", "items": {"type": "array"}}, "#/properties/field/items: an array must say"),
        ({}, "#/properties/field: no type is given"),
        (
            {"oneOf": [{"type": "string"}, {"type": "number"}]},
            "#/properties/field: Spark has no type for a choice",
        ),
        ({"$ref": "other.json"}, "#/properties/field: other.json lies in another file"),
        ({"$ref": "#/$defs/none"}, "#/properties/field: there is no #/$defs/none"),
        (True, "#/properties/field: this is not a schema"),
    ],
)
def test_what_spark_has_no_type_for_is_refused_with_its_path(schema: object, problem: str) -> None:
    with pytest.raises(Invalid) as refused:
        columns(field=schema)

    assert str(refused.value).startswith(problem)


def test_all_problems_of_a_schema_are_told() -> None:
    with pytest.raises(Invalid) as refused:
        columns(a={}, b={"type": "array"})

    assert "#/properties/a" in str(refused.value)
    assert "#/properties/b" in str(refused.value)


def test_references_within_the_file_are_followed() -> None:
    schema = {
        "properties": {"customer": {"$ref": "#/$defs/person"}},
        "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }

    assert json_columns(schema, file_name="x").ddl == "`customer` STRUCT<`name`: STRING>"


def test_a_schema_that_refers_to_itself_is_refused() -> None:
    schema = {"properties": {"next": {"$ref": "#"}}, "type": "object"}

    with pytest.raises(Invalid, match="refers to itself"):
        json_columns(schema, file_name="x")


def test_fields_that_must_be_there_are_known_by_their_paths() -> None:
    schema = {
        "properties": {
            "id": {"type": "integer"},
            "note": {"type": ["string", "null"]},
            "customer": {
                "type": "object",
                "required": ["country"],
                "properties": {"country": {"type": "string"}, "name": {"type": "string"}},
            },
        },
        "required": ["id", "note"],
    }

    # A note that may be null cannot be told from one that is missing.
    assert json_columns(schema, file_name="x").required == (("id",), ("customer", "country"))
