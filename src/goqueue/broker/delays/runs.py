"""Runs: entries of pending messages on the disk, sorted by due time, a file each.

A run is written once and never changed. Of a run only the due time of every 4,096th entry is in memory, so
that ten million pending messages cost some kilobytes; the rest is read when its time comes. Everything here
waits for the disk: call it from threads.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import count
from typing import NamedTuple, Protocol

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from goqueue.core.delays.entries import ENTRY, NO_ENTRIES, Entries, in_order
from goqueue.model.errors import Corrupt
from goqueue.model.ports import Disk

BLOCK_ENTRIES = 4_096
PIECE_ENTRIES = 4 * BLOCK_ENTRIES
_SUFFIX = ".run"
_NAME = re.compile(r"[0-9]{10}\.run")
"""What else lies in the folder is not ours, and stays."""


class RunName(NamedTuple):
    """What a checkpoint keeps of a run."""

    number: int
    entry_count: int
    crc: int


class SortedEntries(Protocol):
    """Sorted entries: a run, or the fresh ones."""

    @property
    def entry_count(self) -> int: ...

    def find(self, due_ms: int) -> int:
        """A position before which everything is due before that time."""

    def read(self, position: int, entry_count: int) -> Entries: ...


class InMemory:
    """Entries that are in no run yet."""

    def __init__(self, entries: Entries) -> None:
        self._unsorted = entries

    @cached_property
    def _entries(self) -> Entries:
        # Sorted when they are first looked at, which is in a thread.
        return in_order(self._unsorted)

    @property
    def entry_count(self) -> int:
        return len(self._unsorted)

    def find(self, due_ms: int) -> int:
        return int(np.searchsorted(self._entries["due"], due_ms))

    def read(self, position: int, entry_count: int) -> Entries:
        return self._entries[position : position + entry_count]


class Run:
    def __init__(self, disk: Disk, path: str, name: RunName, block_dues: NDArray[np.int64]) -> None:
        self._disk = disk
        self.path = path
        self.name = name
        self._block_dues = block_dues

    @property
    def entry_count(self) -> int:
        return self.name.entry_count

    def find(self, due_ms: int) -> int:
        block = int(np.searchsorted(self._block_dues, due_ms)) - 1
        return max(block, 0) * BLOCK_ENTRIES

    def read(self, position: int, entry_count: int) -> Entries:
        file = self._disk.open_existing(self.path)
        try:
            data = file.read(position * ENTRY.itemsize, entry_count * ENTRY.itemsize)
        finally:
            file.close()
        # What a spoilt file has beside whole entries is told by its checksum.
        return np.frombuffer(data[: len(data) - len(data) % ENTRY.itemsize], dtype=ENTRY)


class Runs:
    """The runs of a folder."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._numbers = count()

    def open(self, names: Sequence[RunName]) -> list[Run]:
        """The runs that a checkpoint names, each read and checked; what else lies there is removed."""
        self._disk.make_folder(self._folder)
        self._numbers = count(max((name.number for name in names), default=-1) + 1)
        runs = [self._open(name) for name in names]
        known = {run.path for run in runs}
        for file_name in self._disk.list(self._folder):
            path = f"{self._folder}/{file_name}"
            if _NAME.fullmatch(file_name) and path not in known:
                self._disk.remove(path)
        return runs

    def write(self, pieces: Iterator[Entries]) -> Run:
        """A new run of entries that come in order, safe on the disk."""
        number = next(self._numbers)
        path = self._path(number)
        entry_count, crc = 0, 0
        block_dues: list[NDArray[np.int64]] = []
        file = self._disk.open(path)
        try:
            for piece in pieces:
                data = piece.tobytes()
                block_dues.append(piece["due"][-entry_count % BLOCK_ENTRIES :: BLOCK_ENTRIES].copy())
                crc = crc32c(data, crc)
                entry_count += len(piece)
                file.append([data])
            file.sync()
        except OSError:
            self._disk.remove(path)
            raise
        finally:
            file.close()
        self._disk.sync_folder(self._folder)
        return Run(self._disk, path, RunName(number, entry_count, crc), _joined(block_dues))

    def remove(self, runs: Sequence[Run]) -> None:
        """Remove runs that no checkpoint names any more."""
        for run in runs:
            self._disk.remove(run.path)

    def check(self, name: RunName) -> None:
        """Read a run; Corrupt when it is not what was written."""
        self._open(name)

    def _open(self, name: RunName) -> Run:
        run = Run(self._disk, self._path(name.number), name, _joined([]))
        crc, block_dues = 0, []
        try:
            for position in range(0, name.entry_count, PIECE_ENTRIES):
                piece = run.read(position, PIECE_ENTRIES)
                crc = crc32c(piece.tobytes(), crc)
                block_dues.append(piece["due"][::BLOCK_ENTRIES].copy())
        except FileNotFoundError as error:
            raise Corrupt(f"{run.path} is gone") from error
        if crc != name.crc:
            raise Corrupt(f"{run.path} does not match its checksum")
        return Run(self._disk, run.path, name, _joined(block_dues))

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:010d}{_SUFFIX}"


def walk(parts: Sequence[SortedEntries], *, from_due_ms: int) -> Iterator[Entries]:
    """All entries that are due from a time on, in order, piece by piece; equal times are never parted."""
    cursors = [_Cursor(part, from_due_ms) for part in parts]
    while True:
        cursors = [cursor for cursor in cursors if cursor.fill()]
        if not cursors:
            return
        bounds = [cursor.last_due_ms for cursor in cursors if not cursor.is_at_end]
        taken = [cursor.take(min(bounds) if bounds else None) for cursor in cursors]
        yield in_order(np.concatenate(taken))


def unsorted(parts: Sequence[SortedEntries]) -> Iterator[Entries]:
    """All entries, one part after the other: cheaper, where the order is of no use."""
    for part in parts:
        for position in range(0, part.entry_count, PIECE_ENTRIES):
            yield part.read(position, PIECE_ENTRIES)


def kept(pieces: Iterator[Entries], is_kept: Callable[[Entries], NDArray[np.bool_]]) -> Iterator[Entries]:
    """The entries that pass a test."""
    for piece in pieces:
        chosen = piece[is_kept(piece)]
        if len(chosen):
            yield chosen


class _Cursor:
    """Where a walk stands in one part."""

    def __init__(self, part: SortedEntries, from_due_ms: int) -> None:
        self._part = part
        self._from_due_ms = from_due_ms
        self._position = part.find(from_due_ms)
        self._buffer: Entries = NO_ENTRIES

    @property
    def is_at_end(self) -> bool:
        return self._position >= self._part.entry_count

    @property
    def last_due_ms(self) -> int:
        return int(self._buffer["due"][-1])

    def fill(self) -> bool:
        """Have at least two different due times at hand, or all there is; False: there is nothing."""
        while not self.is_at_end and (
            not len(self._buffer) or self._buffer["due"][0] == self._buffer["due"][-1]
        ):
            fresh = self._part.read(self._position, PIECE_ENTRIES)
            if not len(fresh):
                raise Corrupt("a run of delayed messages is cut short")
            self._position += len(fresh)
            self._buffer = np.concatenate([self._buffer, fresh[fresh["due"] >= self._from_due_ms]])
        return len(self._buffer) > 0

    def take(self, bound_ms: int | None) -> Entries:
        """What is due before a time; None: all."""
        size = len(self._buffer)
        at = size if bound_ms is None else int(np.searchsorted(self._buffer["due"], bound_ms))
        taken, self._buffer = self._buffer[:at], self._buffer[at:]
        return taken


def _joined(dues: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(dues) if dues else np.empty(0, dtype=np.int64)
