"""An asyncio loop without waiting: when nothing is ready, the simulated clock jumps to the next timer.

Callbacks run in the order asyncio promises (first in, first out) and no thread or socket takes part, so
the same program with the same seed takes the same steps. A program that waits for something that can
never happen is stopped with `Stalled` instead of hanging.
"""

import asyncio
import math
import selectors
import warnings
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from goqueue.testing.world.clock import SimulatedClock

T = TypeVar("T")
NS_PER_SECOND = 1_000_000_000


class Stalled(AssertionError):
    """Something is awaited that no callback and no timer will ever bring."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop whose time is a SimulatedClock."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.clock = clock
        self.unhandled: list[BaseException | str] = []
        """What went wrong in tasks and callbacks that nobody was waiting for."""
        super().__init__(_NothingToSelect(clock))
        self.set_exception_handler(self._note_unhandled)

    def time(self) -> float:
        return self.clock.monotonic_ns() / NS_PER_SECOND

    def run_in_executor(self, executor: object, func: Callable[..., object], *args: object) -> NoReturn:
        raise AssertionError(
            "real threads would make a simulation differ from run to run: use SimulatedThreads"
        )

    def run(self, main: Coroutine[object, object, T]) -> T:
        """Run until `main` is done; other tasks stay where they are."""
        return self.run_until_complete(main)

    def abandon(self) -> None:
        """End as a killed process does: no task gets to clean up in a way that anyone could see.

        Kill the disk first: the coroutines' own clean-up code runs, and must find nothing it can change.
        """
        self.set_exception_handler(lambda loop, context: None)
        with warnings.catch_warnings():
            # Nor does anyone hear of what had not begun yet.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            for task in asyncio.all_tasks(self):
                bury(task)
            self.close()

    def _note_unhandled(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
        error = context.get("exception")
        self.unhandled.append(error if isinstance(error, BaseException) else str(context.get("message")))


def bury(task: "asyncio.Task[Any]") -> None:
    """End a task where it stands, as the death of its process does."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio has no public way to say so
    coroutine = task.get_coro()
    # What a dying task says when its clean-up meets the dead disk is of no interest.
    with suppress(Exception):
        if coroutine is not None:
            coroutine.close()


class _NothingToSelect(selectors.SelectSelector):
    """Stands where the loop would wait for sockets: it advances the clock by the time asked for."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stalled("every task waits, and there is no timer to wake one")
        self._clock.advance_ns(math.ceil(timeout * NS_PER_SECOND))
        return []
