"""A journal: what one machine must remember, in a partition of its own, such as `__metadata`.

There is one way to write it, `submit`, and one rule. Events are applied when they are submitted, so that the
next decision builds on them, and are answered for when they are committed. Whoever tells somebody outside of
them waits for that; whoever does not, need not. After a restart, and where another takes over, the journal is
read back through the same steps.
"""

import asyncio
import logging
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from goqueue.broker.storage.partition import Partition
from goqueue.log.partition_log import CheckedBatch
from goqueue.log.reading import from_disk
from goqueue.model.errors import Corrupt, NotCoordinator, OffsetOutOfRange
from goqueue.model.messages import StoredMessage
from goqueue.model.settings import UNLIMITED, TopicSettings
from goqueue.model.transactions import Isolation
from goqueue.records.batch import LaneBatch, open_batch
from goqueue.records.layout import read_header

logger = logging.getLogger(__name__)

JOURNAL_SETTINGS = TopicSettings(retention_ms=UNLIMITED)
"""A journal gives up nothing for its age: each kind knows when it is too long, and makes itself shorter."""
_REPLAY_BYTES = 1024 * 1024
_READ_BYTES = 64 * 1024
_CLOSE_OFFSETS = 200
"""Events that lie no further from each other are read together."""
E = TypeVar("E")


class Codec(Protocol[E]):
    """How events stand in the records of a journal, one in each."""

    def encode_all(self, events: Sequence[E], *, now_ms: int) -> list[LaneBatch]: ...
    def decode_record(self, stored: StoredMessage) -> E: ...


class Submitted:
    """Events that hold from now on, but that a power failure can take back until they are committed.

    Await it to be sure. Whoever waits for several journals asks `committed` of each before it waits for the
    first, so that they share a round of the disk. Left alone, events go with the next round that somebody
    asks for, at the latest after the flush interval.
    """

    __slots__ = ("_partition", "base_offset", "end_offset")

    def __init__(self, partition: Partition, base_offset: int, end_offset: int) -> None:
        self._partition = partition
        self.base_offset = base_offset
        self.end_offset = end_offset

    def committed(self) -> "asyncio.Future[None] | None":
        """Done when they are committed, which is asked for now; None when they are already."""
        return self._partition.committed(self.end_offset)

    def hurry(self) -> None:
        """Ask for it now, and wait for nothing."""
        self._partition.hurry()

    def __await__(self) -> Generator[Any, None, None]:
        waiter = self.committed()
        if waiter is not None:
            yield from waiter


class Journal(Generic[E]):
    """What all kinds of journals share. A kind says how an event is applied, and how it gets shorter."""

    def __init__(self, partition: Partition, codec: Codec[E]) -> None:
        self.partition = partition
        self._codec = codec
        self._is_retired = False

    @property
    def end_offset(self) -> int:
        """Where the next event will stand."""
        return self.partition.log.end_offset

    @property
    def commit_mark(self) -> int:
        """What was submitted before it cannot be taken back. Raises when the disk has failed the journal."""
        return self.partition.end_for(Isolation.UNCOMMITTED)

    def submit(self, *events: E) -> Submitted:
        """Write events and apply them, all or none; what is returned is answered when they are committed.

        Without events it is answered when all is committed that was submitted before: what an answer from the
        state alone has to wait for, since somebody may have changed that a moment ago.
        """
        if not events:
            self.admit()
            end_offset = self.partition.log.end_offset
            return Submitted(self.partition, end_offset, end_offset)
        now_ms = self.partition.now_ms()
        submitted = self._append(self._encoded(events, now_ms=now_ms))
        for offset, event in enumerate(events, submitted.base_offset):
            self._apply(event, offset, now_ms)
        return submitted

    def retire(self) -> None:
        """Another is read from the same partition, or will be: what is decided on this one counts no more.

        Its node may lead the partition again by then, and would write what the other has not heard of.
        """
        self._is_retired = True

    def replay(self) -> None:
        """Read everything back. Waits for the disk."""
        self._replay(self.partition.log.start_offset)

    def read(self, offsets: Sequence[int]) -> dict[int, E]:
        """The events at these offsets, which rise; without those that are gone. Waits for the disk."""
        found: dict[int, E] = {}
        wanted = set(offsets)
        next_offset = -1
        for at, offset in enumerate(offsets):
            if offset < next_offset:
                continue
            is_near = at + 1 < len(offsets) and offsets[at + 1] - offset < _CLOSE_OFFSETS
            try:
                records, next_offset = self._records(offset, _READ_BYTES if is_near else 1)
            except OffsetOutOfRange:
                continue  # the journal has become shorter since
            except Corrupt as error:
                logger.error(
                    "event_lost journal=%s offset=%d reason=%s", self.partition.source, offset, error
                )
                continue
            found.update(
                (stored.offset, self._codec.decode_record(stored))
                for stored in records
                if stored.offset in wanted
            )
        return found

    async def drop_before(self, offset: int) -> None:
        """Give up what lies before an offset; returns when a start would not find it either."""
        self.partition.log.move_start(offset)
        await self.partition.save_recovery_point()

    def _apply(self, event: E, offset: int, now_ms: int) -> None:
        """Apply what was just written."""
        raise NotImplementedError

    def _restore(self, event: E, offset: int, written_ms: int) -> None:
        """Apply what an earlier life has written, at that time."""
        raise NotImplementedError

    def _replay(self, offset: int) -> None:
        log = self.partition.log
        while offset < log.end_offset:
            records, end_offset = self._records(offset, _REPLAY_BYTES)
            for stored in records:
                if stored.offset >= offset:
                    self._replay_one(stored)
            offset = end_offset

    def _replay_one(self, stored: StoredMessage) -> None:
        try:
            self._restore(self._codec.decode_record(stored), stored.offset, stored.timestamp_ms)
        except (LookupError, ValueError, AssertionError) as error:
            # Of a journal that was repaired some events are gone, and what built upon them has no ground.
            if not self.partition.log.gaps:
                raise
            logger.error(
                "event_skipped journal=%s offset=%d reason=%r", self.partition.source, stored.offset, error
            )

    def _records(self, offset: int, max_bytes: int) -> tuple[Iterator[StoredMessage], int]:
        """What stands at an offset and behind it, beginning with its whole batch, and where that ends."""
        log = self.partition.log
        chunk = log.read(offset, max_bytes, end_offset=log.end_offset, read_bytes=from_disk)
        opened = (
            stored
            for body, lane in zip(chunk.batches, chunk.lanes, strict=True)
            for stored in open_batch(body, lane)
        )
        return opened, chunk.end_offset

    def _append(self, batches: Sequence[CheckedBatch]) -> Submitted:
        self.admit()
        base_offset = self.partition.append(batches)
        return Submitted(self.partition, base_offset, self.partition.log.end_offset)

    def admit(self) -> None:
        """Raises NotCoordinator when it is retired: what its machine says counts no more."""
        if self._is_retired:
            raise NotCoordinator(f"another serves {self.partition.source} by now")

    def _encoded(self, events: Sequence[E], *, now_ms: int) -> list[CheckedBatch]:
        built = self._codec.encode_all(events, now_ms=now_ms)
        return [CheckedBatch(read_header(body), body, lane) for body, lane in built]
