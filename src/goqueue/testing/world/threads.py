"""Threads that are none: work runs on the loop at a time chosen by the seed."""

import asyncio
from collections.abc import Callable
from random import Random

from goqueue.model.ports import P, T, Threads

DELAY_MS_MAX = 20


class SimulatedThreads(Threads):
    """Each piece of work runs whole at some moment after it was handed over, and is reported some time later.

    Both moments are drawn: the work may be done at once and reported late (an fsync that covers nothing
    written since), or begin late (an fsync that covers more). As with real threads, a caller that is
    cancelled does not stop the work.
    """

    def __init__(self, random: Random, *, delay_ms_max: int = DELAY_MS_MAX) -> None:
        self._random = random
        self._delay_s_max = delay_ms_max / 1000

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def do() -> None:
            try:
                result = work(*args, **kwargs)
            except Exception as error:
                loop.call_later(self._delay_s(), _fail, done, error)
            else:
                loop.call_later(self._delay_s(), _succeed, done, result)

        if self._random.random() < 0.5:
            do()
        else:
            loop.call_later(self._delay_s(), do)
        return done

    def _delay_s(self) -> float:
        # Mostly quick, so that a simulation gets on; now and then slow enough to be overtaken.
        return self._random.choice((0.0, 0.0001, 0.001, self._random.uniform(0, self._delay_s_max)))


def _succeed(done: asyncio.Future[T], result: T) -> None:
    if not done.cancelled():
        done.set_result(result)


def _fail(done: asyncio.Future[T], error: Exception) -> None:
    if not done.cancelled():
        done.set_exception(error)
