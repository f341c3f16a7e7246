"""`AsyncProducer`: messages go out in batches, by a task of its own."""

import asyncio
import time
from types import TracebackType

from goqueue.client.courier import Courier
from goqueue.client.messages import Content, GivenHeaders, Json, Placed, Priority, to_store
from goqueue.client.nouns import AsyncCarrier
from goqueue.client.outbox import Outbox, ProducerSettings, fail, fail_all
from goqueue.client.steps import take_async
from goqueue.model.errors import Busy, Invalid

_NS_PER_S = 1_000_000_000


class AsyncProducer:
    """Sends messages in batches, each stored once however often it has to be sent.

    Use it in an `async with` block: its end waits until all has been answered.
    """

    def __init__(self, carrier: AsyncCarrier, settings: ProducerSettings) -> None:
        self._carrier = carrier
        self._outbox = Outbox(settings)
        self._courier = Courier(acks=settings.acks)
        self._changed = asyncio.Condition()
        self._is_closed = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "AsyncProducer":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(
        self,
        topic: str,
        value: Content | Json,
        *,
        key: Content = None,
        headers: GivenHeaders = (),
        partition: int | None = None,
        priority: Priority | None = None,
        timeout_s: float | None = None,
    ) -> "asyncio.Future[Placed]":
        """Hand a message over; awaiting what this gives tells its place, or what went wrong with it.

        While the buffer is full this waits for room; with `timeout_s` no longer than that, and raises Busy.
        """
        message = to_store(value, key=key, headers=headers, partition=partition, priority=priority)
        self._begin()
        async with self._changed:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait_for(lambda: self._is_closed or self._outbox.has_room)
            except TimeoutError as late:
                raise Busy(
                    f"the producer's buffer has been full for {timeout_s} s: send less, or wait longer"
                ) from late
            if self._is_closed:
                raise Invalid("the producer is closed")
            future: asyncio.Future[Placed] = asyncio.get_running_loop().create_future()
            if self._outbox.add(topic, message, future, now_ns=time.monotonic_ns()):
                self._changed.notify_all()
        return future

    async def flush(self) -> None:
        """Wait until all that was sent has been answered. What went wrong is told by the futures."""
        async with self._changed:
            self._outbox.flush()
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._outbox.is_empty)

    async def close(self) -> None:
        """Take nothing more, flush, and end. A second time is no error."""
        async with self._changed:
            self._is_closed = True
            self._outbox.flush()
            self._changed.notify_all()
        if self._task is not None:
            # Who tires of waiting for it does not end it: that would leave others waiting for ever.
            await asyncio.wait([self._task])

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="goqueue-producer")

    async def _work(self) -> None:
        while True:
            async with self._changed:
                parcel = self._outbox.take(time.monotonic_ns())
                while parcel is None:
                    if self._is_closed and self._outbox.is_empty:
                        return
                    await self._wait_for_more()
                    parcel = self._outbox.take(time.monotonic_ns())
            now_ns, now_ms = time.monotonic_ns(), time.time_ns() // 1_000_000
            answered = [parcel]
            steps = self._courier.deliver(parcel, now_ns=now_ns, now_ms=now_ms)
            try:
                silence = await take_async(steps, self._carrier)
            except Exception as problem:
                # A bug of ours must not leave anybody waiting for ever.
                fail(parcel.waiting, problem)
            else:
                if silence is not None:
                    overdue = self._outbox.take_older(than_ns=now_ns)
                    fail_all(overdue, silence)
                    answered += overdue
            async with self._changed:
                self._outbox.answered(*answered)
                self._changed.notify_all()

    async def _wait_for_more(self) -> None:
        due_ns = self._outbox.due_in_ns(time.monotonic_ns())
        try:
            async with asyncio.timeout(None if due_ns is None else due_ns / _NS_PER_S):
                await self._changed.wait()
        except TimeoutError:
            return
