"""A journal: the events of one machine in a partition of its own, such as `__metadata`.

There is one way to write it, `submit`, and one rule. Events are applied when they are submitted, so that the
next decision builds on them, and are answered for when they are committed. Whoever tells somebody outside of
them waits for that; whoever does not, need not. After a restart the journal is read back through the same
`apply`. When it has grown long, the whole state is written anew behind a reset, and what came before is given
up.
"""

import asyncio
import logging
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from goqueue.broker.storage.event_codec import EventCodec
from goqueue.broker.storage.partition import Partition
from goqueue.log.partition_log import CheckedBatch
from goqueue.log.reading import from_disk
from goqueue.model.messages import Message, StoredMessage
from goqueue.model.settings import UNLIMITED, MiB, TopicSettings
from goqueue.records.batch import encode, open_batch
from goqueue.records.layout import read_header

logger = logging.getLogger(__name__)

JOURNAL_SETTINGS = TopicSettings(retention_ms=UNLIMITED)
"""A journal gives up nothing for its age: it is written anew when it has grown long."""
EVENTS_MAX = 10_000
"""A journal of more events is long, unless the state itself takes so many."""
_BYTES_MAX = 4 * MiB
"""So is one of more bytes: events may be few and large."""
_STATE_FACTOR = 4
"""A journal is not written anew before it is so many times as long as the state that it leaves."""
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


class Submitted:
    """Events that hold from now on, but that a power failure can take back until they are committed.

    Await it to be sure. Whoever waits for several journals asks `committed` of each before it waits for the
    first, so that they share a round of the disk. Left alone, events go with the next round that somebody
    asks for, at the latest after the flush interval.
    """

    __slots__ = ("_partition", "end_offset")

    def __init__(self, partition: Partition, end_offset: int) -> None:
        self._partition = partition
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
    def __init__(self, partition: Partition, machine: Machine[E], events: EventCodec[E]) -> None:
        self.partition = partition
        self._machine = machine
        self._events = events
        self._event_count = 0
        self._state_count = 0
        self._state_bytes = 0

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

    def submit(self, *events: E) -> Submitted:
        """Write events and apply them, all or none; what is returned is answered when they are committed.

        Without events it is answered when all is committed that was submitted before: what an answer from the
        state alone has to wait for, since somebody may have changed that a moment ago.
        """
        if not events:
            return Submitted(self.partition, self.partition.log.end_offset)
        partition, count = self.partition, len(events)
        base_offset = partition.append(self._encoded(events, now_ms=partition.now_ms()))
        self._event_count += count
        for event in events:
            self._apply(event)
        return Submitted(partition, base_offset + count)

    def _apply(self, event: E) -> None:
        """Apply what was just written."""
        self._machine.apply(event)

    @property
    def event_count(self) -> int:
        """How many events there are since the state was last written whole."""
        return self._event_count

    @property
    def is_long(self) -> bool:
        """Whether it is worth while to write the state anew, in proportion to what that would leave."""
        count_max = max(EVENTS_MAX, _STATE_FACTOR * self._state_count)
        bytes_max = max(_BYTES_MAX, _STATE_FACTOR * self._state_bytes)
        return self._event_count > count_max or self.partition.log.size_bytes > bytes_max

    async def shorten(self) -> None:
        """Write the state anew if the journal has become long."""
        if not self.is_long:
            return
        state = await self._state_in_slices() or list(self._encoded_state())
        log = self.partition.log
        log.roll()
        state_offset = log.end_offset
        self.partition.append(state)
        self._event_count = self._state_count = log.end_offset - state_offset
        await Submitted(self.partition, log.end_offset)
        log.move_start(state_offset)
        await self.partition.save_recovery_point()
        self._state_bytes = log.size_bytes

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
