"""How long a piece of work holds the loop, told in CPU time of a machine that is not busy.

A callback that comes round in every turn of the loop notes how much CPU the loop's thread has spent since it
was last there. Nobody else is served within a turn: the longest one is what another client may have to wait
because of the work, whatever loop it is and however many callbacks the turn had. The loop spins meanwhile.

Cores that are shared take more CPU time for the same work. So a piece of work whose time is known is done as
well, and what was measured is told as it would have been had that one taken its usual time.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Coroutine
from operator import itemgetter
from random import Random
from typing import Any

HOLD_MS_MAX = 30.0
"""What tests let one request hold the loop for: the rule says 20, and a busy machine measures half more."""
_NS_PER_MS = 1e6
_YARDSTICK_NS = 3_300_000
"""What `_known_work_ns` finds on a core that has nothing else to do."""
_NUMBERS = [Random(7).random() + number for number in range(5_000)]


class HoldWatch:
    """Watches the turns of the running loop between `begin` and `end`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._seen_ns = 0
        self._longest_ns = 0

    def begin(self) -> None:
        # What was there before belongs to nobody's request: a collection would look through all of it. It
        # stays put aside, since to look through it again for every watch would take longer than the work.
        gc.collect()
        gc.freeze()
        self._seen_ns = time.thread_time_ns()
        self._loop.call_soon(self._come_round)

    def end(self) -> float:
        """The longest turn, in milliseconds of CPU, less what a busy machine adds to it."""
        self._is_over = True
        self._note()
        slowness = max(min(_known_work_ns() for _ in range(3)) / _YARDSTICK_NS, 1.0)
        return self._longest_ns / _NS_PER_MS / slowness

    def _come_round(self) -> None:
        if not self._is_over:
            self._note()
            self._loop.call_soon(self._come_round)

    def _note(self) -> None:
        now_ns = time.thread_time_ns()
        self._longest_ns = max(self._longest_ns, now_ns - self._seen_ns)
        self._seen_ns = now_ns


def _known_work_ns() -> int:
    """How long work of the kind that brokers do takes now: many small objects, tables and sorting."""
    begun_ns = time.thread_time_ns()
    pairs = [(str(number), number) for number in _NUMBERS]
    numbers, both = dict(pairs), frozenset(pairs)
    pairs.sort(key=itemgetter(1), reverse=True)
    assert all(numbers[pair[0]] == pair[1] for pair in pairs if pair in both)
    return time.thread_time_ns() - begun_ns


async def longest_hold(
    work: Callable[[], Awaitable[object]], *, runs: int = 3, enough_ms: float = 0.0
) -> float:
    """For how many milliseconds of CPU the work holds the loop in one piece, in the best of some runs.

    What happens by chance, as a collection of garbage does, is not in every run; what the work does is. A run
    of less than `enough_ms` is the last.
    """
    holds = []
    for _ in range(runs):
        watch = HoldWatch()
        watch.begin()
        try:
            await work()
        finally:
            holds.append(watch.end())
        if holds[-1] < enough_ms:
            break
    return min(holds)


def longest_hold_by_others(
    run: Callable[[Coroutine[Any, Any, Any]], Any], work: Callable[[], object], *, runs: int = 3
) -> float:
    """The same for what clients do outside of the loop; `run` does something inside and waits for it."""
    holds: list[float] = []
    for _ in range(runs):
        watch: HoldWatch = run(_begun_watch())
        work()
        holds.append(run(_ended_watch(watch)))
    return min(holds)


async def _begun_watch() -> HoldWatch:
    watch = HoldWatch()
    watch.begin()
    return watch


async def _ended_watch(watch: HoldWatch) -> float:
    return watch.end()
