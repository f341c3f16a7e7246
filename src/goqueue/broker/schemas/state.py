"""What the broker holds of schemas: the registry with its journal, and what is ready to check messages."""

from goqueue.broker.storage.event_codec import EventCodec
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.state_journal import StateJournal
from goqueue.core.schemas import events as schema_events
from goqueue.core.schemas.checkers import Checkers
from goqueue.core.schemas.registry import Registry
from goqueue.model.ids import TopicName
from goqueue.model.settings import SchemaConfig

EVENTS: EventCodec[schema_events.Event] = EventCodec(schema_events.EVENT_TYPES)


class SchemaState:
    def __init__(self, partition: Partition, config: SchemaConfig) -> None:
        self.registry = Registry()
        self.journal = StateJournal(partition, self.registry, EVENTS)
        self.checkers = Checkers(config)
        """Schemas that are ready to check messages."""
        self.quarantines_opening: set[TopicName] = set()
        """Topics for messages that do not fit which are being created or enlarged."""
