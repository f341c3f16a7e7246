"""The simulated loop, clock and threads: time passes without waiting, and in the same way every time."""

import asyncio
from collections.abc import Coroutine
from random import Random

import pytest

from goqueue.testing.world.clock import NS_PER_MS, SimulatedClock
from goqueue.testing.world.loop import SimulatedLoop, Stalled
from goqueue.testing.world.threads import SimulatedThreads


def test_a_clock_moves_only_when_told_to() -> None:
    clock = SimulatedClock(wall_ms=1_000, monotonic_ns=5)

    clock.advance_ms(20)

    assert clock.wall_ms() == 1_020
    assert clock.monotonic_ns() == 5 + 20 * NS_PER_MS


def test_setting_the_wall_clock_back_does_not_touch_monotonic_time() -> None:
    clock = SimulatedClock(wall_ms=1_000, monotonic_ns=5)

    clock.step_wall_ms(-400)

    assert clock.wall_ms() == 600
    assert clock.monotonic_ns() == 5


def test_sleeping_for_a_day_takes_a_day_of_the_clock_and_no_time_of_ours() -> None:
    clock = SimulatedClock(wall_ms=0)
    loop = SimulatedLoop(clock)

    loop.run(asyncio.sleep(86_400))

    assert clock.wall_ms() == 86_400_000
    loop.close()


def test_timers_fire_in_the_order_of_their_times() -> None:
    clock = SimulatedClock(wall_ms=0)
    loop = SimulatedLoop(clock)
    fired: list[tuple[str, int]] = []

    async def wait(name: str, delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)
        fired.append((name, clock.wall_ms()))

    async def main() -> None:
        await asyncio.gather(wait("late", 300), wait("early", 100), wait("middle", 200))

    loop.run(main())

    assert fired == [("early", 100), ("middle", 200), ("late", 300)]
    loop.close()


def test_waiting_for_what_cannot_come_is_an_error_and_not_a_hang() -> None:
    loop = SimulatedLoop(SimulatedClock())

    async def wait_forever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stalled):
        loop.run(wait_forever())
    loop.abandon()


def test_real_threads_are_refused() -> None:
    loop = SimulatedLoop(SimulatedClock())

    with pytest.raises(AssertionError, match="SimulatedThreads"):
        loop.run(asyncio.to_thread(print))
    loop.close()


def test_an_error_that_nobody_awaits_is_kept_for_the_simulation_to_see() -> None:
    loop = SimulatedLoop(SimulatedClock())
    error = ValueError("unseen")

    def fail() -> None:
        raise error

    loop.call_soon(fail)
    loop.run(asyncio.sleep(0))

    assert loop.unhandled == [error]
    loop.close()


def test_an_abandoned_loop_ends_its_tasks_in_silence() -> None:
    loop = SimulatedLoop(SimulatedClock())
    reached: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(1_000)
            reached.append("after the crash")
        finally:
            raise OSError("the disk is dead")

    loop.create_task(stubborn())
    loop.run(asyncio.sleep(1))
    loop.abandon()

    assert reached == []
    assert loop.is_closed()


@pytest.mark.filterwarnings("error")
def test_an_abandoned_loop_says_nothing_of_what_had_not_begun() -> None:
    loop = SimulatedLoop(SimulatedClock())
    begun = []

    async def inner() -> None:
        begun.append("inner")

    async def outer(change: Coroutine[object, object, None]) -> None:
        await change

    waiting = loop.create_task(outer(inner()))
    loop.abandon()

    assert (begun, waiting.done()) == ([], False)


def test_work_runs_once_and_its_result_or_error_comes_back() -> None:
    loop = SimulatedLoop(SimulatedClock())
    threads = SimulatedThreads(Random(0))
    calls: list[int] = []

    async def main() -> None:
        for number in range(50):
            await threads.run(calls.append, number)
            with pytest.raises(ZeroDivisionError):
                await threads.run(lambda: 1 // 0)

    loop.run(main())

    assert calls == list(range(50))
    loop.close()


def test_the_caller_may_go_on_before_and_after_the_work_is_done() -> None:
    """What an append during an fsync needs: the work itself is whole, but both ends of the wait are open."""

    def interleaving(seed: int) -> tuple[str, ...]:
        loop = SimulatedLoop(SimulatedClock())
        threads = SimulatedThreads(Random(seed))
        story: list[str] = []

        async def main() -> None:
            waiting = asyncio.ensure_future(threads.run(story.append, "work"))
            await asyncio.sleep(0)
            story.append("meanwhile")
            await waiting
            story.append("heard")

        loop.run(main())
        loop.close()
        return tuple(story)

    seen = {interleaving(seed) for seed in range(30)}

    assert seen == {("work", "meanwhile", "heard"), ("meanwhile", "work", "heard")}


def test_a_cancelled_caller_does_not_stop_the_work() -> None:
    for seed in range(20):
        loop = SimulatedLoop(SimulatedClock())
        threads = SimulatedThreads(Random(seed))
        done: list[str] = []

        async def main(threads: SimulatedThreads = threads, done: list[str] = done) -> None:
            waiting = asyncio.ensure_future(threads.run(done.append, "work"))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.sleep(1)

        loop.run(main())
        assert done == ["work"]
        loop.close()
