"""Entries of pending messages: when each is due, where it lies, where it goes. Twenty bytes, no object.

An entry tells nothing else; the message itself stays in the log of `__delayed` at `offset`.
"""

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

ENTRY = np.dtype([("due", "<i8"), ("offset", "<i8"), ("target", "<i4")])
Entries = NDArray[np.void]
NO_ENTRIES: Entries = np.empty(0, dtype=ENTRY)


def in_order(entries: Entries) -> Entries:
    """By due time, and where that is equal by offset: the order in which messages are delivered."""
    return entries[np.lexsort((entries["offset"], entries["due"]))]


class Fresh:
    """Entries that no run on the disk holds yet, in the order they came."""

    def __init__(self) -> None:
        self._dues = array("q")
        self._offsets = array("q")
        self._targets = array("i")
        self.dropped = 0
        """How many have gone into runs."""

    @property
    def end(self) -> int:
        """The number that the next entry gets, counted from the first there ever was."""
        return self.dropped + len(self._dues)

    def __len__(self) -> int:
        return len(self._dues)

    def add(self, due_ms: int, offset: int, target: int) -> None:
        self._dues.append(due_ms)
        self._offsets.append(offset)
        self._targets.append(target)

    def entries(self, first: int = 0) -> Entries:
        """A copy, from the one numbered `first` on."""
        first = max(first - self.dropped, 0)
        entries = np.empty(len(self) - first, dtype=ENTRY)
        entries["due"] = _copy(self._dues[first:], np.int64)
        entries["offset"] = _copy(self._offsets[first:], np.int64)
        entries["target"] = _copy(self._targets[first:], np.int32)
        return entries

    def drop(self, count: int) -> None:
        """The first so many are in a run now."""
        del self._dues[:count], self._offsets[:count], self._targets[:count]
        self.dropped += count


def rows(entries: Entries) -> Iterator[tuple[int, int, int]]:
    """(due, offset, target) as plain numbers."""
    return zip(entries["due"].tolist(), entries["offset"].tolist(), entries["target"].tolist(), strict=True)


def _copy(numbers: "array[int]", kind: Any) -> NDArray[Any]:
    # Never a view: an array that somebody looks at cannot grow.
    return np.array(numbers, dtype=kind)
