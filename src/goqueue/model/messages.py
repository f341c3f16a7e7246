"""What a producer gives, and how sure it wants to be."""

from enum import Enum, IntEnum
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
PRIORITY_HEADER = "goqueue-priority"


class Lane(IntEnum):
    """A priority within a partition; its number is the byte on disk."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    BACKGROUND = 4

    @property
    def label(self) -> str:
        return self.name.lower()


class Acks(Enum):
    """What a publish waits for: nothing, the OS, or the disk (and, in a cluster, the copies)."""

    NONE = "none"
    LEADER = "leader"
    ALL = "all"


def headers_bytes(headers: Headers) -> int:
    """How much headers bring along."""
    return sum(len(name) + len(value or b"") for name, value in headers)


class Message(NamedTuple):
    """One message on its way in. A tuple, because a thousand of them come in one request."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    lane: Lane = Lane.NORMAL
    partition: int | None = None
    timestamp_ms: int | None = None
    due_ms: int | None = None
    """When it is to be delivered; None: now."""


class StoredMessage(NamedTuple):
    """One message as it stands in the log."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    lane: Lane
