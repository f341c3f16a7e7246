"""Metadata and tenants behind one journal: what all nodes must agree on, in the order it was agreed."""

from collections.abc import Iterable

from goqueue.broker.storage.event_codec import EventCodec
from goqueue.core.access import events as tenant_events
from goqueue.core.access.tenants import Tenants
from goqueue.core.cluster import metadata as metadata_events
from goqueue.core.cluster.metadata import Metadata, StateReset
from goqueue.model.ids import TopicName

METADATA_TOPIC = TopicName("__metadata")
Event = metadata_events.Event | tenant_events.Event
EVENTS: EventCodec[Event] = EventCodec({**metadata_events.EVENT_TYPES, **tenant_events.EVENT_TYPES})


class MetadataAndTenants:
    """The machine of the metadata journal."""

    def __init__(self, metadata: Metadata, tenants: Tenants) -> None:
        self._metadata = metadata
        self._tenants = tenants

    def apply(self, event: Event) -> None:
        if isinstance(event, tenant_events.Event):
            self._tenants.apply(event)
            return
        self._metadata.apply(event)
        if isinstance(event, StateReset):
            self._tenants.clear()

    def whole_state(self) -> Iterable[Event]:
        yield from self._metadata.whole_state()
        yield from self._tenants.whole_state()
