"""Messages as lines of a file or a pipe: JSON objects that say it all, or plain values, mixed as they come.

A JSON object is a message when it has a `value` and nothing that a message has not:
`{"key": "a", "value": "b", "headers": {"h": "1"}, "delay": "5m"}`. Every other line is a value by itself, as
it stands, so a file of JSON events needs no wrapping. Blank lines and lines that begin with `#` are passed
over.
"""

import binascii
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.times import parse_duration, parse_time
from goqueue.client.messages import Content, Outgoing, Priority
from goqueue.model.errors import Invalid

BATCH_COUNT = 10_000
CHUNK_BYTES = 512 * 1024


class MessageLine(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message as a line of JSON has it, by the names of the HTTP door."""

    value: msgspec.Raw
    key: str | None = None
    partition: int | None = None
    priority: Priority | None = None
    headers: dict[str, str | None] = {}
    delay: str | None = None
    deliver_at: str | None = msgspec.field(default=None, name="deliverAt")
    ttl: str | None = None
    encoding: str | None = None


class Input(Protocol):
    """A file or a pipe of bytes."""

    def read1(self, size: int, /) -> bytes: ...


class Batch(NamedTuple):
    """Messages that go in one request, and the bytes of the input that they were."""

    messages: Sequence[Outgoing]
    size_bytes: int


def batches(source: Input, template: Outgoing, *, is_raw: bool) -> Iterator[Batch]:
    """The messages of some lines, cut into requests; what a line leaves open is as in the template.

    What has come goes out: somebody who types, or a program that says something now and then, does not wait
    for a batch to be full.
    """
    number = 0
    for lines in _chunks(source):
        for first in range(0, len(lines), BATCH_COUNT):
            chosen = lines[first : first + BATCH_COUNT]
            read = [
                read_line(line, template, number + index, is_raw=is_raw)
                for index, line in enumerate(chosen, start=1)
            ]
            number += len(chosen)
            messages = [message for message in read if message is not None]
            if messages:
                yield Batch(messages, sum(map(len, chosen)) + len(chosen))


def _chunks(source: Input) -> Iterator[list[bytes]]:
    """Whole lines, as many as one look at the source gives."""
    rest: list[bytes] = []
    while chunk := source.read1(CHUNK_BYTES):
        *whole, last = chunk.split(b"\n")
        if not whole:
            # A line longer than a chunk is put together only once.
            rest.append(last)
            continue
        whole[0] = b"".join(rest) + whole[0]
        rest = [last]
        yield whole
    if last := b"".join(rest):
        yield [last]


def read_line(line: bytes, template: Outgoing, number: int, *, is_raw: bool) -> Outgoing | None:
    """The message of a line; nothing where there is none."""
    line = line.removesuffix(b"\r")
    if is_raw:
        return template._replace(value=line)
    text = line.strip()
    if not text or text.startswith(b"#"):
        return None
    if _is_message(text):
        try:
            return _said(msgspec.json.decode(text, type=MessageLine), template)
        except (ValueError, WrongCommand) as problem:
            raise Invalid(f"line {number} is no message: {problem}") from problem
    return template._replace(value=line)


_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(MessageLine))


def _is_message(text: bytes) -> bool:
    if not text.startswith(b"{"):
        return False
    try:
        names = msgspec.json.decode(text, type=dict[str, msgspec.Raw]).keys()
    except msgspec.DecodeError:
        return False
    return "value" in names and names <= _FIELDS


def _said(line: MessageLine, template: Outgoing) -> Outgoing:
    is_base64 = line.encoding == "base64"
    return Outgoing(
        value=_content(_value(line.value), is_base64),
        key=template.key if line.key is None else _content(line.key, is_base64),
        headers=line.headers or template.headers,
        partition=template.partition if line.partition is None else line.partition,
        priority=line.priority or template.priority,
        delay=template.delay if line.delay is None else parse_duration(line.delay),
        deliver_at=template.deliver_at if line.deliver_at is None else parse_time(line.deliver_at),
        ttl=template.ttl if line.ttl is None else parse_duration(line.ttl),
    )


def _value(raw: msgspec.Raw) -> Content:
    """Text as it is; any other JSON as the text it is written with; null is no value."""
    text = bytes(raw)
    if text == b"null":
        return None
    return msgspec.json.decode(text, type=str) if text.startswith(b'"') else text


def _content(content: Content, is_base64: bool) -> Content:
    if not is_base64 or content is None:
        return content
    return binascii.a2b_base64(content, strict_mode=True)
