"""The story of a message while it waits for its time, under the number that it has until then."""

from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.delays.records import Waiting, decode_record
from goqueue.broker.delays.store import DelayStore
from goqueue.broker.slices import Slices
from goqueue.broker.tracing.log import UNTIMED, US_PER_MS
from goqueue.broker.tracing.places import TracePlace, context_of, ids_of
from goqueue.broker.tracing.search import find_delivered, find_rewritten
from goqueue.core.telemetry.ring_search import covering
from goqueue.core.telemetry.spans import SpanMaker, spans_of
from goqueue.core.telemetry.telemetry import DELAYED
from goqueue.core.telemetry.traces import Event, Kind
from goqueue.log.partition_log import PartitionLog
from goqueue.log.reading import from_disk
from goqueue.model.errors import OffsetOutOfRange
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.model.telemetry import Fact, Span, Stage, TraceContext, Witness
from goqueue.records.batch import open_batch


class DelayedTale(NamedTuple):
    """What is known of a delayed message."""

    context: TraceContext
    target: TopicPartition
    spans: list[Span]
    delivered: TracePlace | None
    """Where it lies since it fell due, if that was heard."""


async def delayed_tale(
    broker: Broker, number: int, events: list[Event], *, is_followed: bool = True
) -> DelayedTale | None:
    """By its number; None when the log of delayed messages does not have it any more.

    `is_followed`: the place of one that was delivered is searched for, if it was not heard.
    """
    if not broker.delays.is_here:
        return None  # another node keeps it
    store = broker.delays.store
    kept = await broker.threads.run(_look, store, number)
    topic = None if kept is None else broker.metadata.names.get(kept.waiting.topic_id)
    if kept is None or topic is None:
        return None
    waiting = kept.waiting
    target = TopicPartition(topic, waiting.partition)
    context = context_of(ids_of(broker, DELAYED), number, waiting.message.headers)
    heard = await Slices(broker.clock).walk(covering(events, broker.telemetry.delayed.place, number))
    told = {span.stage: span for event in heard for span in spans_of(event, DELAYED, number, context)}
    maker = SpanMaker(context, DELAYED, number, target)
    due_ms = waiting.due_ms if waiting.holder is None else waiting.holder.due_ms
    first = told.get(Stage.SCHEDULED)
    time_us = kept.written_ms * US_PER_MS if first is None else first.time_us
    witness = Witness.LOG if first is None else Witness.RING
    facts: dict[str, Fact] = {
        "due_ms": due_ms,
        "priority": waiting.message.lane.label,
        "is_held": waiting.holder is not None,
    }
    spans = [maker.make(Stage.SCHEDULED, time_us, witness, facts=facts)]
    delivered = _delivered(broker, number, events)
    if (cancelled := told.get(Stage.CANCELLED)) is not None:
        spans.append(maker.make(Stage.CANCELLED, cancelled.time_us, Witness.RING))
    elif delivered is None and kept.is_cancelled:
        spans.append(maker.make(Stage.CANCELLED, time_us, Witness.JOURNAL, facts=UNTIMED))
    elif delivered is None and not _is_pending(store, kept):
        if is_followed and target.topic in broker.topics:
            delivered = await find_delivered(broker, target, due_ms, context)
        if delivered is None:
            time_us = max(due_ms * US_PER_MS, time_us)
            spans.append(maker.make(Stage.FIRED, time_us, Witness.JOURNAL, facts=UNTIMED))
    return DelayedTale(context, target, spans, delivered)


class _Kept(NamedTuple):
    """What the log of delayed messages has of one."""

    written_ms: int
    """When it came; not when it was moved."""
    waiting: Waiting
    """As it was written last, and where."""
    offset: int
    is_cancelled: bool


def _look(store: DelayStore, number: int) -> _Kept | None:
    """Waits for the disk."""
    log = store.journal.partition.log
    offset = store.moved.get(number, number)
    first, last = _record_at(log, number), _record_at(log, offset)
    if last is None:
        return None
    is_cancelled = store.is_dead(offset)
    if is_cancelled and (later := find_rewritten(log, number, offset + 1)) is not None:
        last, offset, is_cancelled = later, later.offset, False
    waiting = decode_record(last)
    assert isinstance(waiting, Waiting), f"__delayed holds no message at offset {offset}"
    return _Kept((first or last).timestamp_ms, waiting, offset, is_cancelled)


def _record_at(log: PartitionLog, offset: int) -> StoredMessage | None:
    """The record of a message, if one stands there."""
    try:
        chunk = log.read(offset, 1, end_offset=log.end_offset, read_bytes=from_disk)
    except OffsetOutOfRange:
        return None
    for stored in open_batch(chunk.batches[0], chunk.lanes[0]) if chunk.batches else ():
        if stored.offset == offset and isinstance(decode_record(stored), Waiting):
            return stored
    return None


def _is_pending(store: DelayStore, kept: _Kept) -> bool:
    waiting = kept.waiting
    target = store.targets.at(waiting.topic_id, waiting.partition)
    return store.is_pending(target, waiting.due_ms, kept.offset)


def _delivered(broker: Broker, number: int, events: list[Event]) -> TracePlace | None:
    for _, kind, place, first, end, _, _, extra in reversed(events):
        if kind == Kind.DUE and int(extra) <= number < int(extra) + end - first:
            source = broker.telemetry.traces.source_of(place)
            return None if source is None else TracePlace(source, first + number - int(extra))
    return None
