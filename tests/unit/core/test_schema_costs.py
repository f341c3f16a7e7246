"""What a schema may make of data is told from the schema: bounded, endless, or too much for one go."""

import json

import pytest

from goqueue.core.schemas.avro_data import AvroJudge, avro_ns
from goqueue.core.schemas.checkers import Checker, Checkers, Prepared
from goqueue.core.schemas.json_costs import units_of
from goqueue.core.schemas.json_data import JsonJudge
from goqueue.core.schemas.json_documents import Json, parse_json_schema
from goqueue.core.schemas.limits import TooMuch
from goqueue.core.schemas.registry import Registry
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.settings import SchemaConfig
from tests.unit.core.schema_steps import decide, prepared

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def units(schema: Json) -> int | None:
    return units_of(parse_json_schema(json.dumps(schema)))


def doubling(depth: int, keyword: str) -> Json:
    parts: dict[str, Json] = {
        f"d{n}": {keyword: [{"$ref": f"#/definitions/d{n + 1}"}, {"$ref": f"#/definitions/d{n + 1}"}]}
        for n in range(depth)
    }
    return {"$ref": "#/definitions/d0", "definitions": {**parts, f"d{depth}": {"type": "integer"}}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_definitions_that_double_the_work_are_counted_along_all_paths(keyword: str) -> None:
    shallow = units(doubling(3, keyword))

    assert shallow is not None and 2**3 * 10 <= shallow <= 2**5 * 10
    assert units(doubling(40, keyword)) is None


def test_what_looks_at_different_places_does_not_add_up() -> None:
    order = {"properties": {f"p{n}": {"type": "string"} for n in range(100)}}

    assert units(order) == units({"properties": {f"p{n}": {} for n in range(100)}}) == 110


def test_children_that_two_parts_look_at_count_twice() -> None:
    one: Json = {"properties": {"a": {"enum": list(range(500))}}}
    once, twice = units(one), units({"allOf": [one, dict(one, title="other")]})

    assert once is not None and twice is not None
    assert twice >= 2 * once - 50


def test_a_list_or_a_tree_that_refers_to_itself_is_bounded() -> None:
    tree = {"properties": {"text": {"type": "string"}, "children": {"items": {"$ref": "#"}}}}
    pair = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}

    assert units(tree) is not None
    assert units(pair) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"properties": {"c": {"$ref": "#"}}}, {"properties": {"c": {"$ref": "#"}}}]},
        {"properties": {"c": {"$ref": "#"}}, "patternProperties": {"c": {"$ref": "#"}}},
        {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
        {"anyOf": [{"$ref": "#"}, {"items": {"$ref": "#"}}]},
        {"pattern": r"^(a*)*\1$"},
        {"pattern": "^(?=a)"},
        {"pattern": "(a{40}){40}"},
        {"format": "regex"},
        {"$schema": DRAFT_2020, "$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a"}}},
    ],
)
def test_where_nobody_can_tell_it_counts_as_endless(schema: Json) -> None:
    assert units(schema) is None


def test_references_between_documents_are_followed() -> None:
    other = parse_json_schema(json.dumps(doubling(40, "allOf")))

    assert units_of(parse_json_schema('{"$ref": "other.json"}', {"other.json": other})) is None


def test_types_within_types_cost_more_a_byte() -> None:
    def chain(depth: int) -> bytes:
        schema: Json = "int"
        for n in range(depth):
            schema = {"type": "record", "name": f"R{n}", "fields": [{"name": "f", "type": schema}]}
        return json.dumps(schema).encode()

    assert avro_ns(chain(50)) > 10 * avro_ns(chain(2))
    recursive = {"type": "record", "name": "R", "fields": [{"name": "f", "type": ["null", "R"]}]}
    assert avro_ns(json.dumps(recursive).encode()) < 500


def test_fields_without_bytes_are_not_walked_over() -> None:
    fields = [{"name": f"n{n}", "type": "null"} for n in range(1_000)] + [{"name": "x", "type": "boolean"}]
    schema = {"type": "array", "items": {"type": "record", "name": "R", "fields": fields}}
    judge = AvroJudge(json.dumps(schema).encode(), bytes_max=100_000)

    assert judge.misfit(b"\x80\x7d" + b"\x01" * 8_000 + b"\x00") is None


def test_more_data_than_may_be_is_not_begun() -> None:
    form = json.dumps(({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {})).encode()
    judge = JsonJudge(form, bytes_max=40)

    assert judge.misfit(b"1" + b" " * 39) is None
    with pytest.raises(TooMuch):
        judge.misfit(b"1" + b" " * 40)
    assert judge.misfit(b'"x"') is not None
    with pytest.raises(TooMuch):  # to say why costs more than to see it
        judge.misfit(b'"x"' + b" " * 20)


def ready(schema_id: int, size: int = 10) -> Prepared:
    return Prepared(SchemaKind.JSON, b"[true,{}]".ljust(size), 1, {"": None})


def test_the_schemas_used_last_are_kept_as_many_as_there_is_room_for() -> None:
    checkers = Checkers(SchemaConfig(checkers_max=2, checkers_bytes=100))
    checkers.keep(1, ready(1))
    checkers.keep(2, ready(2))
    checkers.get(1)

    checkers.keep(3, ready(3))
    assert [checkers.get(n) is not None for n in (1, 2, 3)] == [True, False, True]
    checkers.keep(4, ready(4, size=95))
    assert (len(checkers), checkers.get(4) is not None) == (1, True)


def test_a_schema_that_is_late_three_times_in_a_row_is_not_trusted_any_more() -> None:
    checkers = Checkers(SchemaConfig())
    checker = checkers.keep(1, ready(1))
    assert isinstance(checker, Checker)
    content = checker.content()
    assert content is not None and content.misfit(b"1") is None

    assert checkers.was_late([1], 30) == checkers.was_late([1], 30) == []
    checkers.was_in_time()
    assert [checkers.was_late([1], 30) for _ in range(3)] == [[], [], [1]]

    with pytest.raises(TooMuch):
        content.misfit(b"1")
    assert list(checkers.slow) == [1]
    again = checkers.keep(1, ready(1))
    assert isinstance(again, Checker) and again.prepared.ns_a_byte == 0


def test_what_is_prepared_tells_how_dear_it_is() -> None:
    registry = Registry()
    texts = ['{"type": "integer"}', json.dumps(doubling(40, "allOf"))]
    for n, text in enumerate(texts):
        _, events = decide(registry, f"s{n}", SchemaText(SchemaKind.JSON, text))
        for event in events:
            registry.apply(event)

    assert [prepared(registry, n).ns_a_byte > 0 for n in (1, 2)] == [True, False]
