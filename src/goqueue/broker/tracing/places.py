"""Which trace a message is part of, and where the message of a trace id lies.

A message is part of the trace that its `traceparent` header names; without one, of the trace whose id is made
of its place.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from goqueue.core.telemetry.telemetry import DELAYED
from goqueue.core.telemetry.trace_ids import PartitionIds, parse_traceparent, topic_tag
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Headers
from goqueue.model.telemetry import TRACEPARENT, FindTraceparents, TraceContext

if TYPE_CHECKING:  # the broker's keeper of delays passes traces on through this module
    from goqueue.broker.broker import Broker

REFUSED_PARTITION = 2**24 - 1
"""Stands in the id of a refused message, which has the number of its event for an offset."""
_MANY = 16
_tag_of = lru_cache(maxsize=16_384)(topic_tag)


class TracePlace(NamedTuple):
    """Where the message of a made id lies. `__delayed`: the offset is its number."""

    source: TopicPartition
    offset: int


def ids_of(broker: "Broker", source: TopicPartition) -> PartitionIds:
    """The made ids of a partition."""
    topic = source.topic if source == DELAYED else str(broker.metadata.topic(source.topic).topic_id)
    return broker.telemetry.ids.of_partition(_tag_of(topic), source.partition)


def context_of(ids: PartitionIds, offset: int, headers: Headers) -> TraceContext:
    """The trace that a message is part of."""
    return context_in(headers) or TraceContext(ids.trace_id(offset), None)


def context_in(headers: Headers) -> TraceContext | None:
    """The trace that headers name. The last one counts that names any: the broker adds its own at the end."""
    for name, value in reversed(headers):
        if name.lower() == TRACEPARENT and (context := parse_traceparent(value)) is not None:
            return context
    return None


def traceparent_of(broker: "Broker", source: TopicPartition, offset: int, headers: Headers) -> bytes | None:
    """The header by which a sampled message passes its made trace on; None when it needs none."""
    if not broker.telemetry.of(source).samples(offset) or (headers and context_in(headers) is not None):
        return None
    return ids_of(broker, source).traceparent(offset)


def traceparents_of(broker: "Broker", command: FindTraceparents) -> Sequence[str | None]:
    """The headers by which messages would pass their made traces on, in their order; none of the unsampled.

    Empty when none of them is sampled.
    """
    listener = broker.telemetry.of(command.source)
    if not listener.is_traced:
        return ()
    first, end = min(command.offsets), max(command.offsets) + 1
    if end - first < 2 * len(command.offsets) and len(command.offsets) >= _MANY:
        sampled = broker.telemetry.traces.sampled(listener.place, first, end)
        made = ids_of(broker, command.source).traceparents(sampled) if sampled else ()
        if not made or command.offsets == list(sampled):
            return made
        return list(map(dict(zip(sampled, made, strict=True)).get, command.offsets))
    if not any(map(listener.samples, command.offsets)):
        return ()
    ids = ids_of(broker, command.source)
    return [
        ids.traceparent(offset).decode() if listener.samples(offset) else None for offset in command.offsets
    ]


def refused_context(broker: "Broker", topic: TopicName, number: int) -> TraceContext:
    """The trace of messages that were refused, by the running number of the event.

    Their numbers begin anew with each start of the broker, so its time is part of the id.
    """
    ids = ids_of(broker, TopicPartition(topic, REFUSED_PARTITION))
    return TraceContext(ids.trace_id(broker.telemetry.began_us + number), None)


def place_of(broker: "Broker", trace_id: str) -> TracePlace | None:
    """The place that an id was made of; None for one made elsewhere, or of a topic that is gone."""
    place = broker.telemetry.ids.place_of(trace_id)
    if place is None:
        return None
    if place.tag == _tag_of(DELAYED.topic):
        return TracePlace(DELAYED, place.offset)
    for name, topic in broker.metadata.topics.items():
        if _tag_of(str(topic.topic_id)) == place.tag:
            return TracePlace(TopicPartition(name, place.partition), place.offset)
    return None
