"""Messages as Python has them: bytes, whatever the wire makes of them, and where they lie."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from goqueue.client.times import Duration
from goqueue.model.errors import Invalid
from goqueue.model.messages import Headers, Lane
from goqueue.model.messages import Message as StoredForm

Acks = Literal["all", "leader", "none"]
Priority = Literal["critical", "high", "normal", "low", "background"]
Content: TypeAlias = bytes | bytearray | memoryview | str | None
"""A value or a key: bytes, text that is sent as UTF-8, or nothing."""
Json: TypeAlias = dict[str, Any] | list[Any]
"""Any, because a dict[str, str] is no dict[str, object] to a type checker."""
GivenHeaders: TypeAlias = Mapping[str, Content] | Iterable[tuple[str, Content]]


class Outgoing(NamedTuple):
    """A message to publish."""

    value: Content | Json
    key: Content = None
    headers: GivenHeaders = ()
    partition: int | None = None
    priority: Priority | None = None
    delay: Duration | None = None
    """From now on, in seconds or as a timedelta; goes before `deliver_at`."""
    deliver_at: datetime | None = None
    ttl: Duration | None = None
    """Older than this it is not delivered to groups any more."""


class Placed(msgspec.Struct, frozen=True, omit_defaults=True, rename={"deliver_at": "deliverAt"}):
    """Where a message was stored. With `delayed`, `offset` is the number by which it can be cancelled."""

    partition: int
    offset: int
    """-1 where it is stored and nobody knows any more where, or nobody waited to hear (acks none)."""
    priority: Priority = "normal"
    delayed: bool = False
    deliver_at: datetime | None = None
    quarantined: str | None = None
    """The message does not fit its topic's schemas and is in this topic; `reason` tells why."""
    reason: str | None = None


class Message(msgspec.Struct, frozen=True):
    """A message as it stands in the log."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    value: bytes | None
    headers: Headers
    priority: Priority

    @property
    def text(self) -> str:
        """The value as text."""
        return (self.value or b"").decode()

    def json(self) -> object:
        """The value read as JSON."""
        return msgspec.json.decode(self.value or b"null")

    def header(self, name: str) -> bytes | None:
        """The last header of that name."""
        return next((value for known, value in reversed(self.headers) if known == name), None)


class Page(NamedTuple):
    """Messages of one partition in log order, and where to read on."""

    messages: list[Message]
    next_offset: int


_PRIORITIES: tuple[Priority, ...] = get_args(Priority)


def to_store(
    value: Content | Json,
    *,
    key: Content,
    headers: GivenHeaders,
    partition: int | None,
    priority: Priority | None,
) -> StoredForm:
    """A message as record batches have it."""
    return StoredForm(
        content_bytes(value),
        content_bytes(key) or None,
        given_headers(headers),
        lane_of(priority),
        partition,
    )


def lane_of(priority: Priority | None) -> Lane:
    if priority is None:
        return Lane.NORMAL
    if priority not in _PRIORITIES:
        raise Invalid(f"priority is one of {', '.join(_PRIORITIES)}, not {priority!r}")
    return Lane(_PRIORITIES.index(priority))


def priority_of(lane: Lane) -> Priority:
    return _PRIORITIES[lane]


def content_bytes(content: Content | Json) -> bytes | None:
    """What is stored for what a caller gave: text as UTF-8, dicts and lists as JSON."""
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (dict, list)):
        return msgspec.json.encode(content)
    if isinstance(content, (bytearray, memoryview)):
        return bytes(content)
    # Another type, such as a number, has more than one form as bytes.
    raise Invalid(f"a message is made of bytes, text, a dict or a list, not {type(content).__name__}")


def given_headers(headers: GivenHeaders) -> Headers:
    """Headers as pairs, in order, whichever way they were given."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((name, content_bytes(value)) for name, value in pairs)
