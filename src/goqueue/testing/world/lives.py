"""One simulated loop on which several nodes live, each for as long as it does.

Tasks and callbacks belong to the life in whose context they were made. A life that has ended runs none of
them: what it was about to do does not happen, and the others go on.
"""

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.loop import SimulatedLoop, bury

T = TypeVar("T")
_HERE: "ContextVar[Life | None]" = ContextVar("life", default=None)


class Life:
    """Whom tasks and callbacks belong to."""

    def __init__(self) -> None:
        self.is_over = False
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.context = copy_context()
        self.context.run(_HERE.set, self)

    def begin(self, work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
        """Have something done in this life."""
        loop = asyncio.get_running_loop()
        return self.context.copy().run(loop.create_task, work)

    def end(self) -> None:
        """Nothing of it happens any more. Kill its disk first: the last words of its tasks are still said."""
        self.is_over = True
        with warnings.catch_warnings():
            # Nor does anyone hear of what had not begun yet.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            for task in tuple(self.tasks):
                self.context.copy().run(bury, task)
        self.tasks.clear()


class LoopOfLives(SimulatedLoop):
    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__(clock)
        self.set_task_factory(_make_task)

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        # An empty context is falsy, and means nobody's life, not the one of whoever calls.
        context = copy_context() if context is None else context
        return super().call_soon(_guarded(callback, context), *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        return super().call_at(when, _guarded(callback, context), *args, context=context)


def _make_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T] | Generator[Any, None, T], **options: Any
) -> "asyncio.Task[T]":
    assert isinstance(work, Coroutine), "no tasks of generators here"
    task = asyncio.Task(work, loop=loop, **options)
    context = options.get("context")
    life = _HERE.get() if context is None else context.get(_HERE)
    if life is not None:
        life.tasks[task] = None
        task.add_done_callback(lambda done: life.tasks.pop(done, None))
    return task


def _guarded(callback: Callable[..., object], context: Context) -> Callable[..., object]:
    life = context.get(_HERE)
    if life is None:
        return callback

    def run(*args: object) -> None:
        if not life.is_over:
            callback(*args)

    return run
