"""A histogram: how many values fell into each of a few fixed ranges, and their sum.

Made for Prometheus, whose ranges include their upper bound. To take in a value costs a search in a short
tuple and two additions, so it stands on paths where a batch passes.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

LATENCY_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
DISK_BOUNDS_S = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
CHECK_BOUNDS_S = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05)
REBALANCE_BOUNDS_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNT_BOUNDS = (0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)


class Histogram:
    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = LATENCY_BOUNDS_S) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """By range; the last one has no upper bound."""
        self.total = 0.0
        """The sum of all values."""

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def rising(self) -> Iterator[tuple[float, int]]:
        """Each upper bound with how many values were not above it; the last bound is infinite."""
        seen = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            yield bound, seen
