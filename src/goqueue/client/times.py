"""Durations and times as callers give them, in the words of the HTTP door."""

from datetime import datetime, timedelta
from math import isfinite

from goqueue.model.errors import Invalid
from goqueue.model.settings import require

Duration = float | timedelta
"""Seconds, or a timedelta."""


def milliseconds(duration: Duration) -> int:
    """A started millisecond counts as a whole one: nothing is to happen early."""
    if isinstance(duration, timedelta):
        return -(-duration // timedelta(milliseconds=1))
    if not isfinite(duration):
        raise Invalid(f"{duration} is no duration: give seconds, or a timedelta")
    return -int(-duration * 1_000 // 1)


def option_ms(name: str, seconds: float, *, least_ms: int) -> int:
    """An option that is given in seconds."""
    found_ms = milliseconds(seconds)
    require(found_ms >= least_ms, f"{name} is {'0 or more' if least_ms == 0 else 'above 0'}")
    return found_ms


def duration_text(duration: Duration | None) -> str | None:
    """A duration as a node reads it: 1500ms."""
    return None if duration is None else f"{milliseconds(duration)}ms"


def time_text(time: datetime | None) -> str | None:
    """A time as a node reads it. One without a zone could mean two hours' difference: it is refused."""
    if time is None:
        return None
    if time.tzinfo is None:
        raise Invalid(f"{time.isoformat()} has no time zone: give one, such as datetime.now(UTC)")
    return time.isoformat()
