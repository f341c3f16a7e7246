"""The story of a message, told when asked: what was heard of it, what the log has, what the journals know.

A story may lead on: to the dead letters, back from there, from where a message waited into its partition.
All of that is one trace.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from goqueue.broker.broker import Broker
from goqueue.broker.slices import Slices
from goqueue.broker.tracing.delays import delayed_tale
from goqueue.broker.tracing.journals import Position, is_awaited, journal_spans, positions_in
from goqueue.broker.tracing.log import UNTIMED, Record, log_spans, look, origin_of, was_redriven
from goqueue.broker.tracing.places import TracePlace, context_of, ids_of, place_of
from goqueue.broker.tracing.search import find_dead_letter, find_redriven, find_scheduled
from goqueue.core.telemetry.durations import with_durations
from goqueue.core.telemetry.ring_search import covering
from goqueue.core.telemetry.spans import SpanMaker, in_order, spans_of, status_of
from goqueue.core.telemetry.telemetry import DELAYED
from goqueue.core.telemetry.traces import Event, Kind
from goqueue.model.errors import NotFound, NotLeader
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.telemetry import NO_OFFSET, Heard, HearOfTraces, Span, Stage, Trace, TraceContext

_PLACES_MAX = 32
"""A message that goes to the dead letters and back again and again is followed so far."""
_TARGET = re.compile(r"(.+)/(\d+)@(\d+)")
_ONCE = frozenset({Stage.RECEIVED, Stage.PARTITIONED, Stage.PERSISTED, Stage.FIRED})


class Tale:
    """What is known of one message at one place."""

    def __init__(
        self,
        broker: Broker,
        source: TopicPartition,
        record: Record,
        events: Iterable[Event],
        positions: Sequence[Position],
    ) -> None:
        offset = record.message.offset
        self._record = record
        self._positions = positions
        self.context = context_of(ids_of(broker, source), offset, record.message.headers)
        self.maker = SpanMaker(self.context, source, offset)
        heard = [span for event in events for span in spans_of(event, source, offset, self.context)]
        self.spans = _joined(log_spans(broker, source, record, self.maker), heard)

    @property
    def is_awaited(self) -> bool:
        """Whether a group has still to come to the message."""
        return is_awaited(self._positions, self._record.message.offset)

    def add_journals(self) -> None:
        """What the groups' journals know and nobody has heard, or nobody remembers."""
        offset = self._record.message.offset
        self.spans += journal_spans(self._positions, offset, self.maker, self.spans)

    def leads(self) -> list[TracePlace]:
        """Where the story goes on, as far as it tells that itself."""
        return leads_of(self)


class _Told(Protocol):
    @property
    def spans(self) -> Sequence[Span]: ...


def leads_of(told: _Told) -> list[TracePlace]:
    """Where a story goes on, as far as its spans tell that."""
    found = []
    for span in told.spans:
        if target := _TARGET.fullmatch(str(span.facts.get("to", ""))):
            source = TopicPartition(TopicName(target[1]), int(target[2]))
            found.append(TracePlace(source, int(target[3])))
    return found


async def tell(broker: Broker, places: Sequence[TracePlace]) -> Trace | None:
    """One story of messages that share a trace, and of all that they lead to; None when all are gone."""
    events = broker.telemetry.traces.snapshot()
    spans: list[Span] = []
    context: TraceContext | None = None
    shown: TracePlace | None = None
    awaited = False
    elsewhere: list[TracePlace] = []
    seen = set(places)
    ahead = deque(places)
    while ahead:
        place = ahead.popleft()
        found: list[TracePlace] = []
        if place.source == DELAYED:
            delayed = await delayed_tale(broker, place.offset, events)
            if delayed is None:
                continue
            told, told_context, at = delayed.spans, delayed.context, TracePlace(delayed.target, NO_OFFSET)
            if delayed.delivered is not None:
                found.append(delayed.delivered)
        else:
            try:
                tale, found = await _tale_at(broker, place, events)
            except NotFound:
                continue  # what a story leads to may be gone
            except NotLeader:
                elsewhere.append(place)
                continue
            told, told_context, at = tale.spans, tale.context, place
            awaited |= tale.is_awaited
        context = context or told_context
        if shown is None or shown.offset == NO_OFFSET:
            shown = at
        spans += told
        new = [one for one in dict.fromkeys(found) if one not in seen][: max(_PLACES_MAX - len(seen), 0)]
        seen.update(new)
        ahead.extend(new)
    if context is None or shown is None:
        return None
    spans = with_durations(in_order(spans))
    status = status_of(spans, is_awaited=awaited)
    return Trace(context, shown.source, shown.offset, status, spans, elsewhere)


async def hear_of_traces(broker: Broker, command: HearOfTraces) -> list[Heard]:
    """What was heard here, and what the journals here know, of messages whose log another node may have."""
    events = broker.telemetry.traces.snapshot()
    return [await _heard_of(broker, trace, events) for trace in command.traces]


async def _heard_of(broker: Broker, trace: Trace, events: list[Event]) -> Heard:
    spans: list[Span] = []
    awaited = False
    slices = Slices(broker.clock)
    for source, offset in messages_in(trace):
        if source.topic not in broker.metadata.topics:
            continue
        told = await slices.walk(covering(events, broker.telemetry.of(source).place, offset))
        spans += [span for event in told for span in spans_of(event, source, offset, trace.context)]
        positions = (await positions_in(broker, [source]))[source]
        maker = SpanMaker(trace.context, source, offset)
        spans += journal_spans(positions, offset, maker, [*trace.spans, *spans])
        awaited |= is_awaited(positions, offset)
    return Heard(spans, awaited)


def messages_in(trace: Trace) -> list[tuple[TopicPartition, int]]:
    """The messages that a story tells of, as far as they have a place."""
    places = ((TopicPartition(span.topic, span.partition), span.offset) for span in trace.spans)
    return [place for place in dict.fromkeys(places) if place[0].partition >= 0 and place[1] >= 0]


async def _tale_at(broker: Broker, place: TracePlace, events: list[Event]) -> tuple[Tale, list[TracePlace]]:
    """What is known of a message, and where its story comes from and leads to."""
    source, offset = place
    record = await look(broker, source, offset)
    slices = Slices(broker.clock)
    heard = await slices.walk(covering(events, broker.telemetry.of(source).place, offset))
    positions = (await positions_in(broker, [source]))[source]
    tale = Tale(broker, source, record, heard, positions)
    found = tale.leads()
    if not found and (dead := await find_dead_letter(broker, source, record.message)) is not None:
        found.append(dead.place)
        tale.spans.append(dead.span(tale.maker))
    tale.add_journals()
    made_of = place_of(broker, tale.context.trace_id)
    origins = [origin_of(record.message), made_of]
    fired = next((span for span in tale.spans if span.stage is Stage.FIRED), None)
    if fired is not None and (made_of is None or made_of.source != DELAYED):
        number = fired.facts.get("number")
        origins.append(
            await find_scheduled(broker, record.message, tale.context)
            if number is None
            else TracePlace(DELAYED, int(number))
        )
    if made_of is None and was_redriven(record.message):
        heard_of = _redriven_from(broker, place, events)
        origins.append(heard_of or await find_redriven(broker, source, record.message, tale.context))
    return tale, found + [origin for origin in origins if origin is not None]


def _redriven_from(broker: Broker, place: TracePlace, events: Iterable[Event]) -> TracePlace | None:
    """The dead letter that was sent back to a place, if that was heard."""
    target = f"{place.source}@{place.offset}"
    for event in events:
        if event[7] == target and event[1] == Kind.REDRIVEN:
            source = broker.telemetry.traces.source_of(event[2])
            return None if source is None else TracePlace(source, event[3])
    return None


def _joined(known: list[Span], heard: list[Span]) -> list[Span]:
    """What the log has, at the times that were heard where they were.

    A producer's clock may be ahead: what was heard of a message came after it was stored.
    """
    times = {span.stage: span for span in heard if span.stage in _ONCE}
    received = times.get(Stage.RECEIVED)
    latest_us = min((span.time_us for span in heard), default=None)
    spans = []
    for span in known:
        told = times.get(span.stage)
        if told is not None:
            facts = {name: fact for name, fact in span.facts.items() if name not in UNTIMED}
            span = replace(span, time_us=told.time_us, witness=told.witness, facts={**facts, **told.facts})
        elif received is not None:
            span = replace(span, time_us=max(span.time_us, received.time_us))
        elif latest_us is not None:
            span = replace(span, time_us=min(span.time_us, latest_us))
        spans.append(span)
    stages = {span.stage for span in known}
    return spans + [span for span in heard if span.stage not in stages]
