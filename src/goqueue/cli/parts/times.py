"""Times and durations as people type them, and as they read them."""

import re
from datetime import UTC, datetime, timedelta

from goqueue.cli.parts.exit_codes import WrongCommand

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_DURATION = re.compile(rf"(?:{_PART})+", re.ASCII)
_MILLISECONDS = re.compile(r"\d{1,14}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_duration(text: str) -> timedelta:
    """A duration like 1h30m, 1.5s or 250ms."""
    if not _DURATION.fullmatch(text):
        raise WrongCommand(f"{text!r} is not a duration like 1h30m, 1.5s or 2d")
    try:
        return sum((float(count) * _UNITS[unit] for count, unit in re.findall(_PART, text)), timedelta())
    except OverflowError as error:
        raise WrongCommand(f"{text!r} is longer than anybody can wait") from error


def parse_time(text: str) -> datetime:
    """A time like 2026-01-31T12:00:00Z, or unix milliseconds."""
    try:
        if _MILLISECONDS.fullmatch(text):
            return _EPOCH + timedelta(milliseconds=int(text))
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise WrongCommand(f"{text!r} is not a time like 2026-01-31T12:00:00Z") from error
    # A time without a zone is UTC, as in all that the broker prints.
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def parse_moment(text: str, *, now: datetime) -> datetime:
    """A time as above, or how long ago it was, like 15m."""
    if not _DURATION.fullmatch(text):
        return parse_time(text)
    try:
        return now - parse_duration(text)
    except OverflowError as error:
        raise WrongCommand(f"{text!r} ago there was no calendar") from error


def now() -> datetime:
    """This machine's clock."""
    return datetime.now(UTC)


def time_text(time: datetime) -> str:
    """A time to the millisecond, in UTC: 2026-01-31T12:00:00.250Z."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def seconds_text(seconds: float) -> str:
    """A span of time for people: 0.3 s, 12 s, 4m 10s, 2h 5m, 3d 4h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minutes}m"
    return f"{hours // 24}d {hours % 24}h"
