"""The near future: entries that fall due soon, in a heap that knows how far it reaches.

Every pending entry that is due before `horizon_ms` is in the heap. It is a copy of what the disk holds:
the far part may be given up at any time, by drawing the horizon in.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

ENTRIES_MAX = 50_000
"""More than twice as many are not kept; the far ones are read from the disk when their turn comes."""
BEGINNING = -(2**62)

Row = tuple[int, int, int]
"""(due, offset, target)."""


class Near:
    def __init__(self) -> None:
        self._heap: list[Row] = []
        self.horizon_ms = BEGINNING

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_due_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def offer(self, row: Row) -> None:
        """A new entry: kept if it lies within the horizon."""
        if row[0] < self.horizon_ms:
            heappush(self._heap, row)
            if len(self._heap) > 2 * ENTRIES_MAX:
                self._draw_in()

    def extend(self, entries: Iterable[Row], *, horizon_ms: int) -> None:
        """All entries between the old horizon and a new one."""
        self._heap += entries
        heapify(self._heap)
        self.horizon_ms = horizon_ms

    def take(self, limit_ms: int, count_max: int) -> tuple[list[Row], int]:
        """Take out about so many that are due by a time, equal times together; and until when that is all."""
        heap = self._heap
        limit_ms = min(limit_ms, self.horizon_ms - 1)
        taken: list[Row] = []
        while heap and heap[0][0] <= limit_ms:
            if len(taken) >= count_max and heap[0][0] != taken[-1][0]:
                return taken, taken[-1][0]
            taken.append(heappop(heap))
        return taken, limit_ms

    def clear(self) -> None:
        """Begin again from the disk."""
        self._heap = []
        self.horizon_ms = BEGINNING

    def _draw_in(self) -> None:
        self._heap.sort()
        cut_ms = self._heap[ENTRIES_MAX][0]
        kept = [row for row in self._heap if row[0] < cut_ms]
        if kept:  # else all are due together, and one cannot have some of them
            self._heap, self.horizon_ms = kept, cut_ms
