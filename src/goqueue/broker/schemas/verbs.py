"""The verbs on schemas: register, look up, compare, delete, and the settings of subjects.

Looking is asked of the registry itself, `broker.schemas.registry`; what changes it, or asks what a schema
means, goes through here. An answer that a schema is registered is one that a restart remembers.
"""

from goqueue.broker.broker import Broker
from goqueue.broker.schemas.jobs import compare, digest_of
from goqueue.core.schemas.events import Event
from goqueue.core.schemas.registry import Comparison
from goqueue.core.schemas.sources import Compared
from goqueue.model.errors import ShuttingDown
from goqueue.model.schema_commands import (
    CompareSchema,
    DeleteSchemaVersion,
    DeleteSubject,
    FindSchema,
    RegisterSchema,
    SetCompatibility,
    SetRegistryMode,
    SetValidation,
)
from goqueue.model.schemas import SchemaVersion


async def register_schema(broker: Broker, command: RegisterSchema) -> SchemaVersion:
    """The place that a schema has in a subject from now on, or had already."""
    _admit(broker)
    registry = broker.schemas.registry
    digest = await digest_of(broker, command.schema)
    compared: dict[Comparison, Compared] = {}
    # Others may register meanwhile: what came then is compared too. No await stands between that and
    # deciding.
    while missing := _missing(registry.needed_comparisons(command.subject, command.schema, digest), compared):
        compared.update(await compare(broker, command.schema, missing))
    _admit(broker)
    registry.sources(command.schema)  # what it is built on may have gone
    place, events = registry.register(
        command.subject,
        command.schema,
        digest,
        compared,
        schema_id=command.schema_id,
        version=command.version,
    )
    await _commit(broker, events)
    return place


async def find_schema(broker: Broker, command: FindSchema) -> SchemaVersion:
    """The version of a subject that says the same."""
    digest = await digest_of(broker, command.schema)
    return broker.schemas.registry.find(
        command.subject, command.schema, digest, with_deleted=command.with_deleted
    )


async def schema_problems(broker: Broker, command: CompareSchema) -> list[str]:
    """Why a schema cannot follow what a subject has, or one version: each broken rule with its place."""
    digest = await digest_of(broker, command.schema)
    comparisons = broker.schemas.registry.comparisons(
        command.subject, command.schema, digest, against=command.against
    )
    found = await compare(broker, command.schema, comparisons)
    return [text for each in comparisons for text in each.problems(found[each])]


def _missing(needed: list[Comparison], compared: dict[Comparison, Compared]) -> list[Comparison]:
    return [each for each in needed if each not in compared]


async def delete_schema_version(broker: Broker, command: DeleteSchemaVersion) -> int:
    """Take a version out of sight, or for good if it is out of sight already; returns its number."""
    _admit(broker)
    number, events = broker.schemas.registry.delete_version(
        command.subject, command.version, is_permanent=command.is_permanent
    )
    await _commit(broker, events)
    return number


async def delete_subject(broker: Broker, command: DeleteSubject) -> list[int]:
    """The same with all versions of a subject; returns their numbers."""
    _admit(broker)
    versions, events = broker.schemas.registry.delete_subject(
        command.subject, is_permanent=command.is_permanent
    )
    await _commit(broker, events)
    return versions


async def set_compatibility(broker: Broker, command: SetCompatibility) -> None:
    """How versions of a subject must fit; None goes back to what counts for all (the empty subject)."""
    _admit(broker)
    await _commit(
        broker, [broker.schemas.registry.settings.set_compatibility(command.subject, command.level)]
    )


async def set_validation(broker: Broker, command: SetValidation) -> None:
    """Whether messages are checked against a subject's schemas; None goes back to what counts for all."""
    _admit(broker)
    await _commit(
        broker, [broker.schemas.registry.settings.set_validation(command.subject, command.is_enabled)]
    )


async def set_registry_mode(broker: Broker, command: SetRegistryMode) -> None:
    """Who may change a subject; None goes back to what counts for all (the empty subject)."""
    _admit(broker)
    await _commit(
        broker, [broker.schemas.registry.set_mode(command.subject, command.mode, is_forced=command.is_forced)]
    )


async def restore_schemas(broker: Broker, events: list[Event]) -> None:
    """Bring back what a backup has kept, as the registry has planned it; modes do not stand in the way."""
    _admit(broker)
    await _commit(broker, events)


async def _commit(broker: Broker, events: list[Event]) -> None:
    # Also when there are none: what is answered for may have been written a moment ago.
    await broker.schemas.journal.submit(*events)


def _admit(broker: Broker) -> None:
    if not broker.is_open:
        raise ShuttingDown
    broker.admit_alone("schemas")
