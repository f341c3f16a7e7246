"""Schedules: messages that are published at all times a cron expression names."""

from datetime import datetime

import msgspec

from goqueue.client.call import Call, body_of, json_of, path
from goqueue.client.messages import Content, GivenHeaders, Json, Outgoing, Priority
from goqueue.client.wire import on_wire
from goqueue.wire import delays as wire

Schedule = wire.Schedule[datetime]


class _ScheduleList(msgspec.Struct):
    schedules: list[Schedule]


def create(
    topic: str,
    cron: str,
    value: Content | Json,
    *,
    name: str | None = None,
    time_zone: str | None = None,
    key: Content = None,
    headers: GivenHeaders = (),
    priority: Priority | None = None,
) -> Call[Schedule]:
    """Publish a message at all times that a cron expression names, in a time zone of its own."""
    message = on_wire(Outgoing(value, key, headers, priority=priority))
    return Call(
        method="POST",
        path=path("topics", topic, "schedules"),
        decode=json_of(Schedule),
        body=body_of(cron=cron, message=message, name=name, time_zone=time_zone),
        is_repeatable=False,
    )


def list_schedules(topic: str) -> Call[list[Schedule]]:
    """All schedules of a topic."""
    decode = json_of(_ScheduleList)
    return Call(
        method="GET", path=path("topics", topic, "schedules"), decode=lambda reply: decode(reply).schedules
    )


def get(topic: str, name: str) -> Call[Schedule]:
    """A schedule with its next and its last time."""
    return Call(method="GET", path=path("topics", topic, "schedules", name), decode=json_of(Schedule))


def pause(topic: str, name: str) -> Call[Schedule]:
    """Publish nothing until it is resumed."""
    return _step(topic, name, "pause")


def resume(topic: str, name: str) -> Call[Schedule]:
    """Go on with the next time from now."""
    return _step(topic, name, "resume")


def delete(topic: str, name: str) -> Call[None]:
    """End a schedule."""
    return Call(
        method="DELETE",
        path=path("topics", topic, "schedules", name),
        decode=lambda reply: None,
        is_repeatable=False,
    )


def _step(topic: str, name: str, verb: str) -> Call[Schedule]:
    return Call(method="POST", path=path("topics", topic, "schedules", name, verb), decode=json_of(Schedule))
