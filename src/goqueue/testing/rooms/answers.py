"""How simulated clients wait: many requests under way at once, and every one must be answered.

An error of the house is an answer when a fault can have caused it. Anything else that goes wrong, also in
a task that nobody awaits, is a violation.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from math import inf
from typing import TypeVar

from goqueue.model.errors import GoQueueError, ShuttingDown, StorageFailed, StorageFull
from goqueue.testing.whole.partition_history import Violation, demand
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.faults import PowerCut
from goqueue.testing.world.loop import NS_PER_SECOND, SimulatedLoop

T = TypeVar("T")
PATIENCE_S = 120
"""Simulated seconds after which an answer that has not come will not come."""
CONVALESCENCE_S = 30
"""Simulated seconds after which a broker whose disk is well again must be well too."""


class PowerLost(Exception):
    """The power went while a client waited for an answer."""


class Answers:
    """The requests under way in one life of a broker."""

    def __init__(self, loop: SimulatedLoop, disk: SimulatedDisk) -> None:
        self._loop = loop
        self._disk = disk
        self._power_cut: asyncio.Future[int] = loop.create_future()
        self._under_way: set[asyncio.Task[None]] = set()
        self._problems: list[BaseException] = []
        self._trouble_until_ns: float = 0
        """Until then the broker may refuse: something is broken, or was until just now."""
        self.is_closing = False

    @property
    def has_power(self) -> bool:
        """Without power nobody hears an answer, so none counts."""
        return self._disk.faults.has_power

    @property
    def heard_until_ns(self) -> int:
        """The moment of the power cut, or now: later answers were not heard, nor was later time lived."""
        return self._power_cut.result() if self._power_cut.done() else self._loop.clock.monotonic_ns()

    def cut_power(self, *, after_changes: int) -> None:
        """Cut the power soon; whoever waits will notice."""
        self._disk.faults.cut_power(after_changes=after_changes, on_power_cut=self._note_power_cut)

    async def sleep(self, duration_ms: int) -> None:
        """Let time pass, or as much of it as there is power."""
        await asyncio.wait({self._power_cut}, timeout=duration_ms / 1000)

    def start(self, work: Coroutine[object, object, None]) -> None:
        """Let a request get under way; its end is checked whenever it comes."""
        task = self._loop.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._finish)

    async def wait_for(self, work: Coroutine[object, object, T]) -> T:
        """Make a request and wait for its answer, while others are under way."""
        task = self._loop.create_task(work)
        await self._wait({task})
        if not self.has_power:
            task.add_done_callback(_look_away)
            raise PowerLost
        demand(task.done(), f"no answer within {PATIENCE_S} s: {task}")
        try:
            return task.result()
        except (GoQueueError, Violation):
            raise
        except Exception as error:
            raise Violation(f"an error outside the tree: {error!r}") from error

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        while self._under_way and self.has_power:
            count = len(self._under_way)
            await self._wait(self._under_way)
            demand(len(self._under_way) < count or not self.has_power, f"no answer: {self._under_way}")
        self.raise_problems()
        if not self.has_power:
            raise PowerLost

    def break_something(self) -> None:
        """From now on an error of the disk is an answer."""
        self._trouble_until_ns = inf

    def mend(self) -> None:
        """What has not failed yet will not; in a while all must be well again, without a restart."""
        if self._trouble_until_ns == inf:
            self._disk.faults.heal()
            self._trouble_until_ns = self._loop.clock.monotonic_ns() + CONVALESCENCE_S * NS_PER_SECOND

    @property
    def is_in_trouble(self) -> bool:
        """Whether an error of the disk would be an answer now."""
        return self._loop.clock.monotonic_ns() < self._trouble_until_ns

    def permit(self, error: GoQueueError) -> None:
        """Take an error as an answer, if a fault can have caused it."""
        is_explained = (isinstance(error, (StorageFailed, StorageFull)) and self.is_in_trouble) or (
            isinstance(error, ShuttingDown) and self.is_closing
        )
        if not is_explained:
            raise Violation(f"no fault explains {type(error).__name__}: {error}") from error

    def raise_problems(self) -> None:
        """Raise what went wrong behind the back of everybody."""
        for problem in (*self._problems, *self._loop.unhandled):
            if isinstance(problem, Violation):
                raise problem
            if isinstance(problem, str):
                raise Violation(problem)
            if not isinstance(problem, PowerCut):
                raise Violation(f"an error outside the tree: {problem!r}") from problem

    async def _wait(self, tasks: Iterable[asyncio.Task[T]]) -> None:
        """Wait until one of the tasks is done, the power is cut, or patience is at its end."""
        waiting: set[asyncio.Future[T] | asyncio.Future[int]] = {*tasks, self._power_cut}
        await asyncio.wait(waiting, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)

    def _note_power_cut(self) -> None:
        if not self._power_cut.done():
            self._power_cut.set_result(self._loop.clock.monotonic_ns())

    def _finish(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        error = task.exception()
        if isinstance(error, GoQueueError):
            try:
                self.permit(error)
            except Violation as violation:
                self._problems.append(violation)
        elif error is not None:
            self._problems.append(error)


def _look_away(task: "asyncio.Task[T]") -> None:
    """Fetch a task's error, so that nobody reports it as overlooked."""
    if not task.cancelled():
        task.exception()
