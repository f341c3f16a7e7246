"""Errors about delayed messages and schedules."""

from goqueue.model.errors.families import Busy, Invalid, NotFound


class DelayedNotFound(NotFound):
    """No message of that number is pending: it was delivered or cancelled, or never was."""

    code = "delayed_not_found"

    def __init__(self, topic: str, number: int) -> None:
        super().__init__(f"topic {topic} has no pending message {number}")
        self.topic = topic
        self.number = number


class ScheduleNotFound(NotFound):
    """The topic has no schedule of that name."""

    code = "schedule_not_found"

    def __init__(self, topic: str, name: str) -> None:
        super().__init__(f"topic {topic} has no schedule {name}")
        self.topic = topic
        self.name = name


class ScheduleExists(Busy):
    """The topic has a schedule of that name already."""

    code = "schedule_exists"

    def __init__(self, topic: str, name: str) -> None:
        super().__init__(f"topic {topic} already has a schedule {name}")
        self.topic = topic
        self.name = name


class InvalidSchedule(Invalid):
    """A cron expression or a time zone that cannot be understood, or names no time."""

    code = "invalid_schedule"
