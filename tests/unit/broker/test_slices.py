"""Long work lets others have the loop when its slice is over, and not before."""

import asyncio
from collections.abc import Generator

from goqueue.broker.slices import Slices
from goqueue.testing.world.clock import SimulatedClock


def test_others_run_when_a_slice_is_over() -> None:
    clock = SimulatedClock()
    turns: list[str] = []

    async def work() -> None:
        slices = Slices(clock, slice_ms=4)
        for step in range(4):
            clock.advance_ms(2)
            turns.append(f"work {step}")
            await slices.pause()

    async def both() -> None:
        other = asyncio.get_running_loop().create_task(_note(turns))
        await work()
        await other

    asyncio.run(both())

    assert turns == ["work 0", "work 1", "other", "work 2", "work 3"]


def test_work_of_a_machine_that_stops_now_and_then_is_walked_with_pauses() -> None:
    clock = SimulatedClock()
    turns: list[str] = []

    def steps() -> Generator[None, None, str]:
        for step in range(3):
            clock.advance_ms(5)
            turns.append(f"step {step}")
            yield
        return "done"

    async def both() -> str:
        other = asyncio.get_running_loop().create_task(_note(turns))
        result = await Slices(clock, slice_ms=4).walk(steps())
        await other
        return result

    assert asyncio.run(both()) == "done"
    assert turns == ["step 0", "other", "step 1", "step 2"]


async def _note(turns: list[str]) -> None:
    turns.append("other")
