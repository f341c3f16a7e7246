"""Those who wait on the loop for a partition: for bytes to come, or for the disk."""

import asyncio

from goqueue.model.errors import GoQueueError


class ReadWaiter:
    """A reader that waits until enough bytes have come to any of its partitions, or its time is up."""

    __slots__ = ("_missing_bytes", "ready")

    def __init__(self, missing_bytes: int) -> None:
        self._missing_bytes = missing_bytes
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def offer(self, size: int) -> None:
        self._missing_bytes -= size
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        answer(self.ready)


def answer(waiter: "asyncio.Future[None]", error: GoQueueError | None = None) -> None:
    """Let whoever waits go on, or hear of the error. One who has given up meanwhile is passed over."""
    if waiter.done():
        return
    if error is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(error)
        waiter.exception()  # somebody who no longer waits is no bug worth a log line
