"""Worker threads for what waits for the disk: fsync, cold reads, recovery."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WorkerThreads:
    def __init__(self, *, count: int = 8) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="disk")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = partial(work, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        self._pool.shutdown(wait=True)
