"""What verbs that only read ask of a partition: so little that one on another node can stand in its place.

Marks and ends are numbers at hand. What waits, for the disk or for another node, is a method of the log, and
is called from a thread; `read` with `from_memory` says NotCached where it would have to wait. Nothing here
writes, and nothing tells who leads the partition or where its bytes lie.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from goqueue.broker.storage.waiters import ReadWaiter
from goqueue.core.access.account import Account
from goqueue.core.telemetry.counters import TopicCounters
from goqueue.log.reading import ANY_SIZE, Chunk, NotCached, ReadBytes
from goqueue.model.errors import Corrupt
from goqueue.model.ids import TopicPartition
from goqueue.model.transactions import Isolation, OpenInPartition


class ReadElsewhere(NotCached):
    """What is wanted is at another node: `fetch` it, which waits on the loop and in no thread."""

    def __init__(self, fetch: Callable[[], Awaitable[Chunk]]) -> None:
        super().__init__()
        self.fetch = fetch


class AbortedRuns(Protocol):
    """What was taken back in a log."""

    def __len__(self) -> int: ...

    def between(self, first_offset: int, end_offset: int) -> Sequence[tuple[int, int]]:
        """(producer id, first offset) of those with messages in a range, by their first offsets."""


class ReadableLog(Protocol):
    """The batches of a partition."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int:
        """Behind what is written, be it committed or not."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def aborted(self) -> AbortedRuns: ...

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        end_offset: int,
        read_bytes: ReadBytes,
        framed: bool = False,
        first_bytes_max: int = ANY_SIZE,
    ) -> Chunk:
        """Batches from the one that holds `offset` on, at least one, up to `max_bytes`.

        None when the first of them is larger than `first_bytes_max`.
        """

    def find_time(self, timestamp_ms: int, *, from_offset: int, read_bytes: ReadBytes) -> Chunk | None:
        """The first batch, from an offset on, that has a message of that time or later; or None."""

    def newest_time(self, *, end_offset: int, read_bytes: ReadBytes) -> int:
        """The largest timestamp of the messages before an offset; -1 when there are none."""

    def split(self, from_offset: int, until_offset: int, *, piece_bytes: int) -> list[int]:
        """Offsets between the two at which batches begin, about so many bytes apart."""

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The last epoch not above the one asked for, and the offset where it ended; (-1, -1): none known."""


class Readable(Protocol):
    """A partition that can be read."""

    @property
    def source(self) -> TopicPartition: ...

    @property
    def log(self) -> ReadableLog:
        """Raises what whoever asks is to hear when it cannot be read now."""

    @property
    def leader_epoch(self) -> int: ...

    @property
    def commit_mark(self) -> int:
        """What lies before it is safe, and is all that readers see."""

    @property
    def last_stable_offset(self) -> int:
        """Before it every transaction is decided."""

    @property
    def oldest_transaction(self) -> OpenInPartition | None:
        """The one that holds back readers of committed messages, if any does."""

    @property
    def has_hidden(self) -> bool:
        """Whether something is written that readers do not see yet."""

    @property
    def account(self) -> Account | None:
        """The tenant that owns the topic, if one does."""

    @property
    def counters(self) -> TopicCounters: ...

    def admit_read(self) -> None:
        """Raises NotLeader where others lead it: who wants the newest asks there."""

    def admit_near_read(self) -> None:
        """Raises NotLeader where it is neither led nor in sync: a copy may hear of the newest a bit later."""

    def admit_look_up(self) -> None:
        """Raises OffsetNotAvailable where a new leader does not know yet how far messages count."""

    def found_bad(self, error: Corrupt) -> None:
        """Who reads has met bytes that are not what was written: one of several copies is made anew."""

    def end_for(self, isolation: Isolation) -> int:
        """The offset before which a reader may see messages."""

    def commit_written(self) -> "asyncio.Future[None] | None":
        """Done when all that is written by now can be seen; None when it can already."""

    def hurry(self) -> None:
        """Somebody reads at the end: what is written is committed now, not at leisure."""

    def add_reader(self, reader: ReadWaiter) -> None:
        """Have somebody told of what comes from now on, by this partition itself (`ReadWaiter.offer`)."""

    def drop_reader(self, reader: ReadWaiter) -> None:
        """It waits no longer."""
