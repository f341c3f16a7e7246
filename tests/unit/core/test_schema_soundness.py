"""A comparison of JSON schemas that says yes is right: what fits the writer's fits the reader's."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goqueue.core.schemas.json_documents import Json, parse_json_schema
from goqueue.core.schemas.json_rules import json_breaks

NAMES = ("a", "ab", "b")
PATTERNS = ("^a", "^ab", "b$")
SCALARS = st.sampled_from([None, True, False, 0, 1, 2.5, "", "a", "abc"])
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])
PLAIN = st.one_of(
    st.booleans(),
    st.just({}),
    TYPES.map(lambda kind: {"type": kind}),
    st.lists(SCALARS, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    st.integers(0, 3).map(lambda bound: {"type": "string", "maxLength": bound}),
    st.integers(0, 2).map(lambda bound: {"type": "integer", "minimum": bound}),
)


def objects(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
            "additionalProperties": inner,
            "required": st.lists(st.sampled_from(NAMES), unique=True, max_size=2),
        },
    )


SCHEMAS: st.SearchStrategy[Json] = st.recursive(
    PLAIN,
    lambda inner: (
        objects(inner)
        | inner.map(lambda items: {"type": "array", "items": items})
        | st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts})
        | st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts})
    ),
    max_leaves=4,
)


def assert_sound(reader: Json, writer: Json, values: list[Json]) -> None:
    newer, older = (parse_json_schema(json.dumps(schema)) for schema in (reader, writer))
    if json_breaks(newer, older):
        return
    for value in values:
        if older.validator.is_valid(value):
            assert newer.validator.is_valid(value), f"{value} fits {writer} and not {reader}"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS, SCHEMAS, st.lists(VALUES, min_size=5, max_size=10))
def test_what_is_said_to_fit_fits(reader: Json, writer: Json, values: list[Json]) -> None:
    assert_sound(reader, writer, values)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    objects(PLAIN),
    objects(PLAIN),
    st.lists(st.dictionaries(st.sampled_from(NAMES), SCALARS, max_size=3), min_size=5, max_size=10),
)
def test_what_is_said_to_fit_fits_for_objects_too(reader: Json, writer: Json, values: list[Json]) -> None:
    assert_sound(reader, writer, values)


@settings(max_examples=100, deadline=None)
@given(SCHEMAS)
def test_every_schema_follows_itself(schema: Json) -> None:
    document = parse_json_schema(json.dumps(schema))

    assert json_breaks(document, document) == []


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
CLOSED = {"type": "object", "additionalProperties": False}
FLAG_OR_COUNT = {"type": ["boolean", "integer"]}
DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}


@pytest.mark.parametrize(
    ("reader", "writer", "value"),
    [
        (CLOSED, {**CLOSED, "patternProperties": {"^a": TEXT}}, {"ab": "x"}),
        (
            {"patternProperties": {"^a": WHOLE}},
            {**CLOSED, "patternProperties": {"^ab": TEXT}},
            {"ab": "x"},
        ),
        (
            {"properties": {"ab": {}}, "patternProperties": {"^a": WHOLE}},
            {**CLOSED, "properties": {"ab": TEXT}},
            {"ab": "x"},
        ),
        (
            {"patternProperties": {"^a": {}, "b$": WHOLE}},
            {**CLOSED, "properties": {"ab": TEXT}},
            {"ab": "x"},
        ),
        ({**FLAG_OR_COUNT, "enum": [1]}, {**FLAG_OR_COUNT, "enum": [True]}, True),
        ({**FLAG_OR_COUNT, "const": False}, {**FLAG_OR_COUNT, "const": 0}, 0),
        ({"enum": [[1], [True, 0]]}, {"enum": [[True]]}, [True]),
        ({"enum": [{"a": 1}]}, {"enum": [{"a": True}]}, {"a": True}),
        ({"contains": {"const": 1}}, {"type": "array", "contains": {"const": True}}, [True]),
        ({**DRAFT_4, "maximum": 5, "exclusiveMaximum": True}, {**DRAFT_4, "maximum": 5}, 5),
        ({**DRAFT_4, "minimum": 5, "exclusiveMinimum": True}, {**DRAFT_4, "minimum": 5}, 5),
    ],
)
def test_names_and_values_that_only_look_alike_are_told_apart(
    reader: Json, writer: Json, value: Json
) -> None:
    newer, older = (parse_json_schema(json.dumps(schema)) for schema in (reader, writer))
    assert older.validator.is_valid(value)
    assert not newer.validator.is_valid(value)

    assert json_breaks(newer, older)


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ({"type": "number", "enum": [1, 2]}, {"type": "number", "enum": [1.0]}),
        ({"enum": [{"a": 1, "b": [None]}]}, {"const": {"b": [None], "a": 1}}),
        ({"patternProperties": {"^a": TEXT}}, {"patternProperties": {"^a": TEXT}}),
        (
            {"patternProperties": {"^a": {"type": ["string", "null"]}}},
            {**CLOSED, "patternProperties": {"^ab": TEXT}, "properties": {"a": {"type": "null"}}},
        ),
        ({"additionalProperties": {"type": "number"}}, {**CLOSED, "patternProperties": {"^a": WHOLE}}),
        ({**DRAFT_4, "maximum": 5, "exclusiveMaximum": True}, {**DRAFT_4, "maximum": 4}),
    ],
)
def test_what_allows_as_much_in_other_words_still_follows(reader: Json, writer: Json) -> None:
    newer, older = (parse_json_schema(json.dumps(schema)) for schema in (reader, writer))

    assert json_breaks(newer, older) == []
