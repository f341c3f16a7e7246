"""Those who wait on the loop for a partition: for bytes to come, or for the disk."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection

from goqueue.model.errors import GoQueueError

_AT_ONCE = 16
"""So many are woken in one turn of the loop: what each of them then does may take a fraction of a ms."""


class ReadWaiter:
    """A reader that waits until enough bytes have come to any of its partitions, or its time is up."""

    __slots__ = ("_missing_bytes", "ready")

    def __init__(self, missing_bytes: int) -> None:
        self._missing_bytes = missing_bytes
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def offer(self, size: int, source: object) -> None:
        """So many bytes have come to a partition."""
        self._missing_bytes -= size
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        answer(self.ready)


def tell_in_turn(waiters: Collection[ReadWaiter], tell: Callable[[ReadWaiter], None]) -> None:
    """Tell those who wait, in the order they came; when they are many, a few in each turn of the loop."""
    if len(waiters) <= _AT_ONCE:
        for waiter in tuple(waiters):
            tell(waiter)
    else:
        _tell_some(deque(waiters), tell)


def _tell_some(left: deque[ReadWaiter], tell: Callable[[ReadWaiter], None]) -> None:
    for _ in range(min(_AT_ONCE, len(left))):
        tell(left.popleft())
    if left:
        asyncio.get_running_loop().call_soon(_tell_some, left, tell)


def answer(waiter: "asyncio.Future[None]", error: GoQueueError | None = None) -> None:
    """Let whoever waits go on, or hear of the error. One who has given up meanwhile is passed over."""
    if waiter.done():
        return
    if error is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(error)
        waiter.exception()  # somebody who no longer waits is no bug worth a log line
