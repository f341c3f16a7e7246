"""Messages as the JSON routes have them: text where all of it is, else base64. Only calls come here."""

import binascii
from datetime import datetime

import msgspec

from goqueue.client.errors import Refused, kind_of
from goqueue.client.messages import Message, Outgoing, Placed, Priority, content_bytes, given_headers
from goqueue.client.times import duration_text, time_text
from goqueue.model.messages import Headers


class HeaderOnWire(msgspec.Struct, omit_defaults=True, gc=False):
    name: str
    value: str | None
    encoding: str | None = None


class MessageOnWire(msgspec.Struct, gc=False):
    """A stored message as any of the routes tells it."""

    offset: int
    timestamp: datetime
    value: str | None
    priority: Priority
    topic: str = ""
    partition: int = -1
    key: str | None = None
    encoding: str | None = None
    headers: dict[str, str | None] | None = None
    header_list: list[HeaderOnWire] | None = None
    receipt_handle: str = ""
    delivery_count: int = 0

    def opened(self, topic: str = "", partition: int = -1) -> Message:
        is_base64 = self.encoding == "base64"
        return Message(
            self.topic or topic,
            self.partition if self.topic else partition,
            self.offset,
            self.timestamp,
            decoded(self.key, is_base64),
            decoded(self.value, is_base64),
            self.all_headers(),
            self.priority,
        )

    def all_headers(self) -> Headers:
        if self.header_list is not None:
            return tuple(
                (header.name, decoded(header.value, header.encoding == "base64"))
                for header in self.header_list
            )
        return tuple((name, decoded(value, False)) for name, value in (self.headers or {}).items())


class ResultOnWire(msgspec.Struct, rename={"deliver_at": "deliverAt"}, gc=False):
    """What became of one message that was published."""

    partition: int
    offset: int
    priority: Priority | None = None
    delayed: bool = False
    deliver_at: datetime | None = None
    quarantined: str | None = None
    reason: str | None = None
    error: str | None = None
    code: str | None = None

    def outcome(self) -> Placed | Refused:
        if self.error is not None:
            code = self.code or ""
            return kind_of(code, _STATUS_OF_A_RESULT)(self.error, code=code, status=_STATUS_OF_A_RESULT)
        return Placed(
            self.partition,
            self.offset,
            self.priority or "normal",
            self.delayed,
            self.deliver_at,
            self.quarantined,
            self.reason,
        )


_STATUS_OF_A_RESULT = 400
"""A message that is refused by itself has no status of its own; its code tells more."""


def on_wire(message: Outgoing) -> dict[str, object]:
    """A message as the JSON routes take it: text where all of it is, else base64."""
    value, key = content_bytes(message.value), content_bytes(message.key)
    try:
        told: dict[str, object] = {"value": _text(value), "key": _text(key)}
    except UnicodeDecodeError:
        told = {"value": _base64(value), "key": _base64(key), "encoding": "base64"}
    if not key:
        del told["key"]
    headers = given_headers(message.headers)
    if headers:
        told |= _headers_on_wire(headers)
    rest = {
        "partition": message.partition,
        "priority": message.priority,
        "delay": duration_text(message.delay),
        "deliverAt": time_text(message.deliver_at),
        "ttl": duration_text(message.ttl),
    }
    return told | {name: given for name, given in rest.items() if given is not None}


def decoded(text: str | None, is_base64: bool) -> bytes | None:
    if text is None:
        return None
    return binascii.a2b_base64(text) if is_base64 else text.encode()


def _headers_on_wire(headers: Headers) -> dict[str, object]:
    """A map where that says all; else a list, which may repeat names and hold any bytes."""
    try:
        plain = {name: _text(value) for name, value in headers}
    except UnicodeDecodeError:
        plain = {}
    if len(plain) == len(headers):
        return {"headers": plain}
    return {
        "header_list": [
            {"name": name, "value": _base64(value), "encoding": "base64"} for name, value in headers
        ]
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _base64(value: bytes | None) -> str | None:
    return None if value is None else binascii.b2a_base64(value, newline=False).decode()
