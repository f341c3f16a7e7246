"""A journal whose machine has a state small enough to be written whole, such as the groups.

When it has grown long, the whole state is written anew behind a reset, and what came before is given up.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Protocol

from goqueue.broker.storage.journal import Codec, E, Journal
from goqueue.broker.storage.partition import Partition
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.settings import MiB

EVENTS_MAX = 10_000
"""A journal of more events is long, unless the state itself takes so many."""
_BYTES_MAX = 4 * MiB
"""So is one of more bytes: events may be few and large."""
_STATE_FACTOR = 4
"""A journal is not written anew before it is so many times as long as the state that it leaves."""
_STATE_SHARE = 100
"""So many events of the state are made ready between two pauses, in about a millisecond."""
_TRIES_MAX = 3
"""So often that is tried. A journal that is written all the time is shortened all the same."""


class Machine(Protocol[E]):
    """What such a journal asks of a machine."""

    def apply(self, event: E) -> None: ...
    def whole_state(self) -> Iterable[E]: ...


class StateJournal(Journal[E]):
    def __init__(self, partition: Partition, machine: Machine[E], codec: Codec[E]) -> None:
        super().__init__(partition, codec)
        self._machine = machine
        self._state_offset = 0
        self._state_count = 0
        self._state_bytes = 0

    def _apply(self, event: E, offset: int, now_ms: int) -> None:
        self._machine.apply(event)

    def _restore(self, event: E, offset: int, written_ms: int) -> None:
        self._machine.apply(event)

    @property
    def event_count(self) -> int:
        """How many events there are since the state was last written whole."""
        log = self.partition.log
        return log.end_offset - max(log.start_offset, self._state_offset)

    @property
    def is_long(self) -> bool:
        """Whether it is worth while to write the state anew, in proportion to what that would leave."""
        count_max = max(EVENTS_MAX, _STATE_FACTOR * self._state_count)
        bytes_max = max(_BYTES_MAX, _STATE_FACTOR * self._state_bytes)
        return self.event_count > count_max or self.partition.log.size_bytes > bytes_max

    async def shorten(self) -> None:
        """Write the state anew if the journal has become long."""
        if not self.is_long:
            return
        state = await self._state_in_slices() or list(self._encoded_state())
        self.partition.log.roll()
        written = self._append(state)
        self._state_offset = written.base_offset
        self._state_count = written.end_offset - written.base_offset
        await written
        await self.drop_before(written.base_offset)
        self._state_bytes = self.partition.log.size_bytes

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
