"""Traces over HTTP: the life story of a message, found by id, by place, or among the newest."""

from typing import Annotated

from litestar import get
from litestar.di import NamedDependency
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.slices import Slices
from goqueue.broker.tracing.verbs import find_traces, trace_by_id, trace_of, trace_stats
from goqueue.edge.http.parts.openapi import errors
from goqueue.edge.http.parts.times import format_time_us, parse_time
from goqueue.edge.http.tracing.bodies import (
    CLIENT_STATUS,
    TraceBody,
    TraceList,
    TraceQueryBody,
    TraceSearch,
    TraceStatsBody,
    TraceSummary,
    stats_body,
    trace_body,
    trace_summary,
)
from goqueue.model.errors import Invalid
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.numbers import whole_number
from goqueue.model.telemetry import CountTraces, FindTrace, TraceMessage, TraceQuery, TracesFound, TraceStatus

LIMIT = 100
LIMIT_MAX = 1000
ALL_PARTITIONS = -1
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_TAGS = ["traces"]

_Agent = Annotated[
    str, HeaderParameter(name="User-Agent", description="Clients in Go get the details of events as text.")
]
_Limit = Annotated[
    str | None, QueryParameter(description="At most so many, 1 to 1000; anything else counts as 100.")
]


@get(
    "/traces",
    operation_id="listTraces",
    summary="The newest traces",
    tags=_TAGS,
    responses=errors(503),
)
async def list_traces_route(broker: NamedDependency[Broker], limit: _Limit = None) -> TraceList:
    found = await at_home(broker, find_traces, TraceQuery(limit=_limit(limit)))
    return TraceList(*await _listed(broker, found))


@get(
    "/traces/search",
    operation_id="searchTraces",
    summary="The newest traces of a topic, partition, group, time or status",
    description="What cannot be understood is left out of the search; `query` tells what was searched for.",
    tags=_TAGS,
    responses=errors(503),
)
async def search_traces_route(
    broker: NamedDependency[Broker],
    topic: Annotated[str | None, QueryParameter(description="Of this topic only.")] = None,
    partition: Annotated[
        str | None, QueryParameter(description="Of this partition only; -1: of all.")
    ] = None,
    consumer_group: Annotated[
        str | None, QueryParameter(description="Only messages that this group has had to do with.")
    ] = None,
    start: Annotated[
        str | None, QueryParameter(description="RFC 3339. Counts only together with `end`.")
    ] = None,
    end: Annotated[str | None, QueryParameter(description="RFC 3339; itself not included.")] = None,
    status: Annotated[
        str | None,
        QueryParameter(
            description="in_progress, completed, failed, retrying, delayed, expired; or for several: "
            "pending (neither completed nor failed), error (failed, expired)."
        ),
    ] = None,
    limit: _Limit = None,
) -> TraceSearch:
    start_us, end_us = _time_range(start, end)
    number = _whole_number(partition)
    query = TraceQuery(
        topic=topic or None,
        partition=number if number is not None and 0 <= number <= _INT32_MAX else None,
        group=consumer_group or None,
        start_us=start_us,
        end_us=end_us,
        statuses=_statuses(status),
        limit=_limit(limit),
    )
    found = await at_home(broker, find_traces, query)
    return TraceSearch(*await _listed(broker, found), _understood(query, status or ""))


@get(
    "/traces/stats",
    operation_id="traceStats",
    summary="How many traces there are, by status and topic, and how the exporters fare",
    tags=_TAGS,
)
async def trace_stats_route(broker: NamedDependency[Broker]) -> TraceStatsBody:
    return stats_body(await at_home(broker, trace_stats, CountTraces()), broker.telemetry.exports)


@get(
    "/traces/{trace_id:str}",
    operation_id="getTrace",
    summary="The story of a message by its trace id",
    tags=_TAGS,
    responses=errors(400, 404, 503),
)
async def get_trace_route(
    broker: NamedDependency[Broker],
    trace_id: Annotated[
        str,
        PathParameter(
            description="32 hexadecimal digits: the producer's `traceparent`, or the id that GoQueue gave.",
            schema_extra={"pattern": "^[0-9a-fA-F]{32}$"},
        ),
    ],
    user_agent: _Agent = "",
) -> TraceBody[str]:
    if len(trace_id) != 32 or not set(trace_id) <= _HEX_DIGITS:
        raise Invalid("a trace id has 32 hexadecimal digits")
    trace = await at_home(broker, trace_by_id, FindTrace(trace_id=trace_id.lower()))
    return trace_body(trace, user_agent=user_agent)


@get(
    "/topics/{topic:str}/partitions/{partition:str}/offsets/{offset:str}/trace",
    operation_id="traceMessage",
    summary="The story of any message that is kept, also of one from before tracing was on",
    tags=_TAGS,
    responses=errors(400, 403, 404, 500, 503),
)
async def trace_message_route(
    broker: NamedDependency[Broker],
    topic: Annotated[str, PathParameter(description="The topic's name.")],
    partition: Annotated[int, PathParameter(ge=0, le=_INT32_MAX, description="The partition's number.")],
    offset: Annotated[int, PathParameter(ge=0, le=_INT64_MAX, description="The message's offset.")],
    user_agent: _Agent = "",
) -> TraceBody[str]:
    command = TraceMessage(source=TopicPartition(TopicName(topic), partition), offset=offset)
    trace = await at_home(broker, trace_of, command)
    return trace_body(trace, user_agent=user_agent)


_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


async def _listed(broker: Broker, found: TracesFound) -> tuple[list[TraceSummary], int, bool]:
    slices = Slices(broker.clock)
    summaries = []
    for trace in found.traces:
        summaries.append(trace_summary(trace))
        await slices.pause()
    return summaries, len(summaries), found.is_complete


def _whole_number(text: str | None) -> int | None:
    """A number from a query; None for what is none, which existing clients expect to be passed over."""
    number = whole_number((text or "").removeprefix("-"))
    return number if number is None or text is None else int(text)


def _limit(text: str | None) -> int:
    number = _whole_number(text)
    return number if number is not None and 1 <= number <= LIMIT_MAX else LIMIT


def _time_range(start: str | None, end: str | None) -> tuple[int | None, int | None]:
    """Both times, or none: half a range counts for nothing."""
    if not start or not end:
        return None, None
    try:
        return parse_time(start) * 1000, parse_time(end) * 1000
    except Invalid:
        return None, None


def _statuses(word: str | None) -> frozenset[TraceStatus]:
    known = {status.value: frozenset({status}) for status in TraceStatus} | CLIENT_STATUS
    return known.get((word or "").lower(), frozenset())


def _understood(query: TraceQuery, status: str) -> TraceQueryBody:
    return TraceQueryBody(
        topic=query.topic or "",
        partition=ALL_PARTITIONS if query.partition is None else query.partition,
        consumer_group=query.group or "",
        start="" if query.start_us is None else format_time_us(query.start_us),
        end="" if query.end_us is None else format_time_us(query.end_us),
        status=status if query.statuses else "",
        limit=query.limit,
    )


ROUTES = [
    list_traces_route,
    search_traces_route,
    trace_stats_route,
    get_trace_route,
    trace_message_route,
]
