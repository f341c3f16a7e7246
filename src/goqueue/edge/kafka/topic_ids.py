"""How the hot requests name a topic: by its name, and in newer versions by its id."""

from typing import NamedTuple
from uuid import UUID

from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.wire import Reader
from goqueue.model.ids import TopicName

_ID_BYTES = 16


class TopicReference(NamedTuple):
    given: bytes
    """As it stands in the request, length included: the reply names the topic the same way."""
    name: TopicName | None
    """None: no topic has the id that was given."""


def read_topic(context: Context, reader: Reader, *, by_id: bool, flexible: bool) -> TopicReference:
    """The topic that stands next in the request."""
    if by_id:
        topic_id = bytes(reader.take(_ID_BYTES))
        # Straight from the metadata: a view of the whole topic is too much for every single fetch.
        return TopicReference(topic_id, context.broker.metadata.names.get(UUID(bytes=topic_id)))
    start = reader.position
    name = reader.string(flexible=flexible)
    return TopicReference(bytes(reader.buffer[start : reader.position]), TopicName(name))
