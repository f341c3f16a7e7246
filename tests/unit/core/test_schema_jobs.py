"""Work on schemas for a helper process: bytes in, bytes out, and no answer longer than anybody reads."""

import json

import msgspec
import pytest

from goqueue.core.schemas import jobs
from goqueue.core.schemas.registry import Registry
from goqueue.core.schemas.sources import Compared, Pair, SourceText, Understood
from goqueue.model.errors import InvalidSchemaVersion, SchemaNotFound, SubjectNotFound
from goqueue.model.schemas import SchemaKind, SchemaText
from tests.unit.core.schema_steps import decide, find

_encode = msgspec.msgpack.encode
RECORD = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "a", "type": "int"}]})


def json_source(schema: object, *references: tuple[str, int]) -> SourceText:
    return SourceText("JSON", json.dumps(schema), references)


def understood(*sources: SourceText) -> Understood:
    return msgspec.msgpack.decode(jobs.understand(_encode(sources)), type=Understood)


def compared(
    new: SourceText, old: SourceText, *, reads_older: bool = True, is_read_by_older: bool = True
) -> Compared:
    pair = Pair([new], [old], reads_older, is_read_by_older)
    return msgspec.msgpack.decode(jobs.compare(_encode(pair)), type=Compared)


@pytest.mark.parametrize(
    ("text", "kind"),
    [(RECORD, "AVRO"), ('"string"', "AVRO"), ('{"type": "object"}', "JSON"), ("nonsense {", "JSON")],
)
def test_a_text_without_a_kind_is_what_it_looks_like(text: str, kind: str) -> None:
    assert jobs.tell_kind(text.encode()) == kind.encode()


def test_schemas_that_differ_in_spelling_only_have_one_digest() -> None:
    one = understood(SourceText("JSON", '{"type":"object","title":"t"}'))
    other = understood(SourceText("JSON", '{ "title": "t", "type": "object" }'))

    assert one == other
    assert (one.kind, one.problem) == (SchemaKind.JSON, "")
    assert understood(json_source({"title": "u"})).digest != one.digest


def test_why_a_schema_cannot_be_used_is_told_at_no_great_length() -> None:
    found = understood(SourceText("JSON", json.dumps({"type": "x" * 5_000})))

    assert (found.kind, found.digest) == (None, "")
    assert 0 < len(found.problem) <= 1_000


def test_a_schema_is_understood_with_those_that_stand_before_it() -> None:
    money, order = json_source({"type": "number"}), json_source({"$ref": "m"}, ("m", 0))

    assert understood(money, order).problem == ""
    assert understood(json_source({"$ref": "m"})).problem


def test_a_reference_to_a_schema_of_another_kind_is_refused() -> None:
    found = understood(SourceText("AVRO", RECORD), json_source({"$ref": "m"}, ("m", 0)))

    assert found.problem == "m is of another kind than the schema that refers to it"


def test_only_the_directions_that_are_asked_for_are_compared() -> None:
    wide, narrow = json_source({"type": ["string", "null"]}), json_source({"type": "string"})

    both = compared(narrow, wide)
    assert (len(both.reading_older), both.read_by_older) == (1, [])
    assert compared(narrow, wide, reads_older=False).reading_older == []
    assert len(compared(wide, narrow).read_by_older) == 1
    assert compared(wide, narrow, is_read_by_older=False) == Compared([], [])


def test_a_schema_does_not_follow_one_of_another_kind() -> None:
    found = compared(json_source({"type": "object"}), SourceText("AVRO", RECORD))

    assert "was AVRO, is JSON now" in found.reading_older[0]
    assert "was JSON, is AVRO now" in found.read_by_older[0]


def test_an_older_schema_that_nobody_understands_any_more_is_named() -> None:
    found = compared(json_source({}), SourceText("JSON", "{"))

    assert found.reading_older[0].startswith("it is not understood any more: ")


@pytest.mark.parametrize(("count", "told"), [(100, 100), (101, 101), (250, 101)])
def test_of_many_breaks_a_hundred_are_told_and_how_many_more_there_are(count: int, told: int) -> None:
    names = {f"p{number:03}": {"type": "string"} for number in range(count)}
    older = {name: {"type": "integer"} for name in names}

    found = compared(json_source({"properties": names}), json_source({"properties": older})).reading_older

    assert len(found) == told
    assert (f"and {count - 100} more" in found) is (count > 100)


def registered(*subjects: str) -> Registry:
    registry = Registry()
    for subject in subjects:
        for event in decide(registry, subject, SchemaText(SchemaKind.AVRO, RECORD))[1]:
            registry.apply(event)
    return registry


def test_a_schema_is_found_in_the_subjects_it_stands_in() -> None:
    registry = registered("a", "b")
    respelt = SchemaText(SchemaKind.AVRO, RECORD.replace(" ", ""))

    assert (find(registry, "b", respelt).version, registry.places(1)[1].subject) == (1, "b")
    assert (registry.stands_in("a", 1), registry.stands_in("a", 2), registry.stands_in("c", 1)) == (
        True,
        False,
        False,
    )
    assert (registry.latest_id("a"), registry.latest_id("c")) == (1, None)
    with pytest.raises(SchemaNotFound):
        find(registry, "a", SchemaText(SchemaKind.AVRO, '"string"'))
    with pytest.raises(SubjectNotFound):
        find(registry, "c", respelt)


def test_what_is_deleted_is_found_only_by_who_asks_for_it() -> None:
    registry = registered("a")
    for event in registry.delete_subject("a", is_permanent=False)[1]:
        registry.apply(event)

    schema = SchemaText(SchemaKind.AVRO, RECORD)
    assert find(registry, "a", schema, with_deleted=True).is_deleted
    with pytest.raises(SubjectNotFound):
        find(registry, "a", schema)
    assert (registry.latest_id("a"), registry.stands_in("a", 1)) == (None, False)
    assert registry.places(1) == []


@pytest.mark.parametrize("version", [0, -1])
def test_versions_count_from_1(version: int) -> None:
    with pytest.raises(InvalidSchemaVersion):
        registered("a").version("a", version)


def test_subjects_are_listed_by_how_they_begin() -> None:
    registry = registered("b-value", "a-value", "a-key")

    assert registry.subjects() == ["a-key", "a-value", "b-value"]
    assert registry.subjects(prefix="a-") == ["a-key", "a-value"]
    with pytest.raises(SchemaNotFound):
        registry.places(9)
