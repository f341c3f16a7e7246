"""Times and durations as the HTTP contract writes them: RFC 3339 and Go's duration syntax.

Timestamps leave in UTC. RFC 3339 knows the years 1 to 9999 only; a timestamp outside them (a Kafka
producer may write any number) is shown as the nearest one that can be written.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from goqueue.model.errors import Invalid

ZERO_TIME = "0001-01-01T00:00:00Z"
"""Stands for a time that there is not."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MS_MIN = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_MS_MAX = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,18}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UNIX_MS = re.compile(r"-?\d{1,18}", re.ASCII)

TIME_OR_MS_PATTERN = rf"^({_UNIX_MS.pattern}|{_RFC3339.pattern})$"
DURATION_PATTERN = r"^[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$"
_DURATION = re.compile(DURATION_PATTERN, re.ASCII)
_DURATION_PART = re.compile(r"(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_DURATION_LENGTH_MAX = 64
_DURATION_NS_MAX = 2**63 - 1
_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}


def format_time(time_ms: int) -> str:
    """A message's time, to the millisecond: 2026-01-31T12:00:00.250Z."""
    if not _MS_MIN <= time_ms <= _MS_MAX:
        time_ms = min(max(time_ms, _MS_MIN), _MS_MAX)
    return f"{_second(time_ms // 1000)}.{time_ms % 1000:03d}Z"


def format_time_us(time_us: int) -> str:
    """A moment in a message's life, to the microsecond: 2026-01-31T12:00:00.250125Z."""
    time_us = min(max(time_us, _MS_MIN * 1000), _MS_MAX * 1000)
    return f"{_second(time_us // 1_000_000)}.{time_us % 1_000_000:06d}Z"


def format_second(time_ms: int) -> str:
    """A time to the second: 2026-01-31T12:00:00Z."""
    return f"{_second(min(max(time_ms, _MS_MIN), _MS_MAX) // 1000)}Z"


def parse_time(text: str) -> int:
    """Unix milliseconds of an RFC 3339 time."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise Invalid(f"{text!r} is not a time like 2026-01-31T12:00:00Z")
    date, time, fraction, zone = match.groups()
    micros = (fraction or "0")[:6].ljust(6, "0")
    zone = "+00:00" if zone in "Zz" else zone
    try:
        return (datetime.fromisoformat(f"{date}T{time}.{micros}{zone}") - _EPOCH) // _MILLISECOND
    except ValueError as error:
        raise Invalid(f"{text!r} is not a time that exists: {error}") from error


def parse_time_or_ms(text: str) -> int:
    """Unix milliseconds, given as such or as an RFC 3339 time."""
    return int(text) if _UNIX_MS.fullmatch(text) else parse_time(text)


def parse_duration_ns(text: str) -> int:
    """Nanoseconds of a duration in Go's syntax: 1h30m, 1.5s, 250ms, -2s, or a bare 0."""
    if len(text) > _DURATION_LENGTH_MAX or not _DURATION.fullmatch(text):
        raise Invalid(f"{text[:_DURATION_LENGTH_MAX]!r} is not a duration like 1h30m, 1.5s or 250ms")
    total_ns = 0
    for whole, fraction, unit in _DURATION_PART.findall(text):
        unit_ns = _UNIT_NS[unit]
        total_ns += int(whole or 0) * unit_ns
        total_ns += int(fraction or 0) * unit_ns // 10 ** len(fraction)
    if total_ns > _DURATION_NS_MAX:
        raise Invalid(f"duration {text!r} is longer than 292 years")
    return -total_ns if text.startswith("-") else total_ns


def format_duration(duration_ms: int) -> str:
    """A duration, 0 or more, in Go's syntax: 1h2m3.5s, 250ms, 0s."""
    if duration_ms == 0:
        return "0s"
    if duration_ms < 1000:
        return f"{duration_ms}ms"
    minutes, rest_ms = divmod(duration_ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest_ms // 1000}.{rest_ms % 1000:03d}".rstrip("0").rstrip(".")
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def format_average(duration_ms: float) -> str:
    """The same of an average, which a fraction of a millisecond matters to: 39.5ms."""
    return (
        f"{duration_ms:.1f}".removesuffix(".0") + "ms"
        if 0 < duration_ms < 1000
        else format_duration(round(duration_ms))
    )


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    # Messages read together were mostly stored within a few seconds: formatting one a message would
    # be the dearest part of a read.
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]
