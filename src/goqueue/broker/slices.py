"""Long work in slices, so that nobody holds the loop.

Whoever walks over many things on the loop makes a `Slices` and awaits its `pause` between them: it is
nearly free until the slice is used up, and then lets everybody else have their turn. State that was
looked at before a pause may be another behind it.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from goqueue.model.ports import Clock

SLICE_MS = 1
"""Far below the 20 ms that one request may hold the loop: what stands between two pauses comes on top, and a
small request needs several turns of the loop, each of which waits for a slice of everybody who is at work. A
turn costs about a hundredth of this.
"""
_NS_PER_MS = 1_000_000
T = TypeVar("T")
R = TypeVar("R")


class Slices:
    """When this piece of work has had the loop for long enough."""

    __slots__ = ("_clock", "_ends_ns", "_slice_ns")

    def __init__(self, clock: Clock, *, slice_ms: int = SLICE_MS) -> None:
        self._clock = clock
        self._slice_ns = slice_ms * _NS_PER_MS
        self._ends_ns = clock.monotonic_ns() + self._slice_ns

    @property
    def is_over(self) -> bool:
        """Whether it is time to pause: for loops in which even an await that does nothing is too much."""
        return self._clock.monotonic_ns() >= self._ends_ns

    async def pause(self) -> None:
        """Let others have the loop, if this slice is over."""
        if self.is_over:
            await asyncio.sleep(0)
            self._ends_ns = self._clock.monotonic_ns() + self._slice_ns

    async def each(self, things: Iterable[T], tell: Callable[[T], R]) -> list[R]:
        """What is to be told of each thing. They may not change meanwhile."""
        told = []
        for thing in things:
            told.append(tell(thing))
            if self.is_over:
                await self.pause()
        return told

    async def walk(self, steps: Generator[None, None, T]) -> T:
        """Do all of a machine's work that stops now and then, with pauses there; what it returns."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # as the generator says
            await self.pause()
