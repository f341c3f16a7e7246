"""The verbs on schemas: register, look up, compare, delete, and the settings of subjects.

Looking is asked of the registry itself, `broker.registry`; what changes it goes through here. An answer
that a schema is registered is one that a restart remembers.
"""

from goqueue.broker.broker import Broker
from goqueue.core.schemas.events import Event
from goqueue.core.schemas.registry import Latest
from goqueue.model.errors import ShuttingDown
from goqueue.model.schemas import Compatibility, RegistryMode, SchemaText, SchemaVersion


async def register_schema(
    broker: Broker,
    subject: str,
    schema: SchemaText,
    *,
    schema_id: int | None = None,
    version: int | None = None,
) -> SchemaVersion:
    """The place that a schema has in a subject from now on, or had already."""
    _admit(broker)
    place, events = broker.registry.register(subject, schema, schema_id=schema_id, version=version)
    await _commit(broker, events)
    return place


async def delete_schema_version(
    broker: Broker, subject: str, version: int | Latest, *, is_permanent: bool = False
) -> int:
    """Take a version out of sight, or for good if it is out of sight already; returns its number."""
    _admit(broker)
    number, events = broker.registry.delete_version(subject, version, is_permanent=is_permanent)
    await _commit(broker, events)
    return number


async def delete_subject(broker: Broker, subject: str, *, is_permanent: bool = False) -> list[int]:
    """The same with all versions of a subject; returns their numbers."""
    _admit(broker)
    versions, events = broker.registry.delete_subject(subject, is_permanent=is_permanent)
    await _commit(broker, events)
    return versions


async def set_compatibility(broker: Broker, subject: str, level: Compatibility | None) -> None:
    """How versions of a subject must fit; None goes back to what counts for all (the empty subject)."""
    _admit(broker)
    await _commit(broker, [broker.registry.settings.set_compatibility(subject, level)])


async def set_registry_mode(
    broker: Broker, subject: str, mode: RegistryMode | None, *, is_forced: bool = False
) -> None:
    """Who may change a subject; None goes back to what counts for all (the empty subject)."""
    _admit(broker)
    await _commit(broker, [broker.registry.set_mode(subject, mode, is_forced=is_forced)])


async def restore_schemas(broker: Broker, events: list[Event]) -> None:
    """Bring back what a backup has kept, as the registry has planned it; modes do not stand in the way."""
    _admit(broker)
    await _commit(broker, events)


async def _commit(broker: Broker, events: list[Event]) -> None:
    if events:
        broker.registry_journal.write(*events)
    # Also when there is nothing to write: what is answered for may have been written a moment ago.
    await broker.registry_journal.settled()


def _admit(broker: Broker) -> None:
    if not broker.is_open:
        raise ShuttingDown
