"""Helper processes for work that may take long or never end: started when needed, killed at a limit.

One process does one job at a time. Those who ask get their turns one after the other, and how many may wait
is bounded. A process that overran its limit, or died, is replaced when the next job comes; one without work
for a while is let go, so that a broker at rest has none.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from goqueue.model.errors import JobLost, JobOverran, ShuttingDown, WorkshopBusy
from goqueue.model.ports import Job, JobCounts, Threads, Workshop
from goqueue.model.settings import WorkshopConfig
from goqueue.node.workshop_process import WorkshopProcess

logger = logging.getLogger(__name__)
T = TypeVar("T")


class WorkshopProcesses(Workshop):
    """For use from one loop."""

    def __init__(self, config: WorkshopConfig, threads: Threads) -> None:
        self.counts = JobCounts()
        self._config = config
        self._threads = threads
        self._processes: set[WorkshopProcess] = set()
        self._idle: list[WorkshopProcess] = []
        self._busy_count = 0
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By who asks; the first of these has the next turn."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    @property
    def job_limit_ms(self) -> int:
        return self._config.job_limit_ms

    @property
    def process_count(self) -> int:
        return len(self._processes)

    @property
    def waiting_count(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def run(self, job: Job, request: bytes, *, whose: str, limit_ms: int | None = None) -> bytes:
        name = f"{job.__module__}:{job.__qualname__}".encode()
        limit_ms = self.job_limit_ms if limit_ms is None else min(limit_ms, self.job_limit_ms)
        await self._turn(whose)
        # To its end also when nobody waits any more: killing a process for each client that hangs up would
        # cost more than the job.
        return await asyncio.shield(self._keep(self._do(name, request, limit_ms)))

    async def close(self) -> None:
        """End all processes at once; whoever waits for one hears that the broker stops."""
        self._is_closed = True
        for turns in self._waiting.values():
            for turn in turns:
                if not turn.done():
                    turn.set_exception(ShuttingDown())
        self._waiting.clear()
        for process in self._processes:
            process.kill()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for process in tuple(self._processes):
            await self._let_go(process)

    def _keep(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may be gone, and then nobody else looks at it

    async def _turn(self, whose: str) -> None:
        """Wait until a process is free for this job."""
        if self._is_closed:
            raise ShuttingDown
        if self._busy_count < self._config.process_count:
            self._busy_count += 1
            return
        if (waiting_count := self.waiting_count) >= self._config.waiting_max:
            self.counts.refused += 1
            raise WorkshopBusy(waiting_count)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(whose, deque()).append(turn)
        try:
            async with asyncio.timeout(self._config.wait_ms / 1_000):
                await self._wait(whose, turn)
        except TimeoutError:
            self.counts.refused += 1
            raise WorkshopBusy(self.waiting_count + 1) from None

    async def _wait(self, whose: str, turn: "asyncio.Future[None]") -> None:
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(whose, turn)
            elif turn.exception() is None:
                self._next_turn()  # it was given in the same moment
            raise

    def _leave(self, whose: str, turn: "asyncio.Future[None]") -> None:
        theirs = self._waiting.get(whose)
        if theirs is not None and turn in theirs:
            theirs.remove(turn)
            if not theirs:
                del self._waiting[whose]

    def _next_turn(self) -> None:
        """Give the process that has become free to whoever waits: all who ask in their turn."""
        if not self._waiting:
            self._busy_count -= 1
            return
        whose = next(iter(self._waiting))
        theirs = self._waiting.pop(whose)
        turn = theirs.popleft()
        if theirs:
            self._waiting[whose] = theirs  # behind the others
        if turn.done():  # cancelled a moment ago
            self._next_turn()
        else:
            turn.set_result(None)

    async def _do(self, name: bytes, request: bytes, limit_ms: int) -> bytes:
        process = None
        try:
            process = await self._take()
            reply = await process.do(name, request, limit_ms)
            self.counts.done += 1
            return reply
        except JobOverran:
            self.counts.overran += 1
            raise
        except JobLost as error:
            self.counts.lost += 1
            logger.warning("job_lost", extra={"job": name.decode(), "reason": str(error)})
            raise
        finally:
            if process is not None:
                await self._put_away(process)
            self._next_turn()

    async def _take(self) -> WorkshopProcess:
        """A process that is ready: one at rest, or a new one."""
        while self._idle:
            process = self._idle.pop()
            if process.idle_timer is not None:
                process.idle_timer.cancel()
            if process.is_usable:
                return process
            await self._let_go(process)  # it has died in its sleep
        process = WorkshopProcess(self._config, self._threads)
        self._processes.add(process)
        try:
            await process.start()
        except BaseException:
            await self._let_go(process)
            raise
        return process

    async def _put_away(self, process: WorkshopProcess) -> None:
        """Keep a process for the next job, for a while; or let it go when it is of no more use."""
        if not process.is_usable or self._is_closed:
            await self._let_go(process)
            return
        self._idle.append(process)
        loop = asyncio.get_running_loop()
        process.idle_timer = loop.call_later(self._config.idle_ms / 1_000, self._dismiss, process)

    def _dismiss(self, process: WorkshopProcess) -> None:
        if process in self._idle:
            self._idle.remove(process)
            self._keep(self._let_go(process))

    async def _let_go(self, process: WorkshopProcess) -> None:
        await process.end()
        self._processes.discard(process)
