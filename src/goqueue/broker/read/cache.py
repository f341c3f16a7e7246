"""Batches that were opened for a few of their messages: the next poll mostly wants the next few.

A producer that sends a thousand messages at a time and a consumer that takes one at a time would else
have each batch opened a thousand times. Bounded by messages and bytes; what was not asked for longest goes
first.
"""

from collections import OrderedDict
from typing import Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from goqueue.model.messages import StoredMessage
from goqueue.model.settings import MiB

_MESSAGES_MAX = 50_000
_BYTES_MAX = 64 * MiB


class LogPlace(NamedTuple):
    """A partition as long as its log only grows: what was made anew, or cut, is another place."""

    topic_id: UUID
    partition: int
    leader_epoch: int


class OpenedBatch(NamedTuple):
    first: int
    end: int
    messages: dict[int, StoredMessage]
    """By offset."""
    size: int
    """The bytes of its messages, about."""
    stored: tuple[int, int]
    """Base offset and bytes of the batch as it is stored, of which this may be but a window."""

    @property
    def message_count(self) -> int:
        return len(self.messages)


class Keepable(Protocol):
    """What was made of a batch: which offsets it stands for, how many messages, and how many bytes."""

    @property
    def first(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def message_count(self) -> int: ...

    @property
    def size(self) -> int: ...


B = TypeVar("B", bound=Keepable)


class OpenedBatches(Generic[B]):
    """The last opened batch of each partition that is worth keeping."""

    def __init__(self) -> None:
        self._batches: OrderedDict[LogPlace, B] = OrderedDict()
        self._count = self._size = 0

    def find(self, place: LogPlace, offset: int) -> B | None:
        """The opened batch that holds an offset, if it is here."""
        batch = self._batches.get(place)
        if batch is None or not batch.first <= offset < batch.end:
            return None
        self._batches.move_to_end(place)
        return batch

    def keep(self, place: LogPlace, batch: B) -> None:
        if place in self._batches:
            self._forget(place)
        self._batches[place] = batch
        self._count += batch.message_count
        self._size += batch.size
        while (self._count > _MESSAGES_MAX or self._size > _BYTES_MAX) and len(self._batches) > 1:
            self._forget(next(iter(self._batches)))

    def _forget(self, place: LogPlace) -> None:
        batch = self._batches.pop(place)
        self._count -= batch.message_count
        self._size -= batch.size
