"""Long work lets others have the loop when its slice is over, and not before."""

import asyncio

from goqueue.broker.slices import Slices
from goqueue.testing.clock import SimulatedClock


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


async def _note(turns: list[str]) -> None:
    turns.append("other")
