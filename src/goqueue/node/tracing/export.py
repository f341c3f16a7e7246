"""What happened to sampled messages, once an interval, as spans for the exporters.

The walk of the messages knows nothing of this: events are read off the ring afterwards. So many spans a
second leave at most. When there are more, messages are left out whole, first those of the partitions in which
most happens: those that stay are the same at every stage, because a message told of at one rate is told of at
all higher ones too.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from goqueue.broker.broker import Broker
from goqueue.broker.tracing.contexts import ContextFinder
from goqueue.broker.tracing.places import refused_context
from goqueue.core.telemetry.durations import Beginnings
from goqueue.core.telemetry.spans import spans_of
from goqueue.core.telemetry.traces import Event, Kind
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicPartition
from goqueue.model.settings import MiB
from goqueue.model.telemetry import NO_OFFSET, NO_PARTITION, TraceContext
from goqueue.node.tracing.config import TraceExportConfig
from goqueue.node.tracing.courier import Courier
from goqueue.node.tracing.outgoing import Outgoing
from goqueue.node.tracing.shares import fair_shares

log = logging.getLogger(__name__)

_KNOWN_MAX = 50_000
"""Messages whose trace ids are remembered, so that their batches are not opened at each stage."""
_OPEN_BYTES_PER_SECOND = 4 * MiB
"""Of batches that are compressed or hold trace contexts so much is opened to learn the ids."""
_THINNED_MAX = 2**40
_SPANS_A_TURN = 200
"""Spans made before the loop goes on with its other work: about a millisecond."""

Numbered = tuple[int, Event]
"""An event and its running number."""


@dataclass(slots=True)
class _Known:
    """What earlier events have told of a message."""

    context: TraceContext
    beginnings: Beginnings = field(default_factory=Beginnings)


class TraceExport:
    """Reads the ring and hands spans to the couriers."""

    def __init__(self, broker: Broker, couriers: Sequence[Courier], config: TraceExportConfig) -> None:
        self._broker = broker
        self._traces = broker.telemetry.traces
        self._couriers = couriers
        self._config = config
        self._next_number = self._traces.recorded
        self._known: dict[tuple[int, int], _Known] = {}
        self._is_closing = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Hand over the last spans and end, within a time."""
        self._is_closing.set()
        await self._task
        within_s = self._config.close_ms / 1000
        await asyncio.gather(
            *(asyncio.to_thread(courier.close, within_s=within_s) for courier in self._couriers)
        )

    async def export_new(self) -> None:
        """Hand over the spans of all that has happened since the last time."""
        drained = self._traces.after(self._next_number, self._traces.events_max)
        self._next_number = drained.next_number
        events = list(enumerate(drained.events, drained.next_number - len(drained.events)))
        wanted, told = await self._spans(events)
        for courier in self._couriers:
            courier.put(told, left_out=drained.missed + wanted - len(told))

    async def _run(self) -> None:
        while not self._is_closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_closing.wait(), self._config.interval_ms / 1000)
            try:
                await self.export_new()
            except Exception:  # a bug here costs these spans; the next ones may be well
                log.exception("trace_export_broken")

    async def _spans(self, events: Sequence[Numbered]) -> tuple[int, list[Outgoing]]:
        """How many spans there would be, and those that may leave."""
        by_place: dict[int, list[Numbered]] = {}
        for numbered in events:
            by_place.setdefault(numbered[1][2], []).append(numbered)
        wanted = {place: self._count(heard, thinned=1) for place, heard in by_place.items()}
        shares = fair_shares(wanted, self._config.budget)
        thinned = {place: self._thinned(heard, shares[place]) for place, heard in by_place.items()}
        await self._learn_contexts(events, thinned)
        told: list[Outgoing] = []
        turn_ends = _SPANS_A_TURN
        for number, event in events:
            for offset in self._offsets(number, event, thinned[event[2]]):
                told += self._told(number, event, offset)
            if len(told) > turn_ends:
                turn_ends = len(told) + _SPANS_A_TURN
                await asyncio.sleep(0)
        return sum(wanted.values()), told

    def _thinned(self, events: Sequence[Numbered], share: int) -> int:
        """Of how many sampled messages one is told of, so that no more spans than that come of it."""
        thinned = 1
        while self._count(events, thinned=thinned) > share:
            if thinned == _THINNED_MAX:
                return 0
            thinned *= 2
        return thinned

    def _count(self, events: Sequence[Numbered], *, thinned: int) -> int:
        """How many spans there are; of what is stored, or refused, two: it has been received first."""
        count = 0
        for number, event in events:
            messages = len(self._offsets(number, event, thinned))
            count += messages * 2 if event[1] in (Kind.STORED, Kind.REFUSED) else messages
        return count

    def _offsets(self, number: int, event: Event, thinned: int) -> Sequence[int]:
        """The messages of an event that are to be told of: one of `thinned`, 0 for none."""
        if not thinned:
            return ()
        _, kind, place, first, end, *_ = event
        if kind == Kind.REFUSED:
            return () if number % thinned else (NO_OFFSET,)
        return self._traces.sampled(place, first, end, thinned=thinned)

    async def _learn_contexts(self, events: Sequence[Numbered], thinned: Mapping[int, int]) -> None:
        """Find out which traces messages belong to that are met for the first time."""
        unknown: dict[int, set[int]] = {}
        for number, event in events:
            place = event[2]
            for offset in self._offsets(number, event, thinned[place]):
                if offset != NO_OFFSET and (place, offset) not in self._known:
                    unknown.setdefault(place, set()).add(offset)
        room_bytes = _OPEN_BYTES_PER_SECOND * self._config.interval_ms // 1000
        finder = ContextFinder(self._broker, open_bytes_max=room_bytes)
        for place, offsets in unknown.items():
            for offset, context in (await self._contexts(finder, place, offsets)).items():
                self._known[place, offset] = _Known(context)
        for _ in range(len(self._known) - _KNOWN_MAX):
            del self._known[next(iter(self._known))]

    async def _contexts(
        self, finder: ContextFinder, place: int, offsets: set[int]
    ) -> Mapping[int, TraceContext]:
        source = self._traces.source_of(place)
        if source is None:
            return {}
        try:
            return await finder.find(source, sorted(offsets))
        except GoQueueError as error:
            # A partition that cannot be read tells its own story in the log; its spans count as dropped.
            log.debug("trace_contexts_failed", extra={"partition": source, "reason": error})
            return {}

    def _told(self, number: int, event: Event, offset: int) -> list[Outgoing]:
        """What an event tells of one of its messages."""
        _, kind, place, *_ = event
        source = self._traces.source_of(place)
        if source is None:
            return []
        if kind == Kind.REFUSED:
            known: _Known | None = _Known(refused_context(self._broker, source.topic, number))
            source = TopicPartition(source.topic, NO_PARTITION)
        else:
            known = self._known.get((place, offset))
        if known is None:
            return []
        return [
            Outgoing(known.context.trace_id, known.beginnings.timed(span))
            for span in spans_of(event, source, offset, known.context)
        ]
