"""What the broker holds of schemas: the registry it reads, the journal where it is written, and what is ready
to check messages.

On one node the journal's machine is the registry that is read. Where there are several, one of them leads the
journal and decides on a registry of its own, and all of them read another: that one has only what is
committed, wherever it was written (`broker/schemas/shared.py`).
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from goqueue.broker.storage.event_codec import EventCodec
from goqueue.broker.storage.journal import Journal
from goqueue.broker.storage.journal_set import JournalSet
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.state_journal import StateJournal
from goqueue.core.schemas import events as schema_events
from goqueue.core.schemas.checkers import Checkers
from goqueue.core.schemas.registry import Registry
from goqueue.model.errors import NotFound
from goqueue.model.ids import TopicName
from goqueue.model.settings import SchemaConfig

SCHEMAS_TOPIC = TopicName("__schemas")
JOURNAL = 0
"""There is one: what may follow what is decided in one place."""
EVENTS: EventCodec[schema_events.Event] = EventCodec(schema_events.EVENT_TYPES)
T = TypeVar("T")


class SchemaJournal(StateJournal[schema_events.Event]):
    def __init__(self, partition: Partition, registry: Registry) -> None:
        super().__init__(partition, registry, EVENTS)
        self.registry = registry
        """What is decided on: it has what is written and not committed, too."""

    def news(self, offset: int, end_offset: int, max_bytes: int) -> tuple[list[bytes], int]:
        """Events from an offset on as they are written, and where the next begin. Waits for the disk."""
        if offset >= end_offset:
            return [], offset
        records, next_offset = self._records(offset, max_bytes)
        events = [stored.value or b"" for stored in records if offset <= stored.offset < end_offset]
        return events, min(next_offset, end_offset)


class Sharing(Protocol):
    """How a registry that several nodes have is kept up."""

    async def catch_up(self) -> bool:
        """Have all that was committed when this was called; whether there was anything new."""


class SchemaState:
    def __init__(
        self,
        config: SchemaConfig,
        *,
        new_partition: Callable[[TopicName, int], Partition],
        open_journal: Callable[[Journal[schema_events.Event]], Awaitable[None]],
    ) -> None:
        self.registry = Registry()
        """The one to read."""
        self.journals = JournalSet(
            SCHEMAS_TOPIC, self._new_journal, new_partition=new_partition, open_journal=open_journal
        )
        self.sharing: Sharing | None = None
        """Of one of several nodes."""
        self.checkers = Checkers(config)
        """Schemas that are ready to check messages."""
        self.quarantines_opening: set[TopicName] = set()
        """Topics for messages that do not fit which are being created or enlarged."""

    @property
    def journal(self) -> SchemaJournal:
        """Where the registry is written. Raises NotCoordinator where another node does."""
        journal = self.journals.numbered(JOURNAL)
        assert journal is not None, "a node that is alone has opened it"
        return journal

    async def look_up(self, look: Callable[[Registry], T]) -> T:
        """What the registry says. What it does not know may have come to it at another node just now."""
        if self.sharing is None:
            return look(self.registry)
        try:
            return look(self.registry)
        except NotFound:
            await self.sharing.catch_up()
            return look(self.registry)

    def _new_journal(self, partition: Partition) -> SchemaJournal:
        return SchemaJournal(partition, Registry() if self.journals.is_shared else self.registry)
