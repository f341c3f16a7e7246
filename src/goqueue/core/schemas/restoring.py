"""Bringing schemas back from a backup: each with its id and under its version, or not at all.

Ids stand in messages, so a schema that cannot have its old id is not restored under another one. What is
here already and is the same is passed over; what differs is told, and is for the caller to decide.
"""

from typing import NamedTuple

from goqueue.core.schemas.events import (
    CompatibilityChanged,
    Event,
    IdsUsedUp,
    ModeChanged,
    SchemaRegistered,
    ValidationChanged,
    VersionDeleted,
)
from goqueue.core.schemas.registry import Registry
from goqueue.core.schemas.settings import GLOBAL
from goqueue.model.errors import (
    InvalidSchema,
    InvalidSubject,
    RegistrySettingNotFound,
    SchemaNotFound,
    SchemaVersionNotFound,
    SubjectNotFound,
)
from goqueue.model.names import checked_subject
from goqueue.model.schema_commands import RestoreSchemas
from goqueue.model.schemas import Compatibility, RegistryMode, SchemaVersion


class SchemasPlan(NamedTuple):
    """The events that bring back what can be brought back, and why the rest cannot."""

    events: list[Event]
    version_count: int
    """How many versions the events bring."""
    present: list[str]
    conflicts: list[str]


def plan_schemas(registry: Registry, kept: RestoreSchemas) -> SchemasPlan:
    """What to do with these versions and settings. Schemas come before those built on them."""
    # Tried on a copy: a schema is of use only when those it refers to are there.
    trial = registry.copy()
    plan = SchemasPlan([], 0, [], [])
    count = 0
    for place in kept.versions:
        if _has(trial, place):
            plan.present.append(f"schema {place.subject} version {place.version} is here already")
        elif conflict := _conflict(trial, place):
            plan.conflicts.append(conflict)
        else:
            count += 1
            plan.events.extend(_registered(place))
    if kept.next_id > trial.next_id:
        plan.events.append(IdsUsedUp(kept.next_id))
    for subject, level in kept.compatibility.items():
        _plan_setting(plan, trial, CompatibilityChanged(subject, level))
    for subject, mode in kept.modes.items():
        _plan_setting(plan, trial, ModeChanged(subject, mode))
    for subject, is_enabled in kept.validation.items():
        _plan_setting(plan, trial, ValidationChanged(subject, is_enabled))
    return plan._replace(version_count=count)


def _has(registry: Registry, place: SchemaVersion) -> bool:
    try:
        found = registry.version(place.subject, place.version, with_deleted=True)
    except (SubjectNotFound, SchemaVersionNotFound):
        return False
    return (found.schema_id, found.schema) == (place.schema_id, place.schema)


def _conflict(registry: Registry, place: SchemaVersion) -> str:
    """Why a version cannot be brought back; empty, and the registry has it, when it can."""
    what = f"schema {place.subject} version {place.version}"
    try:
        registry.version(place.subject, place.version, with_deleted=True)
        return f"{what} is another one here"
    except (SubjectNotFound, SchemaVersionNotFound):
        pass
    try:
        if registry.schema(place.schema_id) != place.schema:
            return f"{what} has id {place.schema_id}, which stands for another schema here"
    except SchemaNotFound:
        pass
    try:
        checked_subject(place.subject)
        registry.sources(place.schema)
    except (InvalidSchema, InvalidSubject) as error:
        return f"{what} cannot be used here: {error}"
    for event in _registered(place):
        registry.apply(event)
    return ""


def _registered(place: SchemaVersion) -> list[Event]:
    schema = place.schema
    events: list[Event] = [
        SchemaRegistered(
            place.subject, place.version, place.schema_id, schema.kind.value, schema.text, schema.references
        )
    ]
    if place.is_deleted:
        events.append(VersionDeleted(place.subject, place.version))
    return events


def _plan_setting(
    plan: SchemasPlan, registry: Registry, wanted: CompatibilityChanged | ModeChanged | ValidationChanged
) -> None:
    whose = f"subject {wanted.subject}" if wanted.subject != GLOBAL else "all subjects"
    try:
        if wanted.subject != GLOBAL:
            checked_subject(wanted.subject)
        match wanted:
            case CompatibilityChanged(subject, level):
                what, value = f"compatibility of {whose}", Compatibility(level).value
                present = registry.settings.own_compatibility(subject).value
            case ModeChanged(subject, mode):
                what, value = f"mode of {whose}", RegistryMode(mode).value
                present = registry.settings.own_mode(subject).value
            case ValidationChanged(subject, is_enabled):
                what, value = f"validation of {whose}", str(is_enabled)
                present = str(registry.settings.own_validation(subject))
    except (ValueError, InvalidSubject) as error:
        plan.conflicts.append(f"a setting of {whose} cannot be understood: {error}")
    except RegistrySettingNotFound:
        plan.events.append(wanted)
    else:
        if present != value:
            plan.conflicts.append(f"{what} is {present} here, not {value}")
