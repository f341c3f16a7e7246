"""How long the loop is held: the CPU time of the longest step that anything took on it."""

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


class LoopProbe:
    def __init__(self) -> None:
        self.longest_ms = 0.0
        self.longest = ""


@contextmanager
def probed_loop() -> Iterator[LoopProbe]:
    """For asyncio's own loop. CPU time, so that a busy machine does not count."""
    probe = LoopProbe()
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        begun_s = time.thread_time()
        run(handle)
        took_ms = (time.thread_time() - begun_s) * 1_000
        if took_ms > probe.longest_ms:
            probe.longest_ms, probe.longest = took_ms, repr(handle)[:300]

    gc.collect()
    gc.freeze()  # what tests before have left is not this one's
    asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
    try:
        yield probe
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        gc.unfreeze()
