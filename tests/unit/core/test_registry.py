"""The registry machine: versions, ids, deletion, levels, modes, references, and its state written anew."""

import json

import pytest

from goqueue.core.schemas.events import Event, SchemaRegistered
from goqueue.core.schemas.registry import Registry
from goqueue.core.schemas.settings import GLOBAL
from goqueue.core.schemas.sources import SOURCES_MAX
from goqueue.model.errors import (
    IncompatibleSchema,
    InvalidSchema,
    NotSoftDeleted,
    RegistryReadOnly,
    SchemaNotFound,
    SchemaReferenced,
    SchemaVersionNotFound,
    SchemaVersionSoftDeleted,
    SubjectNotFound,
    SubjectSoftDeleted,
    VersionNotSoftDeleted,
)
from goqueue.model.schemas import (
    Compatibility,
    RegistryMode,
    SchemaKind,
    SchemaReference,
    SchemaText,
    SchemaVersion,
)
from tests.unit.core.schema_steps import decide, digest_of, problems


def avro(*names: str, default: int | None = 0) -> SchemaText:
    fields = [{"name": n, "type": "int"} | ({} if default is None else {"default": default}) for n in names]
    return SchemaText(SchemaKind.AVRO, json.dumps({"type": "record", "name": "Order", "fields": fields}))


def carry_out(registry: Registry, events: list[Event]) -> None:
    for event in events:
        registry.apply(event)


def register(registry: Registry, subject: str, schema: SchemaText) -> SchemaVersion:
    place, events = decide(registry, subject, schema)
    carry_out(registry, events)
    return place


def delete(registry: Registry, subject: str, *, is_permanent: bool = False) -> None:
    carry_out(registry, registry.delete_subject(subject, is_permanent=is_permanent)[1])


def test_versions_count_within_a_subject_and_ids_over_all() -> None:
    registry = Registry()

    places = [
        register(registry, "a", avro("x")),
        register(registry, "a", avro("x", "y")),
        register(registry, "b", avro("z")),
    ]

    assert [(p.version, p.schema_id) for p in places] == [(1, 1), (2, 2), (1, 3)]


def test_the_same_schema_in_another_spelling_keeps_its_place() -> None:
    registry = Registry()
    register(registry, "a", SchemaText(SchemaKind.JSON, '{"type":"object","title":"t"}'))

    again, events = decide(registry, "a", SchemaText(SchemaKind.JSON, '{ "title": "t", "type": "object" }'))

    assert (again.version, again.schema_id, events) == (1, 1, [])


def test_one_schema_has_one_id_in_all_subjects() -> None:
    registry = Registry()

    assert register(registry, "a", avro("x")).schema_id == register(registry, "b", avro("x")).schema_id
    assert [p.subject for p in registry.places(1)] == ["a", "b"]


def test_what_breaks_readers_is_refused_with_the_rule_and_changes_nothing() -> None:
    registry = Registry()
    register(registry, "a", avro("x"))

    with pytest.raises(IncompatibleSchema, match=r"version 1.*reader_field_missing_default_value"):
        decide(registry, "a", avro("x", "y", default=None))
    assert registry.versions("a") == [1]


@pytest.mark.parametrize(
    ("level", "fits"),
    [
        (Compatibility.NONE, True),
        (Compatibility.BACKWARD, False),
        (Compatibility.FORWARD, True),
        (Compatibility.FULL, False),
    ],
)
def test_levels_ask_for_reading_in_different_directions(level: Compatibility, fits: bool) -> None:
    registry = Registry()
    registry.apply(registry.settings.set_compatibility("a", level))
    register(registry, "a", avro("x", default=None))

    assert (not problems(registry, "a", avro("x", "y", default=None))) is fits


def test_only_transitive_levels_look_beyond_the_last_version() -> None:
    registry = Registry()
    registry.apply(registry.settings.set_compatibility("a", Compatibility.NONE))
    register(registry, "a", avro("x", default=None))
    register(registry, "a", avro("y", default=None))
    new = avro("y", default=None)

    registry.apply(registry.settings.set_compatibility("a", Compatibility.BACKWARD))
    assert problems(registry, "a", new) == []
    registry.apply(registry.settings.set_compatibility("a", Compatibility.BACKWARD_TRANSITIVE))
    assert "version 1" in problems(registry, "a", new)[0]


def test_another_kind_of_schema_does_not_follow() -> None:
    registry = Registry()
    register(registry, "a", avro("x"))

    assert "schema_type_changed" in problems(registry, "a", SchemaText(SchemaKind.JSON, "{}"))[0]


def test_what_is_deleted_is_out_of_sight_but_its_id_can_be_read() -> None:
    registry = Registry()
    register(registry, "a", avro("x"))
    delete(registry, "a")

    assert registry.subjects() == [] and registry.subjects(with_deleted=True) == ["a"]
    with pytest.raises(SubjectNotFound):
        registry.version("a", "latest")
    assert registry.schema(1) == avro("x")
    assert register(registry, "a", avro("x")).version == 2


def test_only_what_is_deleted_goes_for_good_and_its_id_is_not_given_again() -> None:
    registry = Registry()
    register(registry, "a", avro("x"))
    with pytest.raises(NotSoftDeleted):
        registry.delete_subject("a", is_permanent=True)
    delete(registry, "a")
    delete(registry, "a", is_permanent=True)

    with pytest.raises(SchemaNotFound):
        registry.schema(1)
    assert register(registry, "a", avro("y")).schema_id == 2


def test_a_single_version_can_be_deleted() -> None:
    registry = Registry()
    register(registry, "a", avro("x"))
    register(registry, "a", avro("x", "y"))

    carry_out(registry, registry.delete_version("a", "latest", is_permanent=False)[1])

    assert registry.versions("a") == [1]
    with pytest.raises(SchemaVersionNotFound):
        registry.version("a", 2)


def test_what_others_are_built_on_cannot_be_deleted() -> None:
    registry = Registry()
    register(registry, "money", SchemaText(SchemaKind.JSON, '{"type":"number"}'))
    order = SchemaText(SchemaKind.JSON, '{"$ref":"money.json"}', (SchemaReference("money.json", "money", 1),))
    register(registry, "order", order)

    assert registry.referenced_by("money", 1) == [2]
    with pytest.raises(SchemaReferenced):
        registry.delete_subject("money", is_permanent=False)


def test_a_reference_to_nothing_is_refused() -> None:
    order = SchemaText(SchemaKind.JSON, '{"$ref":"m"}', (SchemaReference("m", "money", 1),))

    with pytest.raises(InvalidSchema, match="money"):
        decide(Registry(), "order", order)


def test_a_read_only_subject_gives_what_it_has_and_takes_nothing() -> None:
    registry = Registry()
    register(registry, "a", avro("x"))
    registry.apply(registry.set_mode("a", RegistryMode.READONLY))

    assert register(registry, "a", avro("x")).version == 1
    with pytest.raises(RegistryReadOnly):
        decide(registry, "a", avro("x", "y"))
    with pytest.raises(RegistryReadOnly):
        registry.delete_subject("a", is_permanent=False)


def test_ids_and_versions_are_given_only_in_import_mode() -> None:
    registry = Registry()
    with pytest.raises(RegistryReadOnly):
        decide(registry, "a", avro("x"), schema_id=7)
    registry.apply(registry.set_mode(GLOBAL, RegistryMode.IMPORT))

    place, events = decide(registry, "a", avro("x"), schema_id=7, version=3)
    carry_out(registry, events)

    assert (place.schema_id, place.version) == (7, 3)
    with pytest.raises(InvalidSchema):
        decide(registry, "b", avro("y"), schema_id=7)
    with pytest.raises(RegistryReadOnly):
        registry.set_mode("a", RegistryMode.IMPORT)


def test_the_state_written_anew_is_the_same_state() -> None:
    registry = Registry()
    register(registry, "money", SchemaText(SchemaKind.JSON, '{"type":"number"}'))
    register(
        registry,
        "order",
        SchemaText(SchemaKind.JSON, '{"$ref":"m"}', (SchemaReference("m", "money", 1),)),
    )
    register(registry, "gone", avro("x"))
    delete(registry, "gone")
    register(registry, "removed", avro("q"))
    delete(registry, "removed")
    delete(registry, "removed", is_permanent=True)
    registry.apply(registry.settings.set_compatibility(GLOBAL, Compatibility.FULL))
    registry.apply(registry.set_mode("order", RegistryMode.READONLY))

    copy = Registry()
    carry_out(copy, list(registry.whole_state()))

    assert list(copy.whole_state()) == list(registry.whole_state())
    assert register(copy, "new", avro("z")).schema_id == register(registry, "new", avro("z")).schema_id == 5


def test_deleting_again_says_that_it_is_deleted_already() -> None:
    registry = Registry()
    register(registry, "a", avro("x"))
    register(registry, "a", avro("x", "y"))
    carry_out(registry, registry.delete_version("a", 2, is_permanent=False)[1])

    with pytest.raises(SchemaVersionSoftDeleted):
        registry.delete_version("a", 2, is_permanent=False)
    with pytest.raises(VersionNotSoftDeleted):
        registry.delete_version("a", 1, is_permanent=True)
    delete(registry, "a")
    with pytest.raises(SubjectSoftDeleted):
        registry.delete_subject("a", is_permanent=False)


def test_imported_versions_stand_in_the_order_of_their_numbers_and_are_not_replaced() -> None:
    registry = Registry()
    registry.apply(registry.set_mode("a", RegistryMode.IMPORT))
    for version, name in ((5, "e"), (2, "b")):
        carry_out(registry, decide(registry, "a", avro(name), schema_id=100 + version, version=version)[1])

    assert registry.versions("a") == [2, 5]
    assert registry.version("a", "latest").version == 5
    with pytest.raises(InvalidSchema, match="version 5 of subject a is another schema"):
        decide(registry, "a", avro("z"), schema_id=9, version=5)
    carry_out(registry, registry.delete_version("a", 5, is_permanent=False)[1])
    with pytest.raises(InvalidSchema, match="version 5 of subject a is another schema"):
        decide(registry, "a", avro("z"), schema_id=9, version=5)
    carry_out(registry, decide(registry, "a", avro("e"), schema_id=105, version=5)[1])
    assert registry.versions("a") == [2, 5]


def test_a_schema_that_nobody_understands_any_more_does_not_keep_a_broker_from_starting() -> None:
    registry = Registry()
    register(registry, "a", avro("x"))

    registry.apply(SchemaRegistered("b", 1, 2, "AVRO", "once this was valid", ()))

    assert registry.schema(2).text == "once this was valid"
    assert register(registry, "a", avro("x", "y")).schema_id == 3
    delete(registry, "b")
    delete(registry, "b", is_permanent=True)
    assert registry.subjects(with_deleted=True) == ["a"]


def test_a_journal_from_before_digests_were_kept_is_found_out_about_when_needed() -> None:
    registry = Registry()
    schema = SchemaText(SchemaKind.JSON, '{"type":"object","title":"t"}')
    registry.apply(SchemaRegistered("a", 1, 1, "JSON", schema.text, ()))

    assert (registry.digest(schema), registry.undigested(SchemaKind.JSON)) == (None, [1])
    registry.note_digest(1, digest_of(registry, schema))

    respelt = SchemaText(SchemaKind.JSON, '{ "title": "t", "type": "object" }')
    assert decide(registry, "a", respelt)[0].schema_id == 1
    assert registry.undigested(SchemaKind.JSON) == []
    rebuilt = Registry()
    for event in registry.whole_state():
        rebuilt.apply(event)
    assert rebuilt.digest(schema) == registry.digest(schema)


def test_a_schema_is_built_on_no_more_others_than_may_be() -> None:
    registry = Registry()
    for n in range(SOURCES_MAX + 1):
        references = (SchemaReference("a", f"s{n - 1}", 1), SchemaReference("b", f"s{n - 1}", 1)) if n else ()
        registry.apply(SchemaRegistered(f"s{n}", 1, n + 1, "JSON", "{}", references))

    # Each refers twice to the one before: as many paths as nobody could follow, but each is taken once.
    assert len(registry.sources(registry.schema(50))) == 50
    with pytest.raises(InvalidSchema, match="built on 200 others"):
        registry.sources(registry.schema(SOURCES_MAX + 1))
