"""The verbs on schemas: register, look up, compare, delete, and the settings of subjects.

Looking is asked of the registry itself, by `broker.schemas.look_up`; what changes it, or asks what a schema
means, goes through here. What changes it is decided where its journal is written, on what that holds. An
answer that a schema is registered is one that a restart remembers.
"""

from goqueue.broker.broker import Broker
from goqueue.broker.read.read import wait_for_bytes
from goqueue.broker.schemas.jobs import compare, digest_of
from goqueue.broker.schemas.state import SchemaJournal
from goqueue.core.schemas.events import Event
from goqueue.core.schemas.registry import Comparison
from goqueue.core.schemas.restoring import plan_schemas
from goqueue.core.schemas.sources import Compared
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import NotCoordinator, OffsetOutOfRange, RestoreConflict, ShuttingDown
from goqueue.model.schema_commands import (
    CompareSchema,
    DeleteSchemaVersion,
    DeleteSubject,
    FindSchema,
    FollowRegistry,
    RegisterSchema,
    RegistryNews,
    RestoreSchemas,
    SetCompatibility,
    SetRegistryMode,
    SetValidation,
)
from goqueue.model.schemas import SchemaVersion
from goqueue.model.settings import KiB

NEWS_BYTES = 64 * KiB
"""So much of the journal is told at a time; whoever hears it applies it in one step."""


async def register_schema(broker: Broker, command: RegisterSchema) -> SchemaVersion:
    """The place that a schema has in a subject from now on, or had already."""
    journal = _admit(broker)
    registry = journal.registry
    digest = await digest_of(broker, registry, command.schema)
    compared: dict[Comparison, Compared] = {}
    # Others may register meanwhile: what came then is compared too. No await stands between that and
    # deciding.
    while missing := _missing(registry.needed_comparisons(command.subject, command.schema, digest), compared):
        compared.update(await compare(broker, registry, command.schema, missing))
    if _admit(broker) is not journal:
        raise NotCoordinator("the registry was written by another node meanwhile")
    registry.sources(command.schema)  # what it is built on may have gone
    place, events = registry.register(
        command.subject,
        command.schema,
        digest,
        compared,
        schema_id=command.schema_id,
        version=command.version,
    )
    await _commit(journal, events)
    return place


async def find_schema(broker: Broker, command: FindSchema) -> SchemaVersion:
    """The version of a subject that says the same."""
    digest = await digest_of(broker, broker.schemas.registry, command.schema)
    return await broker.schemas.look_up(
        lambda registry: registry.find(
            command.subject, command.schema, digest, with_deleted=command.with_deleted
        )
    )


async def schema_problems(broker: Broker, command: CompareSchema) -> list[str]:
    """Why a schema cannot follow what a subject has, or one version: each broken rule with its place."""
    digest = await digest_of(broker, broker.schemas.registry, command.schema)
    comparisons = await broker.schemas.look_up(
        lambda registry: registry.comparisons(
            command.subject, command.schema, digest, against=command.against
        )
    )
    found = await compare(broker, broker.schemas.registry, command.schema, comparisons)
    return [text for each in comparisons for text in each.problems(found[each])]


def _missing(needed: list[Comparison], compared: dict[Comparison, Compared]) -> list[Comparison]:
    return [each for each in needed if each not in compared]


async def delete_schema_version(broker: Broker, command: DeleteSchemaVersion) -> int:
    """Take a version out of sight, or for good if it is out of sight already; returns its number."""
    journal = _admit(broker)
    number, events = journal.registry.delete_version(
        command.subject, command.version, is_permanent=command.is_permanent
    )
    await _commit(journal, events)
    return number


async def delete_subject(broker: Broker, command: DeleteSubject) -> list[int]:
    """The same with all versions of a subject; returns their numbers."""
    journal = _admit(broker)
    versions, events = journal.registry.delete_subject(command.subject, is_permanent=command.is_permanent)
    await _commit(journal, events)
    return versions


async def set_compatibility(broker: Broker, command: SetCompatibility) -> None:
    """How versions of a subject must fit; None goes back to what counts for all (the empty subject)."""
    journal = _admit(broker)
    await _commit(journal, [journal.registry.settings.set_compatibility(command.subject, command.level)])


async def set_validation(broker: Broker, command: SetValidation) -> None:
    """Whether messages are checked against a subject's schemas; None goes back to what counts for all."""
    journal = _admit(broker)
    await _commit(journal, [journal.registry.settings.set_validation(command.subject, command.is_enabled)])


async def set_registry_mode(broker: Broker, command: SetRegistryMode) -> None:
    """Who may change a subject; None goes back to what counts for all (the empty subject)."""
    journal = _admit(broker)
    mode = journal.registry.set_mode(command.subject, command.mode, is_forced=command.is_forced)
    await _commit(journal, [mode])


async def restore_schemas(broker: Broker, command: RestoreSchemas) -> int:
    """Bring back what a backup has kept, modes do not stand in the way; returns how many versions came.

    Planned here, where the registry is written: who asked may have read it a moment ago.
    """
    journal = _admit(broker)
    plan = plan_schemas(journal.registry, command)
    if plan.conflicts and not command.skip_existing:
        raise RestoreConflict(command.backup_id, plan.conflicts)
    await _commit(journal, plan.events)
    return plan.version_count


async def follow_registry(broker: Broker, command: FollowRegistry) -> RegistryNews:
    """What was committed behind an offset of the registry's journal; waits where nothing was yet."""
    deadline_ns = broker.clock.monotonic_ns() + command.wait_ms * 1_000_000
    while True:
        journal = broker.schemas.journal
        start_offset, end_offset = journal.partition.log.start_offset, journal.commit_mark
        left_ns = deadline_ns - broker.clock.monotonic_ns()
        if command.offset == end_offset and left_ns > 0 and broker.is_open:
            await wait_for_bytes(broker, [journal.partition], 1, left_ns)
            continue
        # What it does not know was shortened; or it knows what nobody else does, as when a person has let
        # somebody lead who lacked something.
        begins_anew = not start_offset <= command.offset <= end_offset
        offset = start_offset if begins_anew else command.offset
        try:
            events, next_offset = await broker.threads.run(journal.news, offset, end_offset, NEWS_BYTES)
        except OffsetOutOfRange:
            continue  # it became shorter just now
        except OSError as error:
            raise storage_error(error, "read of the registry") from error
        return RegistryNews(events, begins_anew, next_offset, end_offset)


async def _commit(journal: SchemaJournal, events: list[Event]) -> None:
    # Also when there are none: what is answered for may have been written a moment ago.
    await journal.submit(*events)


def _admit(broker: Broker) -> SchemaJournal:
    """Where the registry is written. Raises NotCoordinator where another node does."""
    if not broker.is_open:
        raise ShuttingDown
    return broker.schemas.journal
