"""How long something has taken of late: the p99 and the worst of the last minute, in a few kilobytes.

Times are counted in slots of ten seconds, each a row of buckets that grow by a fifth; a slot that has
become too old is counted anew. So a p99 is at most a fifth above the truth, and never above the worst.
"""

from bisect import bisect_left
from dataclasses import dataclass

SLOT_NS = 10_000_000_000
_SLOT_COUNT = 6
_SHARE = 0.99
_FIRST_BOUND_NS = 10_000
_BOUND_COUNT = 96
_BOUNDS_NS = [int(_FIRST_BOUND_NS * 1.2**step) for step in range(_BOUND_COUNT)]
"""From 10 µs to more than 5 minutes; what takes longer is in the bucket behind them."""


@dataclass(frozen=True, slots=True)
class TimesSummary:
    count: int
    p99_ns: int
    worst_ns: int


class _Slot:
    __slots__ = ("counts", "number", "worst_ns")

    def __init__(self, number: int) -> None:
        self.number = number
        self.counts = [0] * (_BOUND_COUNT + 1)
        self.worst_ns = 0


class RecentTimes:
    """Durations noted as they come, told for the last minute."""

    def __init__(self) -> None:
        self._slots = [_Slot(-1)] * _SLOT_COUNT

    def note(self, took_ns: int, *, now_ns: int) -> None:
        number = now_ns // SLOT_NS
        slot = self._slots[number % _SLOT_COUNT]
        if slot.number != number:
            slot = self._slots[number % _SLOT_COUNT] = _Slot(number)
        slot.counts[bisect_left(_BOUNDS_NS, took_ns)] += 1
        slot.worst_ns = max(slot.worst_ns, took_ns)

    def summary(self, *, now_ns: int) -> TimesSummary:
        """The last minute; all 0 when nothing was noted in it."""
        oldest = now_ns // SLOT_NS - _SLOT_COUNT
        slots = [slot for slot in self._slots if slot.number > oldest]
        counts = [sum(bucket) for bucket in zip(*(slot.counts for slot in slots), strict=True)]
        total = sum(counts)
        worst_ns = max((slot.worst_ns for slot in slots), default=0)
        return TimesSummary(total, min(_quantile_ns(counts, total), worst_ns), worst_ns)


def _quantile_ns(counts: list[int], total: int) -> int:
    """The bound that all but the longest hundredth lie within; a very long time behind the last bound."""
    seen = 0
    for bound_ns, count in zip(_BOUNDS_NS, counts, strict=False):
        seen += count
        if seen >= total * _SHARE:
            return bound_ns
    return 2**63
