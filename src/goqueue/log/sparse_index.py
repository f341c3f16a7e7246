"""A sparse index: pairs of growing numbers, 16 bytes each, that say where to begin to look.

The pairs of the segment being written grow in memory and reach their file now and then; losing that
file costs a scan and nothing else. A sealed segment's pairs are loaded for a look-up and forgotten.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from contextlib import suppress
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from goqueue.model.ports import Disk, File

ENTRY_BYTES = 16
_PAIR = Struct(">qq")
_NOT_WRITTEN = -1
"""Saved pairs of an index that was begun anew: its file may be absent, or hold those of before."""


class Checksum(NamedTuple):
    """A number of pairs and the CRC-32C over them."""

    entry_count: int
    crc: int


class SparseIndex:
    """(offset → position) or (timestamp → offset); both columns never fall."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._columns: tuple[array[int], array[int]] | None = None
        self._saved_count = 0

    @property
    def is_loaded(self) -> bool:
        """Whether a look-up needs no file."""
        return self._columns is not None

    def begin(self) -> None:
        """Start empty: the file is written anew at the next save, and holds nothing if nothing is added."""
        self._columns = (array("q"), array("q"))
        self._saved_count = _NOT_WRITTEN

    def add(self, key: int, value: int) -> None:
        keys, values = self._load()
        keys.append(key)
        values.append(value)

    def floor(self, key: int) -> tuple[int, int] | None:
        """The last pair whose key is not above `key`."""
        keys, values = self._load()
        at = bisect_right(keys, key) - 1
        return (keys[at], values[at]) if at >= 0 else None

    def first_at(self, value: int) -> tuple[int, int] | None:
        """The first pair whose value is not below `value`."""
        keys, values = self._load()
        at = bisect_left(values, value)
        return (keys[at], values[at]) if at < len(values) else None

    def below(self, key: int) -> tuple[int, int] | None:
        """The last pair whose key is below `key`."""
        keys, values = self._load()
        at = bisect_left(keys, key) - 1
        return (keys[at], values[at]) if at >= 0 else None

    def below_value(self, value: int) -> tuple[int, int] | None:
        """The last pair whose value is below `value`."""
        keys, values = self._load()
        at = bisect_left(values, value) - 1
        return (keys[at], values[at]) if at >= 0 else None

    def ends(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """The first and the last pair, read without the rest; None when the file is absent, empty or torn."""
        try:
            file = self._disk.open_existing(self._path)
        except FileNotFoundError:
            return None
        try:
            size = file.size()
            if size == 0 or size % ENTRY_BYTES:
                return None
            first, last = file.read(0, ENTRY_BYTES), file.read(size - ENTRY_BYTES, ENTRY_BYTES)
        finally:
            file.close()
        return _PAIR.unpack(first), _PAIR.unpack(last)

    def last(self) -> tuple[int, int] | None:
        keys, values = self._load()
        return (keys[-1], values[-1]) if keys else None

    def checksum(self) -> Checksum:
        """What tells later that the pairs there are now have all reached the file."""
        keys, values = self._load()
        return Checksum(len(keys), crc32c(_entries(keys, values)))

    def keep(self, vouched: Checksum) -> bool:
        """Keep the pairs that a checksum vouches for, drop those behind; False: they are not there."""
        keys, values = self._load()
        count = vouched.entry_count
        if crc32c(_entries(keys[:count], values[:count])) != vouched.crc or len(keys) < count:
            return False
        del keys[count:], values[count:]
        self._saved_count = count
        return True

    def save(self) -> bool:
        """Write what the file lacks; whether that could be done. Nobody need fail: it can be rebuilt."""
        keys, values = self._load()
        if self._saved_count == len(keys):
            return True
        kept_count = max(self._saved_count, 0)
        fresh = _entries(keys[kept_count:], values[kept_count:])
        with suppress(OSError):
            file = self._disk.open(self._path)
            try:
                if file.size() != kept_count * ENTRY_BYTES:
                    file.truncate(kept_count * ENTRY_BYTES)
                file.append([fresh])
            finally:
                file.close()
            self._saved_count = len(keys)
        return self._saved_count == len(keys)

    def load(self) -> None:
        """Have all pairs in memory."""
        self._load()

    def forget(self) -> None:
        """Give the memory back; the next look-up loads the file. What the file lacks stays."""
        if self._columns is not None and self._saved_count == len(self._columns[0]):
            self._columns = None

    def _load(self) -> tuple[array[int], array[int]]:
        # Held on to while it is used: another thread may forget it meanwhile.
        columns = self._columns
        if columns is None:
            entries = array("q")
            with suppress(FileNotFoundError):
                file = self._disk.open_existing(self._path)
                try:
                    entries = _read_entries(file)
                finally:
                    file.close()
            columns = self._columns = (entries[0::2], entries[1::2])
            self._saved_count = len(entries) // 2
        return columns


def _read_entries(file: File) -> array[int]:
    size = file.size()
    entries = array("q")
    data = file.read(0, size - size % ENTRY_BYTES)
    entries.frombytes(data[: len(data) - len(data) % ENTRY_BYTES])
    return _big_endian(entries)


def _big_endian(numbers: array[int]) -> array[int]:
    """Between the file's order and this machine's; the same step in both directions."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _entries(keys: array[int], values: array[int]) -> bytes:
    """Pairs as they lie in the file."""
    entries = array("q", bytes(ENTRY_BYTES * len(keys)))
    entries[0::2], entries[1::2] = keys, values
    return _big_endian(entries).tobytes()
