"""Schedules over HTTP: messages that are published again and again, at the times a cron expression names."""

from contextlib import suppress
from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.delays.schedules import (
    create_schedule,
    describe_schedule,
    end_schedule,
    pause_schedule,
    resume_schedule,
    schedule_names,
)
from goqueue.broker.forwarding.at_home import at_home, seen_at_home
from goqueue.broker.slices import Slices
from goqueue.edge.http.delays.bodies import (
    CreateScheduleBody,
    ScheduleBody,
    ScheduleDeleted,
    ScheduledMessageBody,
    ScheduleList,
)
from goqueue.edge.http.messages.publishing import message_of
from goqueue.edge.http.messages.reading import base64_of, shown_headers
from goqueue.edge.http.parts.bodies import PRIORITY_OF_LANE, MessageBody
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.paging import ALL, After, Limit, names_in_page
from goqueue.edge.http.parts.times import format_time
from goqueue.model.delays import (
    CreateSchedule,
    DescribeSchedule,
    EndSchedule,
    ListSchedules,
    PauseSchedule,
    ResumeSchedule,
    ScheduledMessage,
    ScheduleView,
)
from goqueue.model.errors import NotFound
from goqueue.model.ids import TopicName
from goqueue.model.names import PLAIN_NAME_PATTERN
from goqueue.wire import delays as wire

_decoder = msgspec.json.Decoder(CreateScheduleBody)
_TAGS = ["schedules"]

_Topic = Annotated[str, PathParameter(description="The topic's name.")]
_Name = Annotated[
    str, PathParameter(description="The schedule's name.", schema_extra={"pattern": PLAIN_NAME_PATTERN})
]


@post(
    "/topics/{topic:str}/schedules",
    operation_id="createSchedule",
    summary="Publish a message at all times that a cron expression names",
    tags=_TAGS,
    operation_class=takes(CreateScheduleBody),
    responses=errors(400, 403, 404, 409, 413, 503, 507),
)
async def create_schedule_route(
    broker: NamedDependency[Broker], topic: _Topic, body: RawBody
) -> ScheduleBody:
    request = decode(_decoder, body)
    command = CreateSchedule(
        topic=TopicName(topic),
        name=request.name or "",
        cron=request.cron,
        time_zone=request.time_zone or "UTC",
        message=_message_of(request.message),
    )
    return _body_of(await at_home(broker, create_schedule, command))


@get(
    "/topics/{topic:str}/schedules",
    operation_id="listSchedules",
    summary="The schedules of a topic, by name",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def list_schedules_route(
    broker: NamedDependency[Broker], topic: _Topic, limit: Limit = ALL, after: After = None
) -> ScheduleList:
    names = await seen_at_home(broker, schedule_names, ListSchedules(topic=topic))
    page = names_in_page(names, limit, after)
    slices = Slices(broker.clock)
    schedules = []
    for name in page.rows:
        await slices.pause()
        with suppress(NotFound):  # it has ended meanwhile
            command = DescribeSchedule(topic=topic, name=name)
            schedules.append(_body_of(await seen_at_home(broker, describe_schedule, command)))
    return ScheduleList(topic, schedules, page.next)


@get(
    "/topics/{topic:str}/schedules/{name:str}",
    operation_id="describeSchedule",
    summary="A schedule: its next time and its last",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def describe_schedule_route(
    broker: NamedDependency[Broker], topic: _Topic, name: _Name
) -> ScheduleBody:
    command = DescribeSchedule(topic=topic, name=name)
    return _body_of(await seen_at_home(broker, describe_schedule, command))


@post(
    "/topics/{topic:str}/schedules/{name:str}/pause",
    status_code=200,
    operation_id="pauseSchedule",
    summary="Let a schedule rest",
    tags=_TAGS,
    responses=errors(400, 403, 404, 503, 507),
)
async def pause_schedule_route(broker: NamedDependency[Broker], topic: _Topic, name: _Name) -> ScheduleBody:
    return _body_of(await at_home(broker, pause_schedule, PauseSchedule(topic=topic, name=name)))


@post(
    "/topics/{topic:str}/schedules/{name:str}/resume",
    status_code=200,
    operation_id="resumeSchedule",
    summary="Let a paused schedule go on with its next time",
    tags=_TAGS,
    responses=errors(400, 403, 404, 503, 507),
)
async def resume_schedule_route(broker: NamedDependency[Broker], topic: _Topic, name: _Name) -> ScheduleBody:
    return _body_of(await at_home(broker, resume_schedule, ResumeSchedule(topic=topic, name=name)))


@delete(
    "/topics/{topic:str}/schedules/{name:str}",
    status_code=200,
    operation_id="deleteSchedule",
    summary="Delete a schedule, with the message that waits",
    tags=_TAGS,
    responses=errors(400, 403, 404, 503, 507),
)
async def delete_schedule_route(
    broker: NamedDependency[Broker], topic: _Topic, name: _Name
) -> ScheduleDeleted:
    await at_home(broker, end_schedule, EndSchedule(topic=topic, name=name))
    return ScheduleDeleted(topic, name)


def _message_of(given: ScheduledMessageBody) -> ScheduledMessage:
    message = message_of(
        MessageBody(
            value=given.value,
            key=given.key,
            priority=given.priority,
            headers=given.headers,
            encoding=given.encoding,
        ),
        False,
        0,
    )
    return ScheduledMessage(
        value=message.value or b"", key=message.key, headers=message.headers, lane=message.lane
    )


def _body_of(view: ScheduleView) -> ScheduleBody:
    return ScheduleBody(
        topic=view.topic,
        name=view.name,
        cron=view.cron,
        time_zone=view.time_zone,
        message=_shown(view.message),
        state="paused" if view.is_paused else "active",
        created_at=format_time(view.created_ms),
        fired=view.fired,
        next_at=None if view.next_due_ms is None else format_time(view.next_due_ms),
        last_at=None if view.last_due_ms is None else format_time(view.last_due_ms),
    )


def _shown(message: ScheduledMessage) -> wire.ScheduledMessage:
    """As it was given: in base64 only where it is no text."""
    priority = PRIORITY_OF_LANE[message.lane]
    headers = shown_headers(message.headers)[0] if message.headers else None
    try:
        key = None if message.key is None else message.key.decode()
        return wire.ScheduledMessage(message.value.decode(), key, priority, headers)
    except UnicodeDecodeError:
        value = base64_of(message.value) or ""
        return wire.ScheduledMessage(value, base64_of(message.key), priority, headers, "base64")


ROUTES = [
    create_schedule_route,
    list_schedules_route,
    describe_schedule_route,
    pause_schedule_route,
    resume_schedule_route,
    delete_schedule_route,
]
