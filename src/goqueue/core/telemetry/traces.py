"""Traces as they are recorded: events, each about a run of offsets, in a ring that forgets the oldest.

Recording opens nothing and makes one tuple a batch. An event holds numbers and texts only, so that Python's
collector passes over it. Of every N offsets of a partition one is sampled, always the same ones, and a run
is recorded if it holds one of them: then all that is told of a sampled message is there.
"""

from collections import deque
from itertools import islice
from typing import Final, NamedTuple
from zlib import crc32

from goqueue.model.ids import TopicPartition

Event = tuple[int, str, int, int, int, str, str, int | str]
"""Wall time in µs, kind, place, first offset, end offset, group, consumer, and one thing more by kind."""


class Kind:
    """What happened, in a word. Plain texts: the collector would have to follow the members of an enum."""

    STORED: Final = "stored"  # size in bytes
    FLUSHED: Final = "flushed"
    READ: Final = "read"  # size in bytes; the consumer is the client id
    LEASED: Final = "leased"  # until when, ms
    ACKED: Final = "acked"
    NACKED: Final = "nacked"  # when it may go out again, ms
    REJECTED: Final = "rejected"  # why
    EXTENDED: Final = "extended"  # until when, ms
    EXPIRED: Final = "expired"
    OUTDATED: Final = "outdated"
    PASSED_OVER: Final = "passed_over"  # why
    DEAD_LETTERED: Final = "dead_lettered"  # where to, topic/partition@offset
    REDRIVEN: Final = "redriven"  # where to
    # The topic it goes to. The place is that of delayed messages, by number; the place that it goes to stands
    # in the consumer's stead, so that a topic that is made anew is told from the old one.
    POSTPONED: Final = "postponed"
    CANCELLED: Final = "cancelled"  # the same
    DUE: Final = "due"  # the number of the first; the others follow it
    REFUSED: Final = "refused"  # why; the group is the error's code, there is no offset


class Sampling(NamedTuple):
    """Which offsets of a partition are sampled: those that leave `phase` when divided by `every`."""

    every: int
    """0: none."""
    phase: int

    def offsets(self, first: int, end: int, *, thinned: int = 1) -> range:
        """Those of a run; with `thinned` only each so many-th of them, again always the same ones."""
        if not self.every:
            return range(0)
        every = self.every * thinned
        return range(first + (self.phase - first) % every, end, every)

    def holds(self, offset: int) -> bool:
        return bool(self.every) and offset % self.every == self.phase % self.every


def sampling_of(source: TopicPartition, rate: float) -> Sampling:
    """One of so many offsets that the rate comes out, as far as whole numbers allow."""
    every = round(1 / rate) if rate > 0 else 0
    return Sampling(every, crc32(str(source).encode()))


class Drained(NamedTuple):
    """Events from a running number on."""

    events: list[Event]
    next_number: int
    missed: int
    """How many the ring had forgotten before they were read."""


class Traces:
    def __init__(self, events_max: int) -> None:
        self.events_max = events_max
        self.recorded = 0
        """How many events there have been; the next has this running number."""
        self._ring: deque[Event] = deque(maxlen=events_max)
        self._sources: dict[int, tuple[TopicPartition, Sampling]] = {}
        self._next_place = 0

    def __len__(self) -> int:
        return len(self._ring)

    def add_place(self, source: TopicPartition, sampling: Sampling) -> int:
        """A partition by a number. A topic that is made anew is another place."""
        place = self._next_place
        self._next_place += 1
        self._sources[place] = (source, sampling)
        return place

    def change_sampling(self, place: int, sampling: Sampling) -> None:
        self._sources[place] = (self._sources[place][0], sampling)

    def forget_place(self, place: int) -> None:
        """Its topic is gone, and with it what the events told of."""
        self._sources.pop(place, None)

    def source_of(self, place: int) -> TopicPartition | None:
        """The partition an event is about; None when it is gone."""
        known = self._sources.get(place)
        return None if known is None else known[0]

    def places(self) -> dict[int, tuple[TopicPartition, Sampling]]:
        return dict(self._sources)

    def sampled(self, place: int, first: int, end: int, *, thinned: int = 1) -> range:
        """The sampled offsets of a run; none of a partition that is gone."""
        known = self._sources.get(place)
        return range(0) if known is None else known[1].offsets(first, end, thinned=thinned)

    def record(self, event: Event) -> None:
        self._ring.append(event)
        self.recorded += 1

    def after(self, number: int, limit: int) -> Drained:
        """Events from a running number on, at most so many. Whoever reads them calls now and then."""
        oldest = self.recorded - len(self._ring)
        first = max(number, oldest)
        count = min(self.recorded - first, limit)
        behind = self.recorded - first - count
        # From the near end: a reader that keeps up does not walk the whole ring.
        events = list(islice(reversed(self._ring), behind, behind + count))
        events.reverse()
        return Drained(events, first + count, first - number)

    def at(self, number: int) -> Event | None:
        """The event of a running number, if the ring still holds it."""
        index = number - self.recorded + len(self._ring)
        return self._ring[index] if 0 <= index < len(self._ring) else None

    def snapshot(self) -> list[Event]:
        """All events, oldest first, for whoever looks through them elsewhere."""
        return list(self._ring)
