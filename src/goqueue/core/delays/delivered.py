"""What of the delayed messages for one partition has been appended to it: a few steps, whatever their number.

Messages are delivered in the order of their due times. So one pair says it all: every message that is due
by `due_ms` and lies before `end_offset` in the log of `__delayed` has been delivered. When the wall clock is
set back, later messages may be due before earlier ones were: then a second, lower step stands beside the
first until time has passed it again.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goqueue.core.delays.entries import Entries


class Step(NamedTuple):
    """Everything due by then, of what lay before that offset, is delivered."""

    due_ms: int
    end_offset: int


class Delivered:
    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.steps: tuple[Step, ...] = ()
        for step in steps:
            self.add(step)

    def add(self, step: Step) -> None:
        """Take note of a delivery. Steps that say no more than another are dropped."""
        if not self.covers(step.due_ms, step.end_offset - 1):
            kept = (s for s in self.steps if s.due_ms > step.due_ms or s.end_offset > step.end_offset)
            self.steps = (*kept, step)

    def covers(self, due_ms: int, offset: int) -> bool:
        return any(due_ms <= step.due_ms and offset < step.end_offset for step in self.steps)

    def covered(self, entries: Entries) -> NDArray[np.bool_]:
        """The same for many at once."""
        mask = np.zeros(len(entries), dtype=np.bool_)
        for step in self.steps:
            mask |= (entries["due"] <= step.due_ms) & (entries["offset"] < step.end_offset)
        return mask

    def copy(self) -> "Delivered":
        return Delivered(self.steps)
