"""One helper process as the broker sees it: started, given a job, waited for, ended."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

from goqueue.model.errors import JobLost, JobOverran, ShuttingDown
from goqueue.model.ports import Threads
from goqueue.model.settings import WorkshopConfig
from goqueue.node import workshop_bench
from goqueue.node.workshop_bench import DONE, OUT_OF_MEMORY, READY, REPLY_HEAD, REQUEST_HEAD, WALL_FACTOR

_START_S = 30
"""A process that is not ready by then never will be."""
_BY_LIMIT = (-signal.SIGPROF, -signal.SIGALRM)
_BY_ITSELF = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE)
"""A library that finds no memory, or has a bug, ends so: the same job would do it again."""


class WorkshopProcess:
    def __init__(self, config: WorkshopConfig, threads: Threads) -> None:
        self._config = config
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._is_spent = False
        """It has overrun, is used up, or is being ended."""
        self._is_stopped = False
        self.idle_timer: asyncio.TimerHandle | None = None

    @property
    def is_usable(self) -> bool:
        """Whether it can be given a job."""
        return not self._is_spent and self._reader is not None and not self._reader.at_eof()

    async def start(self) -> None:
        """Start it, and return when it waits for jobs."""
        ours, theirs = socket.socketpair()
        try:
            # Not on the loop: the call returns when the new program runs. The thread must live on, because to
            # the kernel it is the parent with which the process ends.
            self._process = await self._threads.run(_spawn, theirs, self._config.memory_bytes)
        except OSError as error:
            ours.close()
            raise JobLost(f"no helper process could be started: {error}") from error
        finally:
            theirs.close()
        if self._is_stopped:  # while it was being started
            self.kill()
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        try:
            async with asyncio.timeout(_START_S):
                await self._reader.readexactly(len(READY))
        except (TimeoutError, EOFError, OSError) as error:
            self._is_spent = True
            if self._is_stopped:
                raise ShuttingDown from error
            raise JobLost("a helper process could not be started") from error

    async def do(self, name: bytes, request: bytes, limit_ms: int) -> bytes:
        """What a job makes of a request."""
        assert self._reader is not None and self._writer is not None, "it has been started"
        try:
            async with asyncio.timeout(WALL_FACTOR * limit_ms / 1_000):
                self._writer.write(REQUEST_HEAD.pack(limit_ms, len(name), len(request)) + name + request)
                await self._writer.drain()
                head = await self._reader.readexactly(REPLY_HEAD.size)
                status, is_used_up, length = REPLY_HEAD.unpack(head)
                body = await self._reader.readexactly(length)
        except TimeoutError as error:
            self.kill()
            raise JobOverran(f"the job took more than {WALL_FACTOR * limit_ms} ms by the clock") from error
        except (EOFError, OSError) as error:
            self._is_spent = True
            raise await self._reason(limit_ms) from error
        except BaseException:
            self.kill()
            raise
        self._is_spent = bool(is_used_up)
        if status == DONE:
            return body
        if status == OUT_OF_MEMORY:
            self._is_spent = True
            raise JobOverran(f"the job took more than {self._config.memory_bytes} bytes of memory")
        raise JobLost(f"the job failed: {body.decode()}")

    def kill(self) -> None:
        """End it whatever it does."""
        self._is_spent = self._is_stopped = True
        if self._process is not None:
            self._process.kill()

    async def end(self) -> None:
        """Let it go, and leave nothing of it behind."""
        self._is_spent = True
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        if self._process is None:
            return
        self._process.kill()
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        await self._threads.run(self._process.wait)

    async def _reason(self, limit_ms: int) -> JobOverran | JobLost | ShuttingDown:
        """Why it has ended in the middle of a job."""
        if self._is_stopped:
            return ShuttingDown()
        assert self._process is not None, "it has been started"
        code = await self._threads.run(self._process.wait)
        if code in _BY_LIMIT:
            return JobOverran(f"the job took more than {limit_ms} ms of CPU time")
        if code in _BY_ITSELF:
            return JobOverran(f"the job brought its process down ({signal.Signals(-code).name})")
        return JobLost(f"the helper process has ended with code {code}")


def _spawn(theirs: socket.socket, memory_bytes: int) -> "subprocess.Popen[bytes]":
    # -P: nothing of the folder that the broker was started in is imported.
    words = [sys.executable, "-P", "-m", workshop_bench.__name__]
    numbers = map(str, (theirs.fileno(), memory_bytes, os.getpid()))
    return subprocess.Popen(
        [*words, *numbers], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
    )
