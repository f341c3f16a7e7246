"""Schemas from a backup: each with its id and under its version, or told why not."""

import json

import pytest

from goqueue.core.schemas.events import CompatibilityChanged, IdsUsedUp, ModeChanged, ValidationChanged
from goqueue.core.schemas.registry import Registry
from goqueue.core.schemas.restoring import SchemasPlan, plan_schemas
from goqueue.core.schemas.settings import GLOBAL
from goqueue.model.errors import SchemaNotFound
from goqueue.model.schema_commands import RestoreSchemas
from goqueue.model.schemas import SchemaKind, SchemaReference, SchemaText, SchemaVersion
from tests.unit.core.schema_steps import decide, digest_of


def json_schema(title: str, *references: SchemaReference) -> SchemaText:
    return SchemaText(SchemaKind.JSON, json.dumps({"title": title}), references)


def place(
    subject: str, version: int, schema_id: int, schema: SchemaText | None = None, *, is_deleted: bool = False
) -> SchemaVersion:
    schema = json_schema(f"{subject} {version}") if schema is None else schema
    return SchemaVersion(subject, version, schema_id, schema, is_deleted)


def planned(
    registry: Registry,
    *versions: SchemaVersion,
    compatibility: dict[str, str] | None = None,
    modes: dict[str, str] | None = None,
    validation: dict[str, bool] | None = None,
    next_id: int = 1,
) -> SchemasPlan:
    return plan_schemas(
        registry,
        RestoreSchemas(
            backup_id="2026-01-31-120000",
            versions=versions,
            compatibility=compatibility or {},
            modes=modes or {},
            validation=validation or {},
            next_id=next_id,
        ),
    )


def restored(*versions: SchemaVersion) -> Registry:
    registry = Registry()
    for event in planned(registry, *versions).events:
        registry.apply(event)
    return registry


def test_versions_come_back_with_their_ids_whatever_is_missing_between_them() -> None:
    versions = [place("a", 2, 7), place("a", 5, 3), place("b", 1, 9)]

    registry = restored(*versions)

    assert sorted(registry.all_versions()) == sorted(versions)
    assert registry.next_id == 10


def test_a_deleted_version_comes_back_deleted() -> None:
    registry = restored(place("a", 1, 1), place("a", 2, 2, is_deleted=True))

    assert registry.versions("a") == [1]
    assert registry.versions("a", with_deleted=True) == [1, 2]


def test_a_plan_changes_nothing() -> None:
    registry = restored(place("a", 1, 1))
    before = list(registry.whole_state())

    plan = planned(registry, place("b", 1, 2), compatibility={GLOBAL: "FULL"}, next_id=50)

    assert plan.version_count == 1
    assert list(registry.whole_state()) == before


def test_what_is_here_already_and_is_the_same_is_passed_over() -> None:
    registry = restored(place("a", 1, 1), place("a", 2, 2))

    plan = planned(registry, place("a", 1, 1), place("a", 2, 2), place("a", 3, 3))

    assert plan.present == ["schema a version 1 is here already", "schema a version 2 is here already"]
    assert (plan.version_count, plan.conflicts) == (1, [])


@pytest.mark.parametrize(
    ("version", "conflict"),
    [
        (place("a", 1, 1, json_schema("other")), "schema a version 1 is another one here"),
        (place("a", 1, 8), "schema a version 1 is another one here"),
        (place("b", 1, 1), "schema b version 1 has id 1, which stands for another schema here"),
        (
            place("b", 1, 5, json_schema("x", SchemaReference("m", "money", 1))),
            "schema b version 1 cannot be used here: reference 'm': ",
        ),
        (place("two\nlines", 1, 5), "cannot be used here: "),
    ],
)
def test_what_cannot_be_as_it_was_is_not_brought_back(version: SchemaVersion, conflict: str) -> None:
    registry = restored(place("a", 1, 1))

    plan = planned(registry, version)

    assert (plan.events, plan.version_count) == ([], 0)
    assert len(plan.conflicts) == 1
    assert conflict in plan.conflicts[0]


def test_two_versions_of_one_backup_can_be_in_each_others_way() -> None:
    plan = planned(Registry(), place("a", 1, 1), place("b", 1, 1))

    assert plan.version_count == 1
    assert plan.conflicts == ["schema b version 1 has id 1, which stands for another schema here"]


def test_a_schema_is_of_use_when_those_it_refers_to_come_before_it() -> None:
    money = place("money", 1, 1)
    order = place("order", 1, 2, json_schema("order", SchemaReference("m", "money", 1)))

    assert planned(Registry(), money, order).conflicts == []
    assert planned(Registry(), order, money).version_count == 1


def test_one_schema_may_stand_in_several_places() -> None:
    schema = json_schema("same")

    registry = restored(place("a", 1, 4, schema), place("b", 3, 4, schema))

    assert [(one.subject, one.version) for one in registry.places(4)] == [("a", 1), ("b", 3)]


@pytest.mark.parametrize(("next_id", "expected"), [(1, []), (2, []), (3, [IdsUsedUp(3)])])
def test_ids_that_were_given_before_the_backup_are_not_given_again(
    next_id: int, expected: list[IdsUsedUp]
) -> None:
    registry = restored(place("a", 1, 1))

    assert planned(registry, next_id=next_id).events == expected


def test_settings_that_are_not_here_are_brought_back() -> None:
    plan = planned(
        Registry(),
        compatibility={"a": "FULL", GLOBAL: "NONE"},
        modes={"a": "READONLY"},
        validation={"a": False},
    )

    assert plan.events == [
        CompatibilityChanged("a", "FULL"),
        CompatibilityChanged(GLOBAL, "NONE"),
        ModeChanged("a", "READONLY"),
        ValidationChanged("a", False),
    ]
    assert plan.conflicts == []


def test_settings_that_are_the_same_here_need_nothing_and_others_are_told() -> None:
    registry = Registry()
    for event in planned(
        registry,
        compatibility={"a": "FULL", GLOBAL: "FULL"},
        modes={"a": "IMPORT", GLOBAL: "READWRITE"},
        validation={"a": True},
    ).events:
        registry.apply(event)

    plan = planned(
        registry,
        compatibility={"a": "FULL", GLOBAL: "NONE"},
        modes={"a": "READONLY", GLOBAL: "READWRITE"},
        validation={"a": False},
    )

    assert plan.events == []
    assert plan.conflicts == [
        "compatibility of all subjects is FULL here, not NONE",
        "mode of subject a is IMPORT here, not READONLY",
        "validation of subject a is True here, not False",
    ]


@pytest.mark.parametrize(
    ("compatibility", "modes"),
    [({"a": "SOMETIMES"}, {}), ({}, {"a": "WRITEONLY"}), ({"two\nlines": "FULL"}, {})],
)
def test_settings_that_nobody_understands_are_told(
    compatibility: dict[str, str], modes: dict[str, str]
) -> None:
    plan = planned(Registry(), compatibility=compatibility, modes=modes)

    assert plan.events == []
    assert "cannot be understood" in plan.conflicts[0]


class TestOneTextUnderTwoIds:
    """A backup may bring a schema that has another id here: both ids stand in messages, and both are kept."""

    def two_ids(self) -> Registry:
        registry = Registry()
        for event in decide(registry, "a", json_schema("same"))[1]:
            registry.apply(event)
        for event in planned(registry, place("b", 1, 5, json_schema("same"))).events:
            registry.apply(event)
        return registry

    def remove(self, registry: Registry, subject: str) -> None:
        for is_permanent in (False, True):
            for event in registry.delete_subject(subject, is_permanent=is_permanent)[1]:
                registry.apply(event)

    def test_both_ids_mean_it(self) -> None:
        registry = self.two_ids()

        assert registry.schema(1) == registry.schema(5) == json_schema("same")
        assert registry.id_of_guid(json_schema("same").guid) == 1

    @pytest.mark.parametrize(("gone", "left"), [("b", 1), ("a", 5)])
    def test_the_guid_means_the_one_that_is_left_when_the_other_goes_for_good(
        self, gone: str, left: int
    ) -> None:
        registry = self.two_ids()

        self.remove(registry, gone)

        assert registry.id_of_guid(json_schema("same").guid) == left

    def test_the_guid_means_nothing_when_both_are_gone(self) -> None:
        registry = self.two_ids()

        self.remove(registry, "a")
        self.remove(registry, "b")

        with pytest.raises(SchemaNotFound):
            registry.id_of_guid(json_schema("same").guid)

    @pytest.mark.parametrize(("gone", "left"), [("b", 1), ("a", 5)])
    def test_the_state_written_anew_knows_the_same_guid(self, gone: str, left: int) -> None:
        registry, anew = self.two_ids(), Registry()
        self.remove(registry, gone)

        for event in registry.whole_state():
            anew.apply(event)

        assert anew.id_of_guid(json_schema("same").guid) == left

    @pytest.mark.parametrize(("gone", "left"), [("b", 1), ("a", 5)])
    def test_registered_once_more_it_gets_the_id_that_is_left(self, gone: str, left: int) -> None:
        registry = self.two_ids()
        digest = digest_of(registry, json_schema("same"))
        registry.note_digest(5, digest)
        self.remove(registry, gone)

        assert decide(registry, "c", json_schema("same"))[0].schema_id == left
