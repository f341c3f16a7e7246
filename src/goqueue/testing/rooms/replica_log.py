"""A log for replicas in tests: a list of messages, each of an epoch, and how many of them are on the disk."""

from collections.abc import Iterable
from typing import NamedTuple

from goqueue.model.replication import NO_EPOCH


class Entry(NamedTuple):
    """A message, told from every other by its number."""

    epoch: int
    number: int


class ListedLog:
    """What a replica looks at, over a list."""

    def __init__(self, entries: Iterable[Entry] = (), *, start_offset: int = 0) -> None:
        self.entries = list(entries)
        self.start_offset = start_offset
        self.flushed_offset = self.end_offset

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def last_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        found, end_offset = NO_EPOCH, -1
        for offset, entry in enumerate(self.entries, self.start_offset):
            if entry.epoch > leader_epoch:
                break
            found, end_offset = entry.epoch, offset + 1
        return found, end_offset

    def append(self, entries: Iterable[Entry]) -> None:
        self.entries += entries

    def flush(self) -> None:
        self.flushed_offset = self.end_offset

    def cut_to(self, end_offset: int) -> None:
        assert self.start_offset <= end_offset <= self.end_offset, "only what is there can be cut"
        del self.entries[end_offset - self.start_offset :]
        self.flushed_offset = min(self.flushed_offset, end_offset)

    def begin_at(self, start_offset: int) -> None:
        self.entries.clear()
        self.start_offset = self.flushed_offset = start_offset

    def move_start(self, start_offset: int) -> None:
        assert start_offset <= self.end_offset, "a start lies before the end"
        del self.entries[: start_offset - self.start_offset]
        self.start_offset = start_offset
        self.flushed_offset = max(self.flushed_offset, start_offset)

    def read(self, first_offset: int, end_offset: int) -> list[Entry]:
        return self.entries[first_offset - self.start_offset : end_offset - self.start_offset]
