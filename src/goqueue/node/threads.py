"""Worker threads for what waits for the disk: fsync, cold reads, recovery.

A commit waits for one hand-over to a thread and back, so the way there is short: a queue, and one call
into the loop. ThreadPoolExecutor adds a future with a lock and two more callbacks to each.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from errno import EINVAL
from functools import partial
from itertools import cycle
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, ParamSpec, TypeVar

from goqueue.model.ports import PlacedFile
from goqueue.node.disk import DiskPlacedFile
from goqueue.node.kernel_syncs import KernelSyncs, open_kernel_syncs

P = ParamSpec("P")
T = TypeVar("T")


class _Work(NamedTuple):
    call: Callable[[], object]
    done: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop
    finish: Callable[..., None]
    """Told on the loop what came of it."""


class _Worker:
    """A thread and the work that it is given, one piece at a time."""

    def __init__(self, number: int) -> None:
        self.given: SimpleQueue[_Work | None] = SimpleQueue()
        # A process that is told to end at once does not wait for it: what was not answered is not promised.
        self.thread = Thread(target=self._serve, name=f"disk_{number}", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while (work := self.given.get()) is not None:
            call, done, loop, finish = work
            result: object = None
            failure: BaseException | None = None
            if not done.cancelled():
                try:
                    result = call()
                except BaseException as error:  # whatever it is, it belongs to whoever waits
                    failure = error
            with suppress(RuntimeError):  # the loop has been closed: nobody waits
                loop.call_soon_threadsafe(finish, self, done, result, failure)
            # An idle thread holds on to nothing, or a large read would stay in memory.
            del work, call, done, loop, finish, result, failure


class WorkerThreads:
    """So many threads at most, each started when the others are busy. For use from one loop.

    Work goes to the thread that was busy last: what it needs is still in the processor's caches.
    """

    def __init__(self, *, count: int = 8) -> None:
        self._count_max = count
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._waiting: deque[_Work] = deque()
        """What is to be done when a thread is free."""
        self._is_closed = False
        self._has_looked = False
        self._kernel_syncs: KernelSyncs | None = None

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        """Do something in a thread. Given up before a thread was free for it, it is not done at all."""
        if self._is_closed:
            raise RuntimeError("these threads have ended")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        asked = _Work(partial(work, *args, **kwargs), done, loop, self._finish)
        if not self._idle and len(self._workers) < self._count_max:
            self._workers.append(_Worker(len(self._workers)))
            self._idle.append(self._workers[-1])
        if self._idle:
            self._idle.pop().given.put(asked)
        else:
            self._waiting.append(asked)
        return done

    def sync(self, file: PlacedFile) -> "asyncio.Future[None]":
        """Have a file synced, without a thread where the kernel can do it by itself."""
        if not self._has_looked:
            self._has_looked = True
            self._kernel_syncs = open_kernel_syncs(asyncio.get_running_loop())
        kernel = self._kernel_syncs
        if kernel is None or kernel.is_busy or not isinstance(file, DiskPlacedFile):
            return self.run(file.sync)
        try:
            return kernel.begin(file.descriptor)
        except OSError as error:
            if error.errno == EINVAL:  # an old kernel, or a file system that cannot: it will not learn it
                kernel.close()
                self._kernel_syncs = None
            return self.run(file.sync)

    def close(self) -> None:
        """Finish what was begun, and end."""
        self._is_closed = True
        if self._kernel_syncs is not None:
            self._kernel_syncs.close()
            self._kernel_syncs = None
        for worker, work in zip(cycle(self._workers), self._waiting, strict=False):
            worker.given.put(work)
        self._waiting.clear()
        for worker in self._workers:
            worker.given.put(None)
        for worker in self._workers:
            worker.thread.join()
        self._workers.clear()
        self._idle.clear()

    def _finish(
        self, worker: _Worker, done: "asyncio.Future[object]", result: object, failure: BaseException | None
    ) -> None:
        if self._waiting:
            worker.given.put(self._waiting.popleft())
        else:
            self._idle.append(worker)
        if done.cancelled():
            return
        if failure is None:
            done.set_result(result)
        else:
            done.set_exception(failure)
