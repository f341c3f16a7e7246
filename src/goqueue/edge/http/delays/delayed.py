"""Delayed messages over HTTP: list, look, cancel, move, and how many there are."""

from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.delays.keeper import TICK_MS
from goqueue.broker.delays.verbs import cancel_delayed, delay_stats, get_delayed, list_delayed, move_delayed
from goqueue.broker.forwarding.at_home import at_home, seen_at_home
from goqueue.edge.http.delays.bodies import (
    DelayedCancelled,
    DelayedList,
    DelayedMessage,
    DelayStatsBody,
    MoveBody,
    TimerWheelStats,
)
from goqueue.edge.http.messages.publishing import due_time
from goqueue.edge.http.parts.bodies import PRIORITY_OF_LANE
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.times import format_duration, format_time
from goqueue.model.delays import (
    CancelDelayed,
    CountDelayed,
    DelayedView,
    GetDelayed,
    ListDelayed,
    MoveDelayed,
)
from goqueue.model.errors import Invalid

LIMIT = 100
LIMIT_MAX = 10_000
_decoder = msgspec.json.Decoder(MoveBody)
_TAGS = ["delays"]
_INT64_MAX = 2**63 - 1

_Topic = Annotated[str, PathParameter(description="The topic's name.")]
_Partition = Annotated[int, PathParameter(ge=0, le=2**31 - 1, description="Where the message goes.")]
_Number = Annotated[
    int, PathParameter(ge=0, le=_INT64_MAX, description="The offset that its publish was answered with.")
]


@get(
    "/topics/{topic:str}/delayed",
    operation_id="listDelayed",
    summary="Messages that wait for their time, the next one first",
    tags=_TAGS,
    responses=errors(400, 503),
)
async def list_delayed_route(
    broker: NamedDependency[Broker],
    topic: _Topic,
    limit: Annotated[str | None, QueryParameter(description="At most so many; 100 by default.")] = None,
    skip: Annotated[str | None, QueryParameter(description="Begin behind so many.")] = None,
) -> DelayedList:
    count, first = _number(limit, LIMIT, LIMIT_MAX), _number(skip, 0, _INT64_MAX)
    now_ms = broker.clock.wall_ms()
    found = await at_home(broker, list_delayed, ListDelayed(topic=topic, limit=count, skip=first))
    return DelayedList(topic, [_body_of(view, now_ms) for view in found], len(found), count, first)


@get(
    "/topics/{topic:str}/delayed/{offset:str}",
    operation_id="getDelayed",
    summary="A message that waits for its time",
    tags=_TAGS,
    responses=errors(400, 404, 503),
)
async def get_delayed_route(
    broker: NamedDependency[Broker], topic: _Topic, offset: _Number
) -> DelayedMessage:
    found = await at_home(broker, get_delayed, GetDelayed(topic=topic, number=offset))
    return _body_of(found, broker.clock.wall_ms())


@delete(
    "/topics/{topic:str}/delayed/{partition:str}/{offset:str}",
    status_code=200,
    operation_id="cancelDelayed",
    summary="Cancel a message that waits: it is never delivered",
    tags=_TAGS,
    responses=errors(400, 403, 404, 503, 507),
)
async def cancel_delayed_route(
    broker: NamedDependency[Broker], topic: _Topic, partition: _Partition, offset: _Number
) -> DelayedCancelled:
    await at_home(broker, cancel_delayed, CancelDelayed(topic=topic, partition=partition, number=offset))
    return DelayedCancelled(topic, partition, offset)


@post(
    "/topics/{topic:str}/delayed/{partition:str}/{offset:str}/move",
    status_code=200,
    operation_id="moveDelayed",
    summary="Give a message that waits another time",
    tags=_TAGS,
    operation_class=takes(MoveBody),
    responses=errors(400, 403, 404, 413, 503, 507),
)
async def move_delayed_route(
    broker: NamedDependency[Broker], topic: _Topic, partition: _Partition, offset: _Number, body: RawBody
) -> DelayedMessage:
    request = decode(_decoder, body)
    if not request.delay and not request.deliver_at:
        raise Invalid("to move a message give its delay or deliverAt")
    now_ms = broker.clock.wall_ms()
    due_ms = due_time(request.delay, request.deliver_at, now_ms)
    command = MoveDelayed(
        topic=topic, partition=partition, number=offset, due_ms=now_ms if due_ms is None else due_ms
    )
    moved = await at_home(broker, move_delayed, command)
    return _body_of(moved, now_ms)


@get("/delay/stats", operation_id="delayStats", summary="How many messages wait, and have waited", tags=_TAGS)
async def delay_stats_route(broker: NamedDependency[Broker]) -> DelayStatsBody:
    stats = await seen_at_home(broker, delay_stats, CountDelayed())
    return DelayStatsBody(
        total_scheduled=stats.scheduled,
        total_delivered=stats.delivered,
        total_canceled=stats.cancelled,
        total_pending=stats.pending,
        total_dropped=stats.dropped,
        by_topic={str(topic): count for topic, count in stats.pending_by_topic.items()},
        timer_wheel=TimerWheelStats(
            total_scheduled=stats.scheduled,
            total_expired=stats.delivered,
            total_canceled=stats.cancelled,
            current_active=stats.near,
            current_tick=broker.clock.wall_ms() // TICK_MS,
        ),
        pending_count=stats.pending,
        delivered_count=stats.delivered,
        cancelled_count=stats.cancelled,
        canceled_count=stats.cancelled,
        avg_delay=format_duration(stats.delay_ms_sum // max(stats.scheduled, 1)),
        in_transactions=stats.held,
    )


def _body_of(view: DelayedView, now_ms: int) -> DelayedMessage:
    return DelayedMessage(
        topic=view.topic,
        partition=view.partition,
        offset=view.number,
        deliver_at=format_time(view.due_ms),
        time_remaining=format_duration(max(view.due_ms - now_ms, 0)),
        state="pending",
        priority=PRIORITY_OF_LANE[view.lane],
    )


def _number(text: str | None, default: int, bound: int) -> int:
    """A count from a query; what is none stands for the default, as existing clients expect."""
    if text is None or not text.isascii() or not text.isdecimal():
        return default
    return min(int(text[:19]), bound)


ROUTES = [
    list_delayed_route,
    get_delayed_route,
    cancel_delayed_route,
    move_delayed_route,
    delay_stats_route,
]
