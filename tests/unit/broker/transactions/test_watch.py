"""The watch over open transactions, by itself: when it fires, and that it never spins."""

import asyncio

from goqueue.broker.transactions.watch import TransactionWatch
from goqueue.core.transactions.transactions import Transactions
from goqueue.model.running_time import RunningTime
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.loop import SimulatedLoop

LATE_MS = 10_000


class Overdue(Transactions):
    """One transaction whose time is over, whatever is done about it."""

    def __init__(self, deadline_ms: int) -> None:
        super().__init__()
        self._deadlines = {"clerk": deadline_ms}


def test_what_is_not_aborted_although_its_time_is_over_is_tried_again_a_second_later() -> None:
    clock = SimulatedClock()
    loop = SimulatedLoop(clock)
    running = RunningTime(clock)
    transactions = Overdue(running.now_ms() - LATE_MS)
    tried_ms: list[int] = []

    async def leave_it(transactional_id: str) -> None:
        """As a broker that is closing does: whoever opens it next will see to it."""
        tried_ms.append(clock.monotonic_ns() // 1_000_000)

    async def watch_for_a_while() -> None:
        watch = TransactionWatch(running, lambda: [transactions])
        watch.start(leave_it, lambda task: None)
        # As many turns as a watch that spins would use up without any time passing.
        while len(tried_ms) < 3:
            await asyncio.sleep(0.1)
        watch.close()

    loop.run(asyncio.wait_for(watch_for_a_while(), 60))
    loop.abandon()

    assert tried_ms == [0, 1_000, 2_000]
