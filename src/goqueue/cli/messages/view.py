"""A message as `consume` shows it: in a table, as a line, as JSON, or its value alone."""

import binascii
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from goqueue.cli.parts.output import Columns, Row, printable
from goqueue.client.messages import Message

VALUE_WIDTH = 50


class Found(NamedTuple):
    """Messages that were found together, and what is to be done when they have been printed."""

    messages: Sequence[Message]
    settle: Callable[[], None] = lambda: None


class MessageView(msgspec.Struct, omit_defaults=True):
    """A message for programs. With `encoding` base64, key and value are, because one of them is no text."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: str | None
    value: str | None
    priority: str
    headers: dict[str, str | None] = {}
    encoding: str = ""


def view_of(message: Message) -> MessageView:
    """A message with text where it is text."""
    headers = {name: _lenient(value) for name, value in message.headers}
    view = MessageView(
        message.topic,
        message.partition,
        message.offset,
        message.timestamp,
        None,
        None,
        message.priority,
        headers,
    )
    try:
        view.key, view.value = _text(message.key), _text(message.value)
    except UnicodeDecodeError:
        view.key, view.value, view.encoding = _base64(message.key), _base64(message.value), "base64"
    return view


def short_value(row: Row) -> str:
    """A value as far as there is room for it in a table."""
    value = row["value"]
    if value is None:
        return "(no value)"
    text = printable(str(value))
    return text if len(text) <= VALUE_WIDTH else f"{text[: VALUE_WIDTH - 1]}…"


COLUMNS: Columns = {
    "OFFSET": "offset",
    "TIMESTAMP": "timestamp",
    "KEY": "key",
    "VALUE": short_value,
    "PRIORITY": "priority",
}
COLUMNS_OF_MANY: Columns = {"PARTITION": "partition", **COLUMNS}


def line_of(view: MessageView, *, with_partition: bool) -> str:
    """A message in one line, as `--follow` prints it: 12 [key]: value."""
    place = f"{view.partition}/{view.offset}" if with_partition else f"{view.offset}"
    key = "" if view.key is None else f" [{printable(view.key)}]"
    return f"{place}{key}: {'' if view.value is None else printable(view.value)}"


def write_values(messages: Sequence[Message]) -> None:
    """The values alone, byte for byte, with a line break behind each."""
    sys.stdout.buffer.write(b"".join((message.value or b"") + b"\n" for message in messages))
    sys.stdout.buffer.flush()


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()


def _lenient(content: bytes | None) -> str | None:
    """A header's value; what is no text is told apart by the signs in its place."""
    return None if content is None else content.decode(errors="backslashreplace")


def _base64(content: bytes | None) -> str | None:
    return None if content is None else binascii.b2a_base64(content, newline=False).decode()
