"""The watch over open transactions: each is aborted when it has been open for as long as it may, not later.

One timer, set to the first deadline. A timer that has become too early, because that transaction has ended,
is left alone, fires, and is set anew: so a transaction that ends in time costs none.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from goqueue.core.transactions.transactions import Transactions
from goqueue.model.errors import GoQueueError
from goqueue.model.running_time import RunningTime

log = logging.getLogger(__name__)

_AGAIN_MS = 1_000
"""What could not be aborted now is tried again after this."""
Abort = Callable[[str], Awaitable[None]]
"""Aborts what is open under a transactional id, if its time is still over."""


class TransactionWatch:
    def __init__(self, running: RunningTime, all_transactions: Callable[[], Iterable[Transactions]]) -> None:
        self._running = running
        self._all = all_transactions
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._abort: Abort | None = None
        self._keep: Callable[[asyncio.Task[None]], None] = lambda task: None

    def start(self, abort: Abort, keep: Callable[["asyncio.Task[None]"], None]) -> None:
        """Begin to watch; `keep` holds on to the tasks in which transactions are aborted."""
        self._abort, self._keep = abort, keep
        self.look()

    def look(self) -> None:
        """A transaction has begun, or there was time to abort some: see when the next one is due."""
        deadlines = (transactions.next_deadline_ms() for transactions in self._all())
        next_ms = min((time_ms for time_ms in deadlines if time_ms is not None), default=None)
        if next_ms is not None:
            self.expect(next_ms)

    def expect(self, deadline_ms: int) -> None:
        """Something may have to be aborted by then."""
        if self._abort is None or (self._timer is not None and self._timer_ms <= deadline_ms):
            return
        self.close()
        wait_s = max(deadline_ms - self._running.now_ms(), 0) / 1_000
        self._timer_ms = deadline_ms
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._fire)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._keep(asyncio.get_running_loop().create_task(self._abort_overdue()))

    async def _abort_overdue(self) -> None:
        assert self._abort is not None, "no timer is set before the watch has begun"
        overdue = self._overdue()
        for transactional_id in overdue:
            try:
                await self._abort(transactional_id)
            except GoQueueError as error:
                log.warning("transaction_unfinished transaction=%s reason=%s", transactional_id, error)
        if not set(overdue).isdisjoint(self._overdue()):
            # The disk has failed it, or a broker that closes leaves it to the next: never try without pause.
            self.expect(self._running.now_ms() + _AGAIN_MS)
        else:
            self.look()

    def _overdue(self) -> list[str]:
        now_ms = self._running.now_ms()
        return [name for one in self._all() for name in one.overdue(now_ms=now_ms)]
