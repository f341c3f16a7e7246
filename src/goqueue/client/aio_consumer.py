"""`AsyncConsumer`: a member of a group that takes messages with leases, on an asyncio loop.

A task of its own gives signs of life, sends acknowledgements by the hundred, and extends leases.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType

import msgspec

from goqueue.client.calls import queue
from goqueue.client.consumer_settings import ConsumerSettings
from goqueue.client.membership import Idleness, Leased, Membership, logger
from goqueue.client.nouns import AsyncCarrier
from goqueue.client.steps import PROBLEMS, take_async
from goqueue.client.times import Duration, milliseconds
from goqueue.model.errors import Invalid

_NS_PER_S = 1_000_000_000


class AsyncDelivered(Leased, frozen=True, kw_only=True):
    """A message that is out with this consumer until it settles it, or its time is up.

    In an `async with` block it is acknowledged at the end, unless it was settled there. An exception gives it
    back with the exception's text as the reason; it is logged and goes no further, unless the consumer was
    made with `raise_errors`.
    """

    _consumer: "AsyncConsumer"

    async def ack(self, *, wait: bool = False) -> None:
        """It is done. The node hears of it within some milliseconds; with `wait`, before this returns."""
        await self._consumer._ack(self, wait=wait)

    async def nack(self, *, delay: Duration | None = None, reason: str | None = None) -> None:
        """Deliver it again: after `delay`, or else after the topic's back-off."""
        await self._consumer._settle(queue.nack([self.receipt], delay=delay, reason=reason), self)

    async def reject(self, reason: str | None = None) -> None:
        """Put it aside as a dead letter."""
        await self._consumer._settle(queue.reject([self.receipt], reason=reason), self)

    async def extend(self, visibility: Duration) -> None:
        """It takes longer: keep it hidden from others for so long from now."""
        await self._consumer._extend(self, visibility)

    async def __aenter__(self) -> "AsyncDelivered":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._is_in_transaction:
            return False  # which is to hear of the problem, and then gives the message back
        if problem is None:
            await self._consumer._finish(self)
            return False
        return await self._consumer._failed(self, problem)


class AsyncConsumer:
    """Messages of topics, each delivered to one member of the group at a time.

    Use it in an `async with` block and go through it with `async for`, or `poll`. `stop` from another task,
    or from `loop.add_signal_handler`, ends an iteration.
    """

    def __init__(self, carrier: AsyncCarrier, settings: ConsumerSettings) -> None:
        self._settings = settings
        self._carrier = carrier
        self._membership = Membership(settings, now_ns=time.monotonic_ns())
        self._fetched: deque[AsyncDelivered] = deque()
        self._polling = asyncio.Lock()
        self._poll: asyncio.Task[list[AsyncDelivered]] | None = None
        self._is_waiting = False
        """Whether it is a poll that a node holds, which may be interrupted. Joining may not."""
        self._keeping = asyncio.Lock()
        self._wake = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._is_closed = False
        self._has_left = False

    @property
    def lost_count(self) -> int:
        """Acknowledgements that came too late: their messages are delivered again."""
        return self._membership.lost_count

    async def __aenter__(self) -> "AsyncConsumer":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except PROBLEMS:
            if problem is None:
                raise
            logger.warning("a consumer could not be closed properly", exc_info=True)

    async def __aiter__(self) -> AsyncIterator[AsyncDelivered]:
        idleness = Idleness(self._settings, now_ns=time.monotonic_ns())
        while not self._is_stopped:
            if not self._fetched:
                self._fetched.extend(await self.poll(wait=self._settings.wait_s))
            if self._fetched:
                yield self._fetched.popleft()
                idleness.ended(now_ns=time.monotonic_ns())
            elif idleness.is_over(now_ns=time.monotonic_ns()):
                return

    async def poll(self, *, limit: int | None = None, wait: Duration = 0.0) -> list[AsyncDelivered]:
        """Take messages; with none to take, wait for up to `wait` (60 s at most). Joins the group first.

        When this is cancelled no message is lost: what the node has given out meanwhile is for the next poll.
        """
        count = limit or self._settings.limit
        async with self._polling:
            if self._is_closed:
                raise Invalid("the consumer is closed")
            self._begin()
            if not self._fetched:
                await self._fetch(count, wait)
            return [self._fetched.popleft() for _ in range(min(count, len(self._fetched)))]

    async def _fetch(self, count: int, wait: Duration) -> None:
        was_left_behind = self._poll is not None
        polling = self._poll = self._poll or asyncio.create_task(self._take(count, wait), name="goqueue-poll")
        # Unlike `await`, this does not cancel what it waits for. One that was left behind may wait longer.
        wait_s = milliseconds(wait) / 1_000 if was_left_behind else None
        await asyncio.wait([polling], timeout=wait_s)
        if not polling.done():
            return
        self._poll = None
        if not polling.cancelled():  # by `stop`
            self._fetched.extend(polling.result())

    async def _take(self, count: int, wait: Duration) -> list[AsyncDelivered]:
        await take_async(self._membership.join(), self._carrier)
        if self._is_stopped:
            return []
        self._is_waiting = True
        try:
            polled = await take_async(self._membership.poll(limit=count, wait=wait), self._carrier)
        finally:
            self._is_waiting = False
        self._membership.took(polled, now_ns=time.monotonic_ns())
        self._wake.set()
        return [
            AsyncDelivered(
                *msgspec.structs.astuple(one.message),
                receipt=one.receipt,
                delivery_count=one.delivery_count,
                _membership=self._membership,
                _consumer=self,
            )
            for one in polled
        ]

    async def flush(self) -> None:
        """Send all acknowledgements that wait."""
        async with self._keeping:
            await take_async(self._membership.flush(time.monotonic_ns()), self._carrier)

    def stop(self) -> None:
        """End an iteration, also while it waits: for other tasks and for signal handlers.

        What is left to do is done by `close`, and that by the end of the `async with` block.
        """
        self._is_stopped = True
        if self._poll is not None and self._is_waiting:
            self._poll.cancel()

    async def close(self) -> None:
        """Give back what was not looked at, send what waits, leave the group. A second time is no error.

        Where the first time was cancelled or failed, the second does the rest.
        """
        if self._has_left:
            return
        self._is_closed = True
        self.stop()
        async with self._polling:  # a poll under way ends now
            if self._has_left:
                return  # another task was quicker
            if self._poll is not None:
                # And so does one whose caller was cancelled, and wants to hear no more.
                await asyncio.wait([self._poll])
                with suppress(*PROBLEMS):
                    await self._fetch(self._settings.limit, 0)
            if self._keeper is not None:
                self._keeper.cancel()  # what it was about is done below
                await asyncio.wait([self._keeper])
            unseen = [message.receipt for message in self._fetched]
            await take_async(self._membership.leave(unseen, time.monotonic_ns()), self._carrier)
            self._fetched.clear()
            self._has_left = True

    def _begin(self) -> None:
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep_up(), name="goqueue-consumer")

    async def _finish(self, message: AsyncDelivered) -> None:
        if self._membership.is_open(message.receipt):
            await self._ack(message, wait=False)

    async def _ack(self, message: AsyncDelivered, *, wait: bool) -> None:
        if wait or self._is_closed:  # then nobody is there to send it later
            await self._settle(queue.ack([message.receipt]), message)
        else:
            self._membership.ack(message.receipt, now_ns=time.monotonic_ns())
            self._wake.set()

    async def _settle(self, call: queue.Settling, message: AsyncDelivered) -> None:
        await take_async(self._membership.settle(call, message.receipt), self._carrier)

    async def _extend(self, message: AsyncDelivered, visibility: Duration) -> None:
        now_ns = time.monotonic_ns()
        await take_async(self._membership.extend(message.receipt, visibility, now_ns=now_ns), self._carrier)

    async def _failed(self, message: AsyncDelivered, problem: BaseException) -> bool:
        return await take_async(self._membership.fail(message, problem), self._carrier)

    async def _keep_up(self) -> None:
        while True:
            due_ns = self._membership.upkeep_in_ns(time.monotonic_ns())
            if due_ns:
                await self._woken(due_ns / _NS_PER_S)
                continue
            try:
                async with self._keeping:
                    await take_async(self._membership.upkeep(time.monotonic_ns()), self._carrier)
            except PROBLEMS as problem:
                logger.warning("a consumer's upkeep has failed and is tried again: %s", problem)

    async def _woken(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()
