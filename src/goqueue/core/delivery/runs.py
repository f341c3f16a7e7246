"""A set of offsets kept as sorted runs, so that a thousand neighbours cost as much as one.

Two flat arrays hold where each run begins and where it ends (exclusive): 16 bytes a run. Runs never
touch or overlap. Consumers settle mostly in order, so a set has few runs, and a search is a bisection.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

Run = tuple[int, int]
"""First offset, end offset."""
LAST_OFFSET_MAX = 2**63 - 1
"""No offset is as high as this: the end behind it could not be told in 64 bits."""


class Runs:
    __slots__ = ("_ends", "_firsts", "count")

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._firsts = array("q")
        self._ends = array("q")
        self.count = 0
        """How many offsets are in the set."""
        for first, end in runs:
            self.add(first, end)

    def __iter__(self) -> Iterator[Run]:
        return zip(self._firsts, self._ends, strict=True)

    def __bool__(self) -> bool:
        return self.count > 0

    def __contains__(self, offset: int) -> bool:
        at = bisect_right(self._firsts, offset) - 1
        return at >= 0 and offset < self._ends[at]

    @property
    def first(self) -> int:
        """The smallest offset; ask only a set that is not empty."""
        return self._firsts[0]

    @property
    def end(self) -> int:
        """The offset behind the largest; ask only a set that is not empty."""
        return self._ends[-1]

    def end_of(self, offset: int) -> int:
        """Where the run that holds an offset ends; the offset itself when none does."""
        at = bisect_right(self._firsts, offset) - 1
        return max(self._ends[at], offset) if at >= 0 else offset

    def covers(self, first: int, end: int) -> bool:
        """Whether every offset of a run is in the set."""
        at = bisect_right(self._firsts, first) - 1
        return at >= 0 and end <= self._ends[at]

    def add(self, first: int, end: int) -> None:
        if first >= end:
            return
        firsts, ends = self._firsts, self._ends
        if not firsts or first >= ends[-1]:  # the usual place: behind everything
            if firsts and first == ends[-1]:
                ends[-1] = end
            else:
                firsts.append(first)
                ends.append(end)
            self.count += end - first
            return
        low = bisect_left(ends, first)  # the first run that touches it
        high = bisect_right(firsts, end)  # the first run that begins behind it
        if low < high:
            self.count -= self._count_of(low, high)
            first, end = min(first, firsts[low]), max(end, ends[high - 1])
        firsts[low:high] = array("q", (first,))
        ends[low:high] = array("q", (end,))
        self.count += end - first

    def remove(self, first: int, end: int) -> None:
        """Take a run out, as far as it is there."""
        firsts, ends = self._firsts, self._ends
        low = bisect_right(ends, first)
        high = bisect_left(firsts, end)
        if low >= high or first >= end:
            return
        left, right = firsts[low], ends[high - 1]
        self.count -= self._count_of(low, high)
        if first <= left and right <= end:  # the usual case: whole runs go
            del firsts[low:high], ends[low:high]
            return
        kept_firsts, kept_ends = array("q"), array("q")
        if left < first:
            kept_firsts.append(left)
            kept_ends.append(first)
            self.count += first - left
        if end < right:
            kept_firsts.append(end)
            kept_ends.append(right)
            self.count += right - end
        firsts[low:high] = kept_firsts
        ends[low:high] = kept_ends

    def _count_of(self, low: int, high: int) -> int:
        """How many offsets are in some neighbouring runs."""
        if high - low == 1:
            return self._ends[low] - self._firsts[low]
        return sum(self._ends[low:high]) - sum(self._firsts[low:high])

    def within(self, first: int, end: int) -> list[Run]:
        """The pieces of the set inside a run."""
        firsts, ends = self._firsts, self._ends
        low, high = bisect_right(ends, first), bisect_left(firsts, end)
        return [(max(firsts[at], first), min(ends[at], end)) for at in range(low, high)]

    def gaps(self, first: int, end: int) -> list[Run]:
        """The pieces of a run that are not in the set."""
        missing: list[Run] = []
        for held_first, held_end in self.within(first, end):
            if first < held_first:
                missing.append((first, held_first))
            first = held_end
        if first < end:
            missing.append((first, end))
        return missing

    def take(self, count: int) -> list[Run]:
        """Take the smallest offsets out."""
        taken: list[Run] = []
        for first, end in self:
            if count <= 0:
                break
            taken.append((first, min(end, first + count)))
            count -= end - first
        if taken:
            self.remove(taken[0][0], taken[-1][1])
        return taken

    def clear(self) -> None:
        del self._firsts[:], self._ends[:]
        self.count = 0


def runs_of(offsets: Sequence[int]) -> list[Run]:
    """Rising offsets as runs."""
    if offsets and offsets[-1] - offsets[0] == len(offsets) - 1:
        return [(offsets[0], offsets[-1] + 1)]  # mostly they are neighbours
    runs: list[Run] = []
    first = end = -1
    for offset in offsets:
        if offset == end:
            end += 1
        else:
            if end > first:
                runs.append((first, end))
            first, end = offset, offset + 1
    if end > first:
        runs.append((first, end))
    return runs


def count_of(runs: Iterable[Run]) -> int:
    return sum(end - first for first, end in runs)
