"""What of a partition can be handed out: the runs of each lane that are neither settled nor busy.

Learnt from batch headers while the log is scanned forward, never kept: after a restart the scan begins
at the floor again. Each lane has its own runs, so a message of one lane never passes over one of another.
"""

from collections.abc import Sequence

from goqueue.core.delivery.lane_turns import LANE_COUNT, LaneTurns
from goqueue.core.delivery.runs import Run, Runs
from goqueue.model.messages import Lane


class Shelf:
    def __init__(self, scan_offset: int) -> None:
        self.scan_offset = scan_offset
        """Up to here the lanes are known."""
        self.ready = [Runs() for _ in range(LANE_COUNT)]
        """By lane: what can be handed out."""
        self._lanes = [Runs() for _ in range(LANE_COUNT)]
        """Which offsets belong to each lane but the normal one, which is all the rest."""
        self._turns = LaneTurns()

    @property
    def count(self) -> int:
        return sum(runs.count for runs in self.ready)

    @property
    def counts(self) -> list[int]:
        return [runs.count for runs in self.ready]

    @property
    def oldest(self) -> list[int | None]:
        """The first offset of each lane that waits to be handed out."""
        return [runs.first if runs else None for runs in self.ready]

    def learn(self, first: int, end: int, lane: int, free: Sequence[Run]) -> None:
        """The scan met a batch; `free` is what of it can be handed out."""
        self.scan_offset = end
        if lane != Lane.NORMAL:
            self._lanes[lane].add(first, end)
        for run in free:
            self.ready[lane].add(*run)

    def put(self, first: int, end: int) -> None:
        """Messages may be handed out (again). What lies before the scan it will find by itself."""
        end = min(end, self.scan_offset)
        if first >= end:
            return
        normal = Runs(((first, end),))
        for lane, known in enumerate(self._lanes):
            for run in known.within(first, end):
                self.ready[lane].add(*run)
                normal.remove(*run)
        for run in normal:
            self.ready[Lane.NORMAL].add(*run)

    def count_by_lane(self, first: int, end: int) -> list[int]:
        """How many offsets of a run are in each lane, as far as the scan knows them."""
        counts = [sum(last - start for start, last in known.within(first, end)) for known in self._lanes]
        counts[Lane.NORMAL] = end - first - sum(counts)
        return counts

    def take(self, limit: int, *, weights: Sequence[int], wait_ms_max: int, now_ms: int) -> list[Run]:
        """Take messages to hand out, the lanes in their turns."""
        shares = self._turns.share(
            self.counts, limit, weights=weights, wait_ms_max=wait_ms_max, now_ms=now_ms
        )
        return [run for lane, count in shares for run in self.ready[lane].take(count)]

    def drop(self, first: int, end: int) -> None:
        """These are not to be handed out."""
        for runs in self.ready:
            if runs:
                runs.remove(first, end)

    def forget_below(self, floor: int) -> None:
        """What is settled has no lane any more."""
        self.drop(0, floor)
        for runs in self._lanes:
            if runs:
                runs.remove(0, floor)
        self.scan_offset = max(self.scan_offset, floor)
