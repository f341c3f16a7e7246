"""What the simulation remembers of a partition: what was given, where it was put, and what was promised.

Every message of a simulation has a value of its own, so a message that a read shows can be traced to the
one attempt that gave it. A message is *promised* when its loss would break the broker's word: it was
acknowledged with acks=all, or with acks=leader longer ago than the flush interval, or it lies before one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message, StoredMessage

FRAMING_BYTES_MAX = 200
"""More than the framing of one message alone in its batch can take."""


class Violation(AssertionError):
    """The broker broke its word."""


def demand(condition: bool, problem: str) -> None:
    """State a rule of the simulation."""
    if not condition:
        raise Violation(problem)


@dataclass(slots=True)
class Attempt:
    """A message on its way in, or in."""

    message: Message
    given_ms: int
    """The wall clock when it was given; its timestamp when it named none."""
    places: set[tuple[int, int]] = field(default_factory=set)
    """(partition, offset) of every time it was said to be stored: more than once after a loss and a retry."""
    is_unplaced: bool = True
    """Somebody gave it and was never told where it went: it may be anywhere, or nowhere."""

    @property
    def timestamp_ms(self) -> int:
        return self.given_ms if self.message.timestamp_ms is None else self.message.timestamp_ms

    def is_shown_by(self, stored: StoredMessage) -> bool:
        given = self.message
        return (
            (stored.key, stored.value, stored.headers, stored.lane)
            == (given.key, given.value, given.headers, given.lane)
        ) and given.timestamp_ms in (None, stored.timestamp_ms)


@dataclass(slots=True)
class Entry:
    """What stands at an offset, as far as anyone was told."""

    value: bytes
    acks: Acks
    written_ns: int
    is_promised: bool = False


class Rot(NamedTuple):
    """A frame that a flipped bit has spoilt."""

    offsets: range
    may_be_cut: bool
    """Nothing vouches for the frame any more: recovery cannot tell it from a torn tail."""
    earlier_count: int = 0
    """How many messages were stored in the same step before it; they are cut with it."""


@dataclass(slots=True)
class Shown:
    """A whole partition, read from start to end."""

    start_offset: int
    end_offset: int
    messages: list[StoredMessage] = field(default_factory=list)
    corrupt_offsets: list[int] = field(default_factory=list)
    """Where a read was refused."""


class Given:
    """Everything that was ever given to one topic, and the shortest retention it ever had."""

    def __init__(self, topic: TopicName) -> None:
        self.topic = topic
        self.attempts: dict[bytes, Attempt] = {}
        self.retention_ms_min: int | None = None
        self.retention_bytes_min: int | None = None

    def add(self, messages: Iterable[Message], *, wall_ms: int) -> None:
        """Messages are about to be handed to the broker."""
        for message in messages:
            self.attempts.setdefault(value_of(message), Attempt(message, wall_ms)).is_unplaced = True


def name_of(value: bytes) -> str:
    """A message for people: its value begins with a number, and the rest is noise."""
    return f"message {value.split(b':')[0].decode(errors='replace')}"


def value_of(message: Message | StoredMessage) -> bytes:
    """What tells a message from all others."""
    return message.value or b""


class PartitionHistory:
    """One partition: what its log should show, what it may show, and what it must."""

    def __init__(self, given: Given, partition: int) -> None:
        self.given = given
        self.source = TopicPartition(given.topic, partition)
        self.entries: dict[int, Entry] = {}
        self.start_offset = 0
        self.deleted_before = 0
        """Clients have asked for everything below this offset to be deleted."""
        self.promised_end = 0
        self.promised_start = 0
        """The broker said that everything below this offset is deleted."""
        self.rotten: list[Rot] = []
        self.is_doubtful = False
        """An fsync has failed or will fail: what is not promised may go, and offsets may be given again."""

    @property
    def end_offset(self) -> int:
        """Behind everything anyone was told of."""
        return max(self.promised_end, *(offset + 1 for offset in self.entries), self.start_offset)

    def put(self, base_offset: int, messages: Sequence[Message], *, acks: Acks, now_ns: int) -> None:
        """The broker said that it stored messages here."""
        for offset, message in enumerate(messages, base_offset):
            attempt = self.given.attempts[value_of(message)]
            attempt.places.add((self.source.partition, offset))
            attempt.is_unplaced = False
            self._enter(offset, Entry(value_of(message), acks, now_ns))

    def promise(self, offsets: range) -> None:
        """The broker gave its word for these offsets and so, the log being in order, for all before them."""
        for offset, entry in self.entries.items():
            # After a failed fsync an older entry may be of a log that has been cut since.
            if offset in offsets or (offset < offsets.stop and not self.is_doubtful):
                entry.is_promised = True
        self.promised_end = max(self.promised_end, offsets.stop)

    def promise_flushed(self, *, written_before_ns: int) -> None:
        """acks=leader is a promise too, once the flush interval has passed."""
        flushed = [
            offset
            for offset, entry in self.entries.items()
            if entry.acks is not Acks.NONE and entry.written_ns <= written_before_ns
        ]
        if flushed and not self.is_doubtful:
            self.promise(range(max(flushed), max(flushed) + 1))

    def check_read(
        self, messages: Sequence[StoredMessage], *, start_offset: int, acks: Acks, now_ns: int
    ) -> None:
        """A read may show only what was given, at an offset it was given, and the same as before.

        No offset may be missing either, except before the start of the log as it is now.
        """
        for before, after in pairwise(messages):
            demand(
                after.offset == before.offset + 1 or before.offset < after.offset <= start_offset,
                f"{self.source}: offset {after.offset} follows {before.offset} in a read",
            )
        for stored in messages:
            self._check_given(stored)
            known = self.entries.get(stored.offset)
            if known is None or known.value != stored.value:
                self._enter(stored.offset, Entry(value_of(stored), acks, now_ns))

    def check_recovered(self, shown: Shown, *, wall_ms_max: int, now_ns: int) -> None:
        """After a restart: everything promised is there, nothing is made up, and no offset is missing."""
        where = f"{self.source} after a restart"
        if cut := self._explain_cut(shown):
            self.promised_end = min(self.promised_end, cut.offsets.start - cut.earlier_count)
        demand(
            shown.end_offset >= self.promised_end,
            f"{where}: the log ends at {shown.end_offset}, but {self.promised_end - 1} was promised",
        )
        demand(
            shown.start_offset >= min(self.promised_start, shown.end_offset),
            f"{where}: begins at {shown.start_offset}, but all before {self.promised_start} was deleted",
        )
        self._check_start(shown.start_offset, wall_ms_max=wall_ms_max)
        offsets = sorted([*(stored.offset for stored in shown.messages), *shown.corrupt_offsets])
        demand(
            offsets == list(range(shown.start_offset, shown.end_offset)),
            f"{where}: offsets {shown.start_offset} to {shown.end_offset} are not dense: {offsets}",
        )
        for offset in shown.corrupt_offsets:
            self.check_corrupt(offset)
        by_offset = {stored.offset: stored for stored in shown.messages}
        for offset, entry in self.entries.items():
            stored = by_offset.get(offset)
            if entry.is_promised and stored is not None and offset < self.promised_end:
                demand(
                    stored.value == entry.value,
                    f"{where}: offset {offset}: {name_of(entry.value)} became {name_of(value_of(stored))}",
                )
        self._adopt(shown, now_ns=now_ns)

    def check_corrupt(self, offset: int) -> None:
        """A read refused as corrupt must lie in a spoilt frame, or behind one that hides where it begins."""
        demand(
            self.is_doubtful or any(rot.offsets.start <= offset for rot in self.rotten),
            f"{self.source}: offset {offset} is said to be corrupt, but nothing has spoilt it",
        )

    def _enter(self, offset: int, entry: Entry) -> None:
        known = self.entries.get(offset)
        if known is not None and known.value == entry.value:
            return
        if known is not None:
            # Opened anew after a failed fsync, a log ends where the disk's last word was, or at a bad frame.
            is_cut_at_rot = any(rot.offsets.start - rot.earlier_count <= offset for rot in self.rotten)
            demand(
                self.is_doubtful and (is_cut_at_rot or not known.is_promised),
                f"{self.source}: offset {offset}: {name_of(known.value)} became {name_of(entry.value)}",
            )
            if is_cut_at_rot:
                self.promised_end = min(self.promised_end, offset)
            for later in [later for later in self.entries if later >= offset]:
                del self.entries[later]
        self.entries[offset] = entry

    def _check_given(self, stored: StoredMessage) -> None:
        where = f"{self.source}: offset {stored.offset}"
        attempt = self.given.attempts.get(value_of(stored))
        if attempt is None:
            raise Violation(f"{where} shows {stored}, which nobody has written")
        demand(attempt.is_shown_by(stored), f"{where} shows {stored}, given was {attempt.message}")
        demand(
            attempt.is_unplaced or (self.source.partition, stored.offset) in attempt.places,
            f"{where} shows {name_of(value_of(stored))}, which was stored at {attempt.places}",
        )

    def _explain_cut(self, shown: Shown) -> Rot | None:
        """The spoilt frame at which recovery has cut the log, if that is what happened and may happen."""
        for rot in self.rotten:
            if rot.may_be_cut and shown.end_offset == rot.offsets.start - rot.earlier_count:
                return rot
        return None

    def _check_start(self, start_offset: int, *, wall_ms_max: int) -> None:
        """The log may begin later than before only where someone asked for it or retention says so."""
        for offset in range(max(self.start_offset, self.deleted_before), start_offset):
            entry = self.entries.get(offset)
            # How old a spoilt message is nobody can tell any more; it cannot be read either.
            is_spoilt = any(offset in rot.offsets for rot in self.rotten)
            demand(
                entry is None or is_spoilt or self._is_expired(offset, entry, wall_ms_max=wall_ms_max),
                f"{self.source} begins at {start_offset}, but nothing allows offset {offset} to be removed",
            )

    def _is_expired(self, offset: int, entry: Entry, *, wall_ms_max: int) -> bool:
        given = self.given
        is_old = (
            given.retention_ms_min is not None
            and given.attempts[entry.value].timestamp_ms < wall_ms_max - given.retention_ms_min
        )
        if is_old or given.retention_bytes_min is None:
            return is_old
        followers = (
            value
            for value, attempt in given.attempts.items()
            if attempt.is_unplaced
            or any(p == self.source.partition and o > offset for p, o in attempt.places)
        )
        return sum(len(value) + FRAMING_BYTES_MAX for value in followers) >= given.retention_bytes_min

    def _adopt(self, shown: Shown, *, now_ns: int) -> None:
        """What was found is the truth from here on; being found, it must be safe within a flush interval."""
        promised = {offset for offset, entry in self.entries.items() if entry.is_promised}
        before = self.entries
        self.entries = {}
        self.is_doubtful = False
        for stored in shown.messages:
            self._check_given(stored)
            self.entries[stored.offset] = Entry(
                value_of(stored),
                Acks.LEADER,
                now_ns,
                stored.offset in promised and stored.offset < self.promised_end,
            )
        for offset in shown.corrupt_offsets:
            if offset in before:
                self.entries[offset] = before[offset]
        self.start_offset = shown.start_offset
        self.promised_end = max(self.promised_end, self.start_offset)
        self.rotten = [
            rot._replace(may_be_cut=True) for rot in self.rotten if rot.offsets.start < shown.end_offset
        ]
