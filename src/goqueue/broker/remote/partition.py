"""A partition that other nodes hold, for verbs that only read: see `Readable`.

Its marks are what its leader told last. What lies before them is committed whoever leads, and within an epoch
they only grow: an old word of them hides messages for a while, and never shows wrong ones. While nothing is
known it refuses, and asks. No thread ever waits for another node: what is not at hand is fetched on the loop.
"""

import asyncio
from collections.abc import Sequence
from typing import NoReturn, Protocol
from uuid import UUID

from goqueue.broker.remote.chunks import FetchedChunks
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.readable import ReadElsewhere
from goqueue.broker.storage.waiters import ReadWaiter, tell_in_turn
from goqueue.core.access.account import Account
from goqueue.core.telemetry.counters import TopicCounters
from goqueue.log.reading import ANY_SIZE, Chunk, ReadBytes
from goqueue.model.commands import BatchesRead
from goqueue.model.errors import Corrupt, GoQueueError, NotLeader, OffsetNotAvailable, OffsetOutOfRange
from goqueue.model.ids import TopicPartition
from goqueue.model.marks import Marks, MarksKnown
from goqueue.model.settings import MiB
from goqueue.model.transactions import Isolation, OpenInPartition

FETCH_BYTES_MAX = MiB
"""So much is carried over at once, if no batch is larger."""
_MUCH_BYTES = 1 << 62
"""What news are worth to those who wait: how many bytes have come is not told."""


class Leaders(Protocol):
    """Who asks the leaders of partitions: see `Remotes`."""

    def watch(self, partition: "RemotePartition") -> None:
        """Have it told what is new, from now on."""

    def ask(self, partition: "RemotePartition") -> "asyncio.Future[None]":
        """Done when it was told all that is written by now, or its leader did not answer."""

    async def read(self, partition: "RemotePartition", offset: int, max_bytes: int) -> BatchesRead:
        """Batches from its leader."""


class NothingAborted:
    """What was taken back is left out by whoever sends batches."""

    def __len__(self) -> int:
        return 0

    def between(self, first_offset: int, end_offset: int) -> Sequence[tuple[int, int]]:
        return ()


class RemotePartition:
    def __init__(self, place: Partition, leaders: Leaders, fetched: FetchedChunks) -> None:
        self.place = place
        """Where it stands in its topic: what this node knows of it without asking."""
        self.source: TopicPartition = place.source
        self.topic_id: UUID = place.topic_id
        self.marks: Marks | None = None
        self.trouble: GoQueueError | None = None
        """Why its leader could not tell, the last time it was asked."""
        self.is_wanted = False
        """Whether somebody has looked at it lately, so that its marks are kept fresh."""
        self.readers: dict[ReadWaiter, None] = {}
        self._leaders = leaders
        self._log = RemoteLog(self, leaders, fetched)

    @property
    def log(self) -> "RemoteLog":
        self.known()
        return self._log

    @property
    def leader_epoch(self) -> int:
        return self.known().leader_epoch

    @property
    def commit_mark(self) -> int:
        return self.known().commit_mark

    @property
    def last_stable_offset(self) -> int:
        return self.known().last_stable_offset

    @property
    def oldest_transaction(self) -> OpenInPartition | None:
        return self.known().oldest_transaction

    @property
    def has_hidden(self) -> bool:
        """There may always be something that was not told yet."""
        return True

    @property
    def account(self) -> Account | None:
        return self.place.account

    @property
    def counters(self) -> TopicCounters:
        return self.place.counters

    def admit_read(self) -> None:
        raise NotLeader(*self.source)

    def found_bad(self, error: Corrupt) -> None:
        """Whoever leads it finds that, too."""

    def admit_near_read(self) -> None:
        raise NotLeader(*self.source)

    def admit_look_up(self) -> None:
        raise NotLeader(*self.source)

    def end_for(self, isolation: Isolation) -> int:
        marks = self.known()
        return marks.last_stable_offset if isolation is Isolation.COMMITTED else marks.commit_mark

    def commit_written(self) -> "asyncio.Future[None]":
        return self._leaders.ask(self)

    def hurry(self) -> None:
        """Whoever waits is told by its leader, who hurries then."""

    def add_reader(self, reader: ReadWaiter) -> None:
        self.readers[reader] = None
        self._watch()

    def drop_reader(self, reader: ReadWaiter) -> None:
        self.readers.pop(reader, None)

    def known(self) -> Marks:
        """What its leader told last. Raises why it has not told anything yet."""
        self._watch()
        if self.marks is None:
            raise OffsetNotAvailable(*self.source) if self.trouble is None else self.trouble
        return self.marks

    def as_known(self) -> MarksKnown:
        marks = self.marks
        if marks is None:
            return MarksKnown(self.source, self.topic_id)
        heard = marks.leader_epoch, marks.commit_mark, marks.last_stable_offset
        return MarksKnown(self.source, self.topic_id, *heard)

    def take(self, marks: Marks) -> None:
        """Its leader has told. Answers overtake each other: what is older than what is known is dropped."""
        before = self.marks
        self.trouble = None
        if before is not None and _place_of(marks) < _place_of(before):
            return
        self.marks = marks
        if before is not None and before.leader_epoch != marks.leader_epoch:
            self._log.forget()
        if before is None or before.last_stable_offset != marks.last_stable_offset:
            tell_in_turn(self.readers, lambda reader: reader.offer(_MUCH_BYTES, self))

    def refuse(self, error: GoQueueError) -> None:
        """Nobody could tell."""
        self.trouble = error.with_traceback(None)

    def let_go(self) -> None:
        """It is read in another way from now on: who waits looks again."""
        self._log.forget()
        tell_in_turn(self.readers, ReadWaiter.wake)

    def _watch(self) -> None:
        if not self.is_wanted:
            self.is_wanted = True
            self._leaders.watch(self)


def _place_of(marks: Marks) -> tuple[int, int]:
    return marks.leader_epoch, marks.commit_mark


class RemoteLog:
    """Its batches: those at hand, and the way to the others."""

    def __init__(self, partition: RemotePartition, leaders: Leaders, fetched: FetchedChunks) -> None:
        self._partition = partition
        self._leaders = leaders
        self._fetched = fetched
        self.aborted = NothingAborted()

    @property
    def start_offset(self) -> int:
        return self._partition.known().start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.known().commit_mark

    @property
    def size_bytes(self) -> int:
        return self._partition.known().size_bytes

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
        """What is at hand. Raises ReadElsewhere, with which it can be fetched."""
        if framed:
            self._refuse()
        if not self.start_offset <= offset <= end_offset:
            raise OffsetOutOfRange(offset, start_offset=self.start_offset, end_offset=end_offset)
        chunk = self._fetched.find(self, offset, max_bytes)
        if chunk is None:
            raise ReadElsewhere(lambda: self._fetch(offset, max_bytes))
        return chunk

    async def _fetch(self, offset: int, max_bytes: int) -> Chunk:
        partition = self._partition
        try:
            read = await self._leaders.read(partition, offset, min(max_bytes, FETCH_BYTES_MAX))
        except OffsetOutOfRange as error:
            marks = partition.known()
            if error.start_offset > marks.start_offset:  # retention has passed by
                partition.take(marks._replace(start_offset=error.start_offset))
            raise
        marks = partition.known()
        if read.start_offset > marks.start_offset:
            partition.take(marks._replace(start_offset=read.start_offset))
        batches = [memoryview(body) for body in read.batches]
        chunk = Chunk(batches, list(read.lanes), read.size, read.end_offset)
        self._fetched.keep(self, offset, chunk)
        return self._fetched.find(self, offset, max_bytes) or chunk

    def forget(self) -> None:
        self._fetched.forget(self)

    def find_time(self, timestamp_ms: int, *, from_offset: int, read_bytes: ReadBytes) -> Chunk | None:
        self._refuse()

    def newest_time(self, *, end_offset: int, read_bytes: ReadBytes) -> int:
        self._refuse()

    def split(self, from_offset: int, until_offset: int, *, piece_bytes: int) -> list[int]:
        self._refuse()

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        """Look-ups are run where the partition is led."""
        raise NotLeader(*self._partition.source)
