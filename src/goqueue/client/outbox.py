"""The waiting room of a producer: messages wait for company, and are taken a parcel at a time.

A parcel is for one topic. It goes when it is full, when its first message has waited for the linger time, or
when somebody asks for all to go. There is no lock here: whoever uses it from several threads brings one.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, Protocol

from goqueue.client.messages import Acks, Placed
from goqueue.model.messages import Message
from goqueue.model.settings import KiB, require

_RECORD_BYTES = 16
"""About what a record takes beyond its value, key and headers."""
_BATCH_BYTES_MAX = 512 * KiB
"""A record batch takes 1 MiB, and what we count is not to the byte."""
_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """A producer that sends messages in batches, each stored once: use it in a `with` block.

    A batch goes when it has `batch_count` messages or `batch_bytes`, or when its first message has waited for
    `linger_ms`. While `buffer_count` messages are unanswered, `send` waits. `acks` is what answers wait for.
    """

    batch_count: int = 100
    linger_ms: float = 5.0
    batch_bytes: int = 64 * KiB
    buffer_count: int = 10_000
    acks: Acks = "all"

    def __post_init__(self) -> None:
        require(self.batch_count > 0, "a batch must have room for a message: batch_count is above 0")
        require(0 < self.batch_bytes <= _BATCH_BYTES_MAX, f"batch_bytes is 1 to {_BATCH_BYTES_MAX}")
        require(self.linger_ms >= 0, "linger_ms is 0 or more")
        require(self.buffer_count > 0, "the buffer must have room for a message: buffer_count is above 0")
        require(self.acks in ("all", "leader", "none"), f"acks is all, leader or none, not {self.acks!r}")


class Ticket(Protocol):
    """The future of one message."""

    def done(self) -> bool: ...

    def set_result(self, placed: Placed, /) -> None: ...

    def set_exception(self, problem: BaseException, /) -> None: ...


class Waiting(NamedTuple):
    """A message and who waits to hear of it."""

    message: Message
    ticket: Ticket
    size_bytes: int
    since_ns: int


class Parcel(NamedTuple):
    """Messages of one topic that go together."""

    topic: str
    waiting: list[Waiting]


class Outbox:
    """Messages that have not been answered: those that wait, and how many are on their way."""

    def __init__(self, settings: ProducerSettings) -> None:
        self._settings = settings
        self._topics: dict[str, deque[Waiting]] = {}
        self._sizes: dict[str, int] = {}
        self._count = 0
        self._is_flushing = False

    @property
    def is_empty(self) -> bool:
        return self._count == 0

    @property
    def has_room(self) -> bool:
        return self._count < self._settings.buffer_count

    def add(self, topic: str, message: Message, ticket: Ticket, *, now_ns: int) -> bool:
        """Let a message wait; whether that changes when the next parcel goes."""
        headers = sum(len(name) + len(value or b"") for name, value in message.headers)
        size = len(message.value or b"") + len(message.key or b"") + headers + _RECORD_BYTES
        waiting = self._topics.setdefault(topic, deque())
        waiting.append(Waiting(message, ticket, size, now_ns))
        self._sizes[topic] = self._sizes.get(topic, 0) + size
        self._count += 1
        return len(waiting) == 1 or self._due_in_ns(topic, now_ns) == 0

    def flush(self) -> None:
        """From now on nothing lingers, until all that is here has gone."""
        self._is_flushing = self._count > 0

    def due_in_ns(self, now_ns: int) -> int | None:
        """How long until the next parcel goes; 0: now. None: nothing waits."""
        if not self._topics:
            return None
        return min(self._due_in_ns(topic, now_ns) for topic in self._topics)

    def take(self, now_ns: int) -> Parcel | None:
        """The parcel that has been due the longest, if one is. What is in it still counts as here."""
        due = [topic for topic in self._topics if self._due_in_ns(topic, now_ns) == 0]
        if not due:
            return None
        topic = min(due, key=lambda topic: self._topics[topic][0].since_ns)
        waiting = self._topics[topic]
        taken = [waiting.popleft()]
        size = taken[0].size_bytes
        while waiting and len(taken) < self._settings.batch_count:
            if size + waiting[0].size_bytes > self._settings.batch_bytes:
                break
            taken.append(waiting.popleft())
            size += taken[-1].size_bytes
        self._sizes[topic] -= size
        if not waiting:
            del self._topics[topic], self._sizes[topic]
        return Parcel(topic, taken)

    def take_older(self, *, than_ns: int) -> list[Parcel]:
        """All that has waited since before a time, full or not, due or not."""
        parcels = []
        for topic, waiting in list(self._topics.items()):
            older = list(takewhile(lambda one: one.since_ns < than_ns, waiting))
            for one in older:
                waiting.popleft()
                self._sizes[topic] -= one.size_bytes
            if not waiting:
                del self._topics[topic], self._sizes[topic]
            parcels.append(Parcel(topic, older))
        return parcels

    def answered(self, *parcels: Parcel) -> None:
        """All messages of some parcels know what became of them."""
        self._count -= sum(len(parcel.waiting) for parcel in parcels)
        self._is_flushing = self._is_flushing and self._count > 0

    def _due_in_ns(self, topic: str, now_ns: int) -> int:
        waiting, settings = self._topics[topic], self._settings
        is_full = len(waiting) >= settings.batch_count or self._sizes[topic] >= settings.batch_bytes
        if is_full or self._is_flushing:
            return 0
        return max(int(waiting[0].since_ns + settings.linger_ms * _NS_PER_MS) - now_ns, 0)


def fail(waiting: Iterable[Waiting], problem: Exception) -> None:
    """Tell who waits for these messages what went wrong."""
    for one in waiting:
        if not one.ticket.done():
            one.ticket.set_exception(problem)


def fail_all(parcels: Iterable[Parcel], problem: Exception) -> None:
    """The same for parcels that did not go."""
    for parcel in parcels:
        fail(parcel.waiting, problem)
