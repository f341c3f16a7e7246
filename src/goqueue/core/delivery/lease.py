"""A lease: runs of messages that are out with one consumer until a time, or until a transaction ends."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from goqueue.core.delivery.runs import Run, Runs

NO_LEASE = -1
"""Stands for the lease of messages that are not out."""
PLEDGED_MS = 2**52
"""A deadline that never comes: what has it, or a later one, waits for a transaction that another node keeps.
The journal tells it, so that whoever takes it over knows."""
_NO_TIMES: Mapping[int, int] = MappingProxyType({})
_NOTHING: frozenset[int] = frozenset()
"""One for all: each empty set would take 216 bytes, and there may be a hundred thousand leases."""


class Lease:
    """One object a poll and partition, however many messages it took."""

    __slots__ = ("consumer", "later", "number", "offsets", "pledged", "until_ms")

    def __init__(self, number: int, consumer: str, until_ms: int) -> None:
        self.number = number
        self.consumer = consumer
        self.until_ms = until_ms
        self.offsets = Runs()
        self.later = _NO_TIMES
        """Messages with a deadline of their own, because it was moved for them alone."""
        self.pledged = _NOTHING
        """Messages that an open transaction will settle: they wait for its end, whatever their deadline was.
        Not kept over a restart: the transactions tell it anew."""

    def holds(self, offset: int, now_ms: int) -> bool:
        if offset not in self.offsets:
            return False
        return now_ms < self.later.get(offset, self.until_ms) or offset in self.pledged

    def holds_all(self, first: int, end: int, now_ms: int) -> bool:
        """The same for a whole run, in one look where that is enough."""
        if not self.later and not self.pledged:
            return now_ms < self.until_ms and self.offsets.covers(first, end)
        return all(self.holds(offset, now_ms) for offset in range(first, end))

    def is_pledged(self, offset: int) -> bool:
        """Whether a message waits for a transaction."""
        return offset in self.pledged or self.later.get(offset, self.until_ms) >= PLEDGED_MS

    def extend(self, first: int, end: int, until_ms: int) -> None:
        if end - first == self.offsets.count:
            self.until_ms = until_ms
            self.later = _NO_TIMES
        else:
            self.later = {**self.later, **dict.fromkeys(range(first, end), until_ms)}

    def spare(self, until_ms: int) -> None:
        """Nothing of it comes back before a time."""
        self.until_ms = max(self.until_ms, until_ms)
        if self.later:
            self.later = {offset: max(at, until_ms) for offset, at in self.later.items()}

    def pledge(self, offsets: Iterable[int]) -> None:
        """A transaction will settle these."""
        self.pledged = self.pledged.union(offset for offset in offsets if offset in self.offsets)

    def release(self, first: int, end: int) -> int:
        """Let go of a run, as far as it is held; how many messages that were."""
        before = self.offsets.count
        self.offsets.remove(first, end)
        if self.later:
            self.later = {held: at for held, at in self.later.items() if not first <= held < end}
        if self.pledged:
            self.pledged = self.pledged.difference(range(first, end))
        return before - self.offsets.count

    def next_deadline_ms(self) -> int | None:
        """When the first of its messages comes back by itself; None: all wait for a transaction."""
        times_ms = [until_ms for offset, until_ms in self.later.items() if offset not in self.pledged]
        if len(self.pledged.union(self.later)) < self.offsets.count:
            times_ms.append(self.until_ms)
        return min(times_ms, default=None)

    def overdue(self, now_ms: int) -> list[Run]:
        """What has run out by now."""
        if not self.later and not self.pledged:
            return list(self.offsets) if self.until_ms <= now_ms else []
        overdue = Runs()
        if self.until_ms <= now_ms:
            overdue = Runs(self.offsets)
        for offset, until_ms in self.later.items():
            if until_ms <= now_ms:
                overdue.add(offset, offset + 1)
            else:
                overdue.remove(offset, offset + 1)
        for offset in self.pledged:
            overdue.remove(offset, offset + 1)
        return list(overdue)
