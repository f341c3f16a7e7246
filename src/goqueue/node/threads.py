"""Worker threads for what waits for the disk: fsync, cold reads, recovery.

A commit waits for one hand-over to a thread and back, so the way there is short: a queue, and one call
into the loop. ThreadPoolExecutor adds a future with a lock and two more callbacks to each.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Work(NamedTuple):
    call: Callable[[], object]
    done: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop


class WorkerThreads:
    """So many threads at most, each started when the others are busy. For use from one loop."""

    def __init__(self, *, count: int = 8) -> None:
        self._count_max = count
        self._threads: list[Thread] = []
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._unfinished = 0
        self._is_closed = False

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        """Do something in a thread. Given up before a thread was free for it, it is not done at all."""
        if self._is_closed:
            raise RuntimeError("these threads have ended")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._unfinished += 1
        if len(self._threads) < min(self._unfinished, self._count_max):
            self._start_thread()
        self._queue.put(_Work(partial(work, *args, **kwargs), done, loop))
        return done

    def close(self) -> None:
        """Finish what was begun, and end."""
        self._is_closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _start_thread(self) -> None:
        # A process that is told to end at once does not wait for them: what was not answered is not promised.
        thread = Thread(target=self._serve, name=f"disk_{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            call, done, loop = work
            result: object = None
            failure: BaseException | None = None
            if not done.cancelled():
                try:
                    result = call()
                except BaseException as error:  # whatever it is, it belongs to whoever waits
                    failure = error
            with suppress(RuntimeError):  # the loop has been closed: nobody waits
                loop.call_soon_threadsafe(self._finish, done, result, failure)
            # An idle thread holds on to nothing, or a large read would stay in memory.
            del work, call, done, loop, result, failure

    def _finish(self, done: "asyncio.Future[object]", result: object, failure: BaseException | None) -> None:
        self._unfinished -= 1
        if done.cancelled():
            return
        if failure is None:
            done.set_result(result)
        else:
            done.set_exception(failure)
