"""The story of a message that several nodes have had to do with.

Its partition's leader has the message and knows how it came. What became of it the coordinators of groups
know: each is told what is known so far and adds its own. Where a story leads on, to the dead letters or back
from there, the leader of that place is asked as well.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import cast

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.carrying import Carrier
from goqueue.broker.forwarding.gathering import ask_every_node
from goqueue.broker.forwarding.route import leader_of, route
from goqueue.broker.tracing.story import leads_of, messages_in
from goqueue.core.telemetry.durations import with_durations
from goqueue.core.telemetry.spans import in_order, status_of
from goqueue.model.cluster import NodeId
from goqueue.model.errors import NotFound, TraceNotFound
from goqueue.model.places import Seat
from goqueue.model.telemetry import (
    FindTrace,
    Heard,
    HearOfTraces,
    Span,
    Trace,
    TraceMessage,
    TraceQuery,
    TracesFound,
)

_STEPS_MAX = 8
"""A message that goes to the dead letters and back again and again is followed so far."""
_LOOKED_AT_MAX = 1_000
"""So many stories of each node are looked at when only some are wanted."""


async def trace_by_leader(broker: Broker, command: TraceMessage, carrier: Carrier) -> Trace:
    """The whole story of a message, wherever it has been."""
    node = leader_of(command.source, broker.metadata, carrier.me)
    return await _whole(broker, cast(Trace, await carrier.run_at(node, command)), carrier)


async def find_everywhere(broker: Broker, command: FindTrace, carrier: Carrier) -> Trace:
    """The story of a trace: each node looks among what it leads."""
    told = [
        trace
        for node in route(Seat.EVERY_NODE, broker.metadata, carrier.me)
        if (trace := await _found_at(node, command, carrier)) is not None
    ]
    if not told:
        raise TraceNotFound(command.trace_id)
    return await _whole(broker, _joined(told), carrier)


async def search_everywhere(broker: Broker, command: TraceQuery, carrier: Carrier) -> TracesFound:
    """The newest stories of all nodes, chosen among when the coordinators have told what they know."""
    is_choosy = bool(command.group or command.statuses)
    limit = _LOOKED_AT_MAX if is_choosy else command.limit
    asked = replace(command, group=None, statuses=frozenset(), limit=limit)
    found = cast(list[TracesFound], list((await ask_every_node(broker, asked, carrier)).values()))
    traces = {trace.trace_id: trace for each in found for trace in each.traces}
    stories = await _with_heard(broker, list(traces.values()), carrier)
    wanted = [trace for trace in stories if _is_wanted(trace, command)]
    wanted.sort(key=lambda trace: trace.end_us, reverse=True)
    is_complete = all(each.is_complete and (not is_choosy or len(each.traces) < limit) for each in found)
    return TracesFound(wanted[: command.limit], is_complete or len(wanted) >= command.limit)


async def _found_at(node: NodeId, command: FindTrace, carrier: Carrier) -> Trace | None:
    try:
        return cast(Trace, await carrier.run_at(node, command))
    except TraceNotFound:
        return None


async def _whole(broker: Broker, trace: Trace, carrier: Carrier) -> Trace:
    seen = set(messages_in(trace))
    for _ in range(_STEPS_MAX):
        [trace] = await _with_heard(broker, [trace], carrier)
        ahead = [place for place in dict.fromkeys([*trace.elsewhere, *leads_of(trace)]) if place not in seen]
        if not ahead:
            break
        seen.update(ahead)
        for source, offset in ahead:
            command = TraceMessage(source=source, offset=offset)
            part = await _told_of(carrier.run_at(leader_of(source, broker.metadata, carrier.me), command))
            if part is not None:
                trace = _joined([trace, part])
                seen.update(messages_in(part))
    return replace(trace, elsewhere=())


async def _told_of(asking: Awaitable[object]) -> Trace | None:
    try:
        return cast(Trace, await asking)
    except NotFound:
        return None  # what a story leads to may be gone


async def _with_heard(broker: Broker, traces: Sequence[Trace], carrier: Carrier) -> list[Trace]:
    """Stories with what all nodes have to add."""
    if not traces:
        return []
    told = await ask_every_node(broker, HearOfTraces(traces=traces), carrier)
    columns = zip(*cast(list[list[Heard]], list(told.values())), strict=True)
    return [
        _told_with(trace, [span for heard in column for span in heard.spans], column)
        for trace, column in zip(traces, columns, strict=True)
    ]


def _told_with(trace: Trace, heard: Sequence[Span], told: Sequence[Heard]) -> Trace:
    spans = _once([*trace.spans, *heard])
    is_awaited = any(each.is_awaited for each in told)
    return replace(trace, spans=spans, status=status_of(spans, is_awaited=is_awaited))


def _joined(told: Sequence[Trace]) -> Trace:
    """One story of what several have told; the first of them says where the message is."""
    spans = _once([span for trace in told for span in trace.spans])
    elsewhere = [place for trace in told for place in trace.elsewhere]
    return replace(told[0], spans=spans, status=status_of(spans), elsewhere=elsewhere)


def _once(spans: Sequence[Span]) -> list[Span]:
    """Each span once, in order of time, with the durations that they tell together."""
    unlike = {span.span_id: span for span in reversed(spans)}
    return with_durations(in_order(replace(span, duration_us=None) for span in unlike.values()))


def _is_wanted(trace: Trace, query: TraceQuery) -> bool:
    return (not query.statuses or trace.status in query.statuses) and (
        query.group is None or any(span.group == query.group for span in trace.spans)
    )
