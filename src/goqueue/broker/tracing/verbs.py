"""The verbs of tracing: a message's story by its place or by its trace id, lists of stories, and statistics.

Nothing of this runs while messages pass. Lists and statistics tell of what was recorded; the story of a
single message is told of any message in retention.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.slices import Slices
from goqueue.broker.tracing.delays import delayed_tale
from goqueue.broker.tracing.journals import Position, positions_in, settled_ends
from goqueue.broker.tracing.log import Record, look, look_at_many
from goqueue.broker.tracing.places import (
    REFUSED_PARTITION,
    TracePlace,
    place_of,
    refused_context,
)
from goqueue.broker.tracing.search import find_by_trace_id
from goqueue.broker.tracing.story import Tale, tell
from goqueue.core.telemetry.durations import with_durations
from goqueue.core.telemetry.ring_search import (
    Found,
    Places,
    Run,
    covering_all,
    first_offsets,
    is_heard_of,
    messages_of,
    take_unseen,
)
from goqueue.core.telemetry.spans import in_order, spans_of, status_of
from goqueue.core.telemetry.tally import tally
from goqueue.core.telemetry.telemetry import DELAYED
from goqueue.core.telemetry.traces import Event, Kind
from goqueue.model.errors import GoQueueError, MessageNotFound, NotCoordinator, TraceNotFound
from goqueue.model.ids import TopicPartition
from goqueue.model.telemetry import (
    NO_OFFSET,
    NO_PARTITION,
    CountTraces,
    FindTrace,
    Stage,
    Trace,
    TraceMessage,
    TraceQuery,
    TracesFound,
    TraceStats,
    TraceStatus,
)

_LOOK_COUNT = 100
_LOOK_COUNT_MAX = 1_600
"""Each look goes through the whole ring, so one that finds little is followed by a longer one."""
_SEARCH_NS = 2_000_000_000
"""A search that has not found enough by then gives what it has."""


async def trace_of(broker: Broker, command: TraceMessage) -> Trace:
    """The story of any message in retention."""
    await look(broker, command.source, command.offset)  # which tells why there is none
    trace = await tell(broker, [TracePlace(command.source, command.offset)])
    if trace is None:
        raise MessageNotFound(*command.source, command.offset, "it has gone this moment")
    return trace


async def trace_by_id(broker: Broker, command: FindTrace) -> Trace:
    """The story of the messages that are part of a trace: of a made id at once, of a producer's by search."""
    place = place_of(broker, command.trace_id)
    if place is not None and place.source.partition == REFUSED_PARTITION:
        trace = _refused_trace(broker, place.offset - broker.telemetry.began_us)
    else:
        trace = None if place is None else await tell(broker, [place])
    if trace is None:
        found = await find_by_trace_id(broker, command.trace_id)
        trace = await tell(broker, found) if found else None
    if trace is None:
        raise TraceNotFound(command.trace_id)
    return trace


async def find_traces(broker: Broker, command: TraceQuery) -> TracesFound:
    """Stories that were recorded, of sampled messages, those of the newest event first."""
    traces = broker.telemetry.traces
    events, next_number = traces.snapshot(), traces.recorded
    slices = Slices(broker.clock)
    is_heard = command.group is not None and await slices.walk(is_heard_of(events, command.group))
    if command.group is not None and not is_heard and not _is_known(broker, command.group):
        return TracesFound([], is_complete=True)
    places = traces.places()
    untold = await _untold(broker, places, command.statuses, events, slices)
    wanted = messages_of(
        events,
        next_number,
        places,
        _starts(broker, places),
        untold,
        command.statuses,
        _filter(command, is_heard=is_heard),
    )
    found: list[Trace] = []
    deadline_ns = broker.clock.monotonic_ns() + _SEARCH_NS
    look_count = _LOOK_COUNT
    while len(found) < command.limit:
        chunk = await _take(wanted, look_count, slices)
        if not chunk:
            break
        told = await slices.walk(covering_all(events, chunk))
        matching = [trace for trace in await _tell_all(broker, told) if _matches(trace, command)]
        found += matching
        if len(matching) < len(chunk) and broker.clock.monotonic_ns() > deadline_ns:
            return TracesFound(found[: command.limit], is_complete=False)
        look_count = min(2 * look_count, _LOOK_COUNT_MAX)
    return TracesFound(found[: command.limit], is_complete=True)


async def trace_stats(broker: Broker, command: CountTraces) -> TraceStats:
    """What has been recorded, counted."""
    telemetry = broker.telemetry
    traces, config = telemetry.traces, broker.config.tracing
    slices = Slices(broker.clock)
    counts = await slices.walk(tally(traces.snapshot(), traces.places(), telemetry.delayed.place))
    return TraceStats(
        is_enabled=config.is_enabled,
        sampling=config.sampling,
        events_recorded=traces.recorded,
        events_held=len(traces),
        events_max=traces.events_max,
        trace_counts={
            TraceStatus.IN_PROGRESS: counts.active,
            TraceStatus.COMPLETED: counts.completed,
            TraceStatus.FAILED: counts.failed,
            TraceStatus.DELAYED: counts.delayed,
        },
        topic_counts=counts.topics,
        latency_us=counts.latency_us,
    )


def _is_known(broker: Broker, group: str) -> bool:
    try:
        return broker.coordinator.journals.record(group) is not None
    except NotCoordinator:
        return False  # its coordinator knows it


def _starts(broker: Broker, places: Places) -> dict[int, int]:
    """Where the logs of places begin: what retention has taken need not be looked for."""
    starts = {}
    for place, (source, _) in places.items():
        with suppress(GoQueueError):  # it has failed, or is no partition of a topic
            starts[place] = broker.partition(source).log.start_offset
    return starts


async def _untold(
    broker: Broker,
    places: Places,
    statuses: frozenset[TraceStatus],
    events: Sequence[Event],
    slices: Slices,
) -> dict[int, list[Run]]:
    """What of each place may be completed as journals have it, or failed because it was aborted."""
    runs: dict[int, list[Run]] = defaultdict(list)
    if TraceStatus.COMPLETED in statuses:
        ends = await settled_ends(broker, [source for source, _ in places.values()])
        runs |= {place: [(0, ends[source])] for place, (source, _) in places.items()}
    if TraceStatus.FAILED in statuses:
        firsts = await slices.walk(first_offsets(events))
        for place, (source, _) in places.items():
            with suppress(GoQueueError):  # it has failed, or is no partition of a topic
                aborted = broker.partition(source).log.aborted
                for first, end in aborted.runs(firsts[place]) if aborted and place in firsts else ():
                    take_unseen(runs[place], first, end)
    return runs


def _filter(query: TraceQuery, *, is_heard: bool) -> Callable[[Event, TopicPartition], bool]:
    """Which events may tell of what is wanted."""
    # Of a group of Kafka's consumers only its offsets may tell.
    group = query.group if is_heard else None

    def is_wanted(event: Event, source: TopicPartition) -> bool:
        topic = event[7] if source == DELAYED else source.topic
        return (
            (query.topic is None or topic == query.topic)
            and (query.partition is None or source == DELAYED or source.partition == query.partition)
            and (query.start_us is None or event[0] >= query.start_us)
            and (query.end_us is None or event[0] < query.end_us)
            and (group is None or event[5] == group)
        )

    return is_wanted


def _matches(trace: Trace, query: TraceQuery) -> bool:
    return (
        (not query.statuses or trace.status in query.statuses)
        and (query.partition is None or trace.source.partition == query.partition)
        and (query.group is None or any(span.group == query.group for span in trace.spans))
    )


async def _take(wanted: Iterator[Found | None], count: int, slices: Slices) -> list[Found]:
    taken: list[Found] = []
    for found in wanted:
        if found is not None:
            taken.append(found)
            if len(taken) == count:
                break
        await slices.pause()
    return taken


async def _tell_all(broker: Broker, told: Mapping[Found, list[Event]]) -> list[Trace]:
    """Stories as far as each message's own place goes, in the order given. What is gone is left out."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for place, offset, is_refused in told:
        if not is_refused:
            offsets[place].append(offset)
    records: dict[int, tuple[TopicPartition, Mapping[int, Record]]] = {}
    for place, wanted in offsets.items():
        source = broker.telemetry.traces.source_of(place)
        if source is not None and source != DELAYED:
            with suppress(GoQueueError):  # it is going, or has failed: the others may be well
                records[place] = source, await look_at_many(broker, source, sorted(wanted))
    there = [source for source, _ in records.values() if source.topic in broker.topics]
    positions = await positions_in(broker, there)
    known = {
        place: _Partition(source, found, positions[source])
        for place, (source, found) in records.items()
        if source in positions
    }
    traces: list[Trace | None] = []
    slices = Slices(broker.clock)
    for found, events in told.items():
        await slices.pause()
        if found.is_refused:
            traces.append(_refused_trace(broker, found.offset))
        elif found.place == broker.telemetry.delayed.place:
            traces.append(await _delayed_trace(broker, found.offset, events))
        elif found.place in known:
            with suppress(GoQueueError):
                traces.append(_trace(broker, known[found.place], found.offset, events))
    return [trace for trace in traces if trace is not None]


class _Partition(NamedTuple):
    source: TopicPartition
    records: Mapping[int, Record]
    positions: Sequence[Position]


def _trace(broker: Broker, at: _Partition, offset: int, events: Iterable[Event]) -> Trace | None:
    record = at.records.get(offset)
    if record is None:
        return None
    tale = Tale(broker, at.source, record, events, at.positions)
    tale.add_journals()
    spans = with_durations(in_order(tale.spans))
    return Trace(tale.context, at.source, offset, status_of(spans, is_awaited=tale.is_awaited), spans)


async def _delayed_trace(broker: Broker, number: int, events: list[Event]) -> Trace | None:
    """One that waits, or was cancelled; one that was delivered is told of where it lies."""
    tale = await delayed_tale(broker, number, events, is_followed=False)
    if tale is None or any(span.stage is Stage.FIRED for span in tale.spans):
        return None
    spans = in_order(tale.spans)
    return Trace(tale.context, tale.target, NO_OFFSET, status_of(spans), spans)


def _refused_trace(broker: Broker, number: int) -> Trace | None:
    """Messages that were not taken, by the running number of the event that tells of it."""
    event = broker.telemetry.traces.at(number)
    source = None if event is None else broker.telemetry.traces.source_of(event[2])
    if event is None or source is None or event[1] != Kind.REFUSED:
        return None
    context = refused_context(broker, source.topic, number)
    nowhere = TopicPartition(source.topic, NO_PARTITION)
    return Trace(
        context, nowhere, NO_OFFSET, TraceStatus.FAILED, spans_of(event, nowhere, NO_OFFSET, context)
    )
