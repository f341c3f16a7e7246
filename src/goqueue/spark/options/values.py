"""Values of options, which are all text, as numbers, sizes, times and JSON. Problems are collected."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from goqueue.model.errors import Invalid

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS = {"true": True, "false": False}
Value = TypeVar("Value")


class InvalidOptions(Invalid):
    """Everything that is wrong with the options of a read or a write."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class GivenOptions:
    """What was given, by name without regard to case, and everything found wrong with it so far."""

    def __init__(self, given: Mapping[str, str], problems: Sequence[str] = ()) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        self.problems = list(problems)

    def has(self, name: str) -> bool:
        return name.lower() in self._given

    def names(self) -> list[str]:
        """The names given, in lower case."""
        return list(self._given)

    def text(self, name: str) -> str:
        return self._given.get(name.lower(), "").strip()

    def take(self, name: str, parse: Callable[[str], Value], default: Value) -> Value:
        """The value of an option, or its default where it is missing or wrong."""
        if not self.has(name):
            return default
        try:
            return parse(self.text(name))
        except Invalid as problem:
            self.problems.append(f"{name}: {problem}")
            return default


def parse_boolean(text: str) -> bool:
    if text.lower() not in _WORDS:
        raise Invalid(f"{text!r} is neither true nor false")
    return _WORDS[text.lower()]


def parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise Invalid(f"{text!r} is not a whole number above 0")
    return int(text)


def parse_size(text: str) -> int:
    """Bytes: 16777216, 16m, 16MiB."""
    match = _SIZE.fullmatch(text)
    if match is None or not int(match[1]):
        raise Invalid(f"{text!r} is not a size like 16777216 or 16MiB")
    return int(match[1]) << 10 * _POWERS[match[2].lower()]


def parse_time_ms(text: str) -> int:
    """Unix milliseconds, or a time like 2026-01-31T12:00:00Z."""
    if text.removeprefix("-").isdigit():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(
            f"{text!r} is neither unix milliseconds nor a time like 2026-01-31T12:00:00Z"
        ) from error
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)


def parse_word(*words: str) -> Callable[[str], str]:
    """A parser for one of a few words."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise Invalid(f"{text!r} is not one of {', '.join(words)}")
        return text.lower()

    return parse


def parse_names(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise Invalid("no name is given")
    return names


def parse_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise Invalid(f"{text!r} is not a regular expression: {error}") from error
    return text


def parse_offsets(text: str) -> dict[str, dict[str, int]]:
    """A number a partition: {"orders": {"0": 12}}."""
    return _parse_json(text, dict[str, dict[str, int]], '{"orders": {"0": 12, "1": 40}}')


def parse_assignment(text: str) -> dict[str, list[int]]:
    """Partitions of topics: {"orders": [0, 2]}."""
    return _parse_json(text, dict[str, list[int]], '{"orders": [0, 2]}')


def parse_folder(text: str) -> Path:
    """A folder by its path or by a `file:` address."""
    address = urlsplit(text)
    if address.scheme not in ("", "file") or address.netloc:
        raise Invalid(f"{text!r} is not a folder: it must be on a file system that all machines share")
    path = Path(unquote(address.path)) if address.scheme else Path(text)
    if not path.is_absolute():
        raise Invalid(f"{text!r} is not absolute: executors have working folders of their own")
    return path


def _parse_json(text: str, kind: type[Value], example: str) -> Value:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{text!r} is not JSON like {example}") from error
