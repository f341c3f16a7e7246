"""Followers that ask their leaders again: soon where they are few, seldom where all would be busy with it."""

import asyncio
from collections.abc import Coroutine

from goqueue.broker.replication.follower import LATER_S, Asking
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.loop import SimulatedLoop


class _Busy:
    """A follower for which it takes a while to ask, and who is refused each time."""

    def __init__(self, asking: Asking, clock: SimulatedClock, *, takes_ms: int) -> None:
        self._asking = asking
        self._clock = clock
        self._takes_ms = takes_ms
        self.asked = 0

    def ask(self) -> None:
        self.asked += 1
        self._clock.advance_ms(self._takes_ms)
        self._asking.later(self.ask)


def run(clock: SimulatedClock, story: Coroutine[object, object, None]) -> None:
    SimulatedLoop(clock).run(story)


def test_whoever_was_refused_asks_again_after_a_while_and_once() -> None:
    clock = SimulatedClock()

    async def story() -> None:
        asking = Asking(clock)
        asked: list[str] = []

        def ask() -> None:
            asked.append("again")

        asking.later(ask)
        asking.later(ask)
        await asyncio.sleep(LATER_S / 2)
        assert asked == []
        await asyncio.sleep(LATER_S)
        assert asked == ["again"]

    run(clock, story())


def test_thousands_that_are_refused_leave_most_of_the_time_to_others() -> None:
    clock = SimulatedClock()

    async def story() -> None:
        asking = Asking(clock)
        followers = [_Busy(asking, clock, takes_ms=1) for _ in range(1_000)]
        for follower in followers:
            asking.later(follower.ask)

        await asyncio.sleep(60)
        asking.close()

        spent_ms = sum(follower.asked for follower in followers)
        assert 10_000 < spent_ms < 20_000

    run(clock, story())


def test_nobody_asks_behind_the_end() -> None:
    clock = SimulatedClock()

    async def story() -> None:
        asking = Asking(clock)
        follower = _Busy(asking, clock, takes_ms=1)
        asking.later(follower.ask)
        asking.close()
        asking.later(follower.ask)

        await asyncio.sleep(10)
        assert follower.asked == 0

    run(clock, story())
