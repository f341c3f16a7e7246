"""Settings of the registry: of one subject, and of all that have none of their own."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.schemas.events import CompatibilityChanged, ModeChanged, ValidationChanged
from goqueue.core.schemas.registry import Registry
from goqueue.core.schemas.settings import GLOBAL, RegistrySettings
from goqueue.model.errors import InvalidSubject, RegistryModeNotFound, RegistrySettingNotFound
from goqueue.model.schemas import Compatibility, RegistryMode

Change = CompatibilityChanged | ModeChanged | ValidationChanged


def settings_of(*changes: Change) -> RegistrySettings:
    settings = RegistrySettings()
    for change in changes:
        settings.apply(change)
    return settings


def test_a_registry_that_nobody_has_set_up_reads_older_data_takes_schemas_and_checks_messages() -> None:
    settings = RegistrySettings()

    assert settings.compatibility("a") is settings.compatibility() is Compatibility.BACKWARD
    assert settings.mode("a") is settings.mode() is RegistryMode.READWRITE
    assert settings.is_validating("a")
    assert not settings.has_switches


def test_what_is_set_for_a_subject_counts_for_it_alone() -> None:
    settings = settings_of(
        CompatibilityChanged(GLOBAL, "FULL"),
        CompatibilityChanged("a", "NONE"),
        ModeChanged(GLOBAL, "READONLY"),
        ModeChanged("a", "IMPORT"),
    )

    assert [settings.compatibility(name).value for name in ("a", "b", GLOBAL)] == ["NONE", "FULL", "FULL"]
    assert [settings.mode(name).value for name in ("a", "b", GLOBAL)] == ["IMPORT", "READONLY", "READONLY"]
    assert (settings.has_compatibility("a"), settings.has_compatibility("b")) == (True, False)


@pytest.mark.parametrize(
    ("said", "names", "is_validating"),
    [
        ({}, ["a", "b"], True),
        ({GLOBAL: False}, ["a", "b"], False),
        ({GLOBAL: False, "b": True}, ["a", "b"], True),
        ({"a": False, "b": True}, ["a", "b"], False),
        ({"a": False, "b": True}, ["b", "a"], True),
        ({GLOBAL: True, "a": False}, ["b"], True),
        ({GLOBAL: False}, [], False),
    ],
)
def test_the_first_subject_that_says_so_decides_whether_messages_are_checked(
    said: dict[str, bool], names: list[str], is_validating: bool
) -> None:
    settings = settings_of(*(ValidationChanged(name, value) for name, value in said.items()))

    assert settings.is_validating(*names) is is_validating
    assert settings.has_switches is bool(said)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda settings: settings.set_compatibility("a", None), RegistrySettingNotFound),
        (lambda settings: settings.set_mode("a", None), RegistryModeNotFound),
        (lambda settings: settings.set_validation("a", None), RegistrySettingNotFound),
        (lambda settings: settings.own_compatibility("a"), RegistrySettingNotFound),
        (lambda settings: settings.own_mode("a"), RegistryModeNotFound),
        (lambda settings: settings.own_validation("a"), RegistrySettingNotFound),
        (lambda settings: settings.set_compatibility("x\n", Compatibility.FULL), InvalidSubject),
        (lambda settings: settings.set_mode("x\n", RegistryMode.IMPORT), InvalidSubject),
        (lambda settings: settings.set_validation("x\n", True), InvalidSubject),
    ],
)
def test_what_was_never_set_cannot_be_taken_back_and_no_subject_is_named_badly(
    change: Callable[[RegistrySettings], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        change(RegistrySettings())


def test_a_subject_that_was_named_badly_before_there_was_a_rule_can_still_be_set() -> None:
    settings = settings_of(
        CompatibilityChanged("x\n", "FULL"), ModeChanged("x\n", "IMPORT"), ValidationChanged("x\n", True)
    )

    for change in (
        settings.set_compatibility("x\n", Compatibility.NONE),
        settings.set_mode("x\n", RegistryMode.READONLY),
        settings.set_validation("x\n", False),
    ):
        settings.apply(change)

    assert settings.own_compatibility("x\n") is Compatibility.NONE
    assert settings.own_mode("x\n") is RegistryMode.READONLY
    assert settings.own_validation("x\n") is False


def test_what_is_taken_back_leaves_what_counts_for_all() -> None:
    settings = settings_of(
        CompatibilityChanged(GLOBAL, "FULL"), CompatibilityChanged("a", "NONE"), ModeChanged("a", "IMPORT")
    )

    settings.apply(settings.set_compatibility("a", None))
    settings.apply(settings.set_mode("a", None))
    assert (settings.compatibility("a"), settings.mode("a")) == (Compatibility.FULL, RegistryMode.READWRITE)

    settings.apply(settings.set_compatibility(GLOBAL, None))
    settings.apply(settings.set_mode(GLOBAL, None))
    settings.apply(settings.set_validation(GLOBAL, None))
    assert settings.compatibility("a") is Compatibility.BACKWARD
    assert list(settings.whole_state()) == []


def test_deciding_changes_nothing() -> None:
    settings = RegistrySettings()

    settings.set_compatibility("a", Compatibility.FULL)
    settings.set_mode("a", RegistryMode.READONLY)
    settings.set_validation("a", False)

    assert list(settings.whole_state()) == []


NAMES = st.sampled_from((GLOBAL, "a", "b"))
CHANGE = st.one_of(
    st.builds(
        CompatibilityChanged, NAMES, st.sampled_from([None, *(level.value for level in Compatibility)])
    ),
    st.builds(ModeChanged, NAMES, st.sampled_from([None, *(mode.value for mode in RegistryMode)])),
    st.builds(ValidationChanged, NAMES, st.sampled_from([None, True, False])),
)


@given(st.lists(CHANGE, max_size=20))
def test_written_anew_and_copied_the_settings_are_the_same(changes: list[Change]) -> None:
    settings = settings_of(*changes)
    registry = Registry()
    for change in changes:
        registry.apply(change)

    assert vars(settings_of(*settings.whole_state())) == vars(settings)
    assert vars(registry.copy().settings) == vars(settings)
