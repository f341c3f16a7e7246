"""One disk and brokers that live on it one after the other, each until its power is cut."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.opening import open_broker
from goqueue.model.settings import BrokerConfig
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.faults import PowerCut
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.threads import SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand

T = TypeVar("T")
Work = Callable[[Broker], Awaitable[T]]
NEVER = 10_000


class PowerLost(Exception):
    """The work did not come to its end."""


class Lives:
    """One disk, and brokers that live on it one after the other, each until its power is cut."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.disk = SimulatedDisk(self._random)
        self.clock = SimulatedClock()

    def live(self, work: Work[T], *, cut_after: int = NEVER, is_killed: bool = False) -> T:
        """Open a broker and do some work. PowerLost when the cut, so many changes on, came first."""
        loop = SimulatedLoop(self.clock)
        try:
            return loop.run(self._live(work, cut_after))
        finally:
            self.disk = self.disk.kill() if is_killed else self.disk.crash()
            loop.abandon()

    async def _live(self, work: Work[T], cut_after: int) -> T:
        power_lost = asyncio.get_running_loop().create_future()
        # Opening changes little: the cut may well come before it is done.
        self.disk.faults.cut_power(after_changes=cut_after, on_power_cut=lambda: power_lost.set_result(None))

        async def open_and_work() -> T:
            broker = await open_broker(
                config=BrokerConfig(),
                disk=self.disk,
                clock=self.clock,
                threads=SimulatedThreads(self._random),
                workshop=WorkshopAtHand(),
                chance=self._random,
            )
            return await work(broker)

        working = asyncio.ensure_future(open_and_work())
        await asyncio.wait({working, power_lost}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done() or isinstance(working.exception(), PowerCut):
            raise PowerLost
        return working.result()
