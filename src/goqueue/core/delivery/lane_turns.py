"""Whose turn it is: deficit round robin over the lanes of a partition.

Lanes are visited in turn, and each may hand out as many messages a visit as its weight says; what a
poll leaves of a visit, the next poll goes on with. A lane that has waited too long goes first. The
turns are not kept over a restart: they would be stale by then.
"""

from collections.abc import Sequence

LANE_COUNT = 5


class LaneTurns:
    def __init__(self) -> None:
        self._turn = 0
        self._left = 0
        """How many messages the lane whose turn it is may still hand out."""
        self._is_visited = False
        self._since_ms: list[int | None] = [None] * LANE_COUNT
        """Since when a lane has had something to hand out and was not served."""

    def share(
        self,
        ready: Sequence[int],
        limit: int,
        *,
        weights: Sequence[int],
        wait_ms_max: int,
        now_ms: int,
    ) -> list[tuple[int, int]]:
        """Which lane hands out how many, in order; `ready` says how many each has."""
        left = list(ready)
        shares: list[tuple[int, int]] = []

        def serve(lane: int, count: int) -> int:
            nonlocal limit
            count = min(count, left[lane], limit)
            if count:
                shares.append((lane, count))
                left[lane] -= count
                limit -= count
                self._since_ms[lane] = now_ms
            return count

        for lane in self._starved(left, wait_ms_max, now_ms):
            serve(lane, weights[lane])
        while limit > 0 and (full := [lane for lane in range(LANE_COUNT) if left[lane]]):
            if len(full) == 1:
                serve(full[0], limit)  # nobody to share with: its weight does not matter
                break
            lane = self._turn
            if not self._is_visited:
                self._left = weights[lane]
                self._is_visited = True
            self._left -= serve(lane, self._left)
            if not left[lane] or self._left <= 0:
                self._turn = (lane + 1) % LANE_COUNT
                self._is_visited = False
        for lane in range(LANE_COUNT):
            if not left[lane]:
                self._since_ms[lane] = None
        return shares

    def _starved(self, left: list[int], wait_ms_max: int, now_ms: int) -> list[int]:
        """Lanes that have waited too long, the one that has waited longest first.

        Of several that have waited equally long the lowest: a lane above it was served in the moment in which
        this one began to wait, and would take the whole poll once more.
        """
        starved: list[tuple[int, int]] = []
        for lane in range(LANE_COUNT):
            since_ms = self._since_ms[lane]
            if not left[lane]:
                continue
            if since_ms is None:
                self._since_ms[lane] = now_ms
            elif now_ms - since_ms >= wait_ms_max:
                starved.append((since_ms, -lane))
        return [-lane for _, lane in sorted(starved)]
