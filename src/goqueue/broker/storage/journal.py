"""A journal: the events of one machine in a partition of its own, such as `__metadata`.

An event is applied when it is written and answered for when it is on the disk. After a restart the
journal is read back through the same `apply`. When it has grown long, the whole state is written
anew behind a reset, and what came before is given up.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, Protocol, TypeVar

from goqueue.broker.storage.event_codec import EventCodec
from goqueue.broker.storage.partition import Partition
from goqueue.log.partition_log import CheckedBatch
from goqueue.log.reading import from_disk
from goqueue.model.messages import Message, StoredMessage
from goqueue.model.settings import UNLIMITED, TopicSettings
from goqueue.records.batch import encode, open_batch
from goqueue.records.layout import read_header

logger = logging.getLogger(__name__)

JOURNAL_SETTINGS = TopicSettings(retention_ms=UNLIMITED)
"""A journal gives up nothing for its age: it is written anew when it has grown long."""
EVENTS_MAX = 10_000
_READ_BYTES = 1024 * 1024
_STATE_SHARE = 100
"""So many events of the state are made ready between two pauses, in about a millisecond."""
_TRIES_MAX = 3
"""So often that is tried. A journal that is written all the time is shortened all the same."""
E = TypeVar("E")


class Machine(Protocol[E]):
    """What a journal asks of a machine."""

    def apply(self, event: E) -> None: ...
    def whole_state(self) -> Iterable[E]: ...


class Journal(Generic[E]):
    def __init__(self, partition: Partition, machine: Machine[E], events: EventCodec[E]) -> None:
        self.partition = partition
        self._machine = machine
        self._events = events
        self._event_count = 0

    def replay(self) -> None:
        """Read everything back. Waits for the disk."""
        log = self.partition.log
        offset = log.start_offset
        while offset < log.end_offset:
            chunk = log.read(offset, _READ_BYTES, end_offset=log.end_offset, read_bytes=from_disk)
            for body, lane in zip(chunk.batches, chunk.lanes, strict=True):
                for message in open_batch(body, lane):
                    self._replay_one(message)
                    self._event_count += 1
            offset = chunk.end_offset

    def _replay_one(self, message: StoredMessage) -> None:
        try:
            self._restore(self._events.decode(message.value or b""), message.timestamp_ms)
        except (LookupError, ValueError, AssertionError) as error:
            # Of a journal that was repaired some events are gone, and what built upon them has no ground.
            if not self.partition.log.gaps:
                raise
            logger.error(
                "event_skipped journal=%s offset=%d reason=%r", self.partition.source, message.offset, error
            )

    def _restore(self, event: E, written_ms: int) -> None:
        """Apply what an earlier life has written, at that time."""
        self._machine.apply(event)

    async def commit(self, *events: E) -> None:
        """Write, apply, and return when the disk has it. Nothing is applied when the write fails."""
        waiter = self.write(*events)
        if waiter is not None:
            await waiter

    def write(self, *events: E) -> "asyncio.Future[None] | None":
        self.note(*events)
        return self.partition.committed(self.partition.log.end_offset)

    def note(self, *events: E) -> None:
        """Write and apply without asking the disk to hurry: a power failure may take it, a crash does not."""
        self._append(events)
        for event in events:
            self._machine.apply(event)

    @property
    def event_count(self) -> int:
        """How many events there are since the state was last written whole."""
        return self._event_count

    @property
    def is_long(self) -> bool:
        """Whether it is worth while to write the state anew."""
        return self._event_count > EVENTS_MAX

    async def shorten(self) -> None:
        """Write the state anew if the journal has become long."""
        if not self.is_long:
            return
        state = await self._state_in_slices() or list(self._encoded_state())
        log = self.partition.log
        log.roll()
        state_offset = log.end_offset
        self._event_count = 0
        self._append_encoded(state)
        waiter = self.partition.committed(log.end_offset)
        if waiter is not None:
            await waiter
        log.move_start(state_offset)
        await self.partition.save_recovery_point()

    async def _state_in_slices(self) -> list[CheckedBatch]:
        """The state as it is when this returns: made ready again from the start if it changes meanwhile.

        Nothing where it does so all the time: who asked then takes it in one step, which holds the loop.
        """
        for _ in range(_TRIES_MAX):
            slices = self.partition.slices()
            end_offset = self.partition.log.end_offset
            state: list[CheckedBatch] = []
            for batch in self._encoded_state():
                state.append(batch)
                await slices.pause()
                if self.partition.log.end_offset != end_offset:
                    break  # an event has changed what is being walked through
            else:
                return state
        return []

    def _encoded_state(self) -> Iterator[CheckedBatch]:
        """A share at a time. All of it has the time of the first share, which its deadlines refer to."""
        now_ms = self.partition.now_ms()
        events = iter(self._machine.whole_state())
        while share := list(islice(events, _STATE_SHARE)):
            yield from self._encoded(share, now_ms=now_ms)

    def _encoded(self, events: Iterable[E], *, now_ms: int) -> list[CheckedBatch]:
        messages = [Message(self._events.encode(event)) for event in events]
        return [CheckedBatch(read_header(body), body, lane) for body, lane in encode(messages, now_ms=now_ms)]

    def _append(self, events: Iterable[E]) -> None:
        self._append_encoded(self._encoded(events, now_ms=self.partition.now_ms()))

    def _append_encoded(self, batches: Sequence[CheckedBatch]) -> None:
        self.partition.append(batches)
        for header, _, _ in batches:
            self._event_count += header.record_count
