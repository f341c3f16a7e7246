"""`Producer`: messages go out in batches, by a thread of its own; `send` gives a future at once."""

import threading
import time
from concurrent.futures import Future
from types import TracebackType

from goqueue.client.connection import Pool
from goqueue.client.courier import Courier
from goqueue.client.forks import fork_count
from goqueue.client.messages import Content, GivenHeaders, Json, Placed, Priority, to_store
from goqueue.client.outbox import Outbox, ProducerSettings, fail, fail_all
from goqueue.client.steps import take
from goqueue.model.errors import Busy, Invalid

_NS_PER_S = 1_000_000_000


class Producer:
    """Sends messages in batches, each stored once however often it has to be sent.

    Any number of threads may send. Use it in a `with` block: its end waits until all has been answered.
    """

    def __init__(self, pool: Pool, settings: ProducerSettings) -> None:
        self._client = pool.new_client()
        self._outbox = Outbox(settings)
        self._courier = Courier(acks=settings.acks)
        self._changed = threading.Condition()
        self._fork_count = fork_count()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="goqueue-producer", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Producer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(
        self,
        topic: str,
        value: Content | Json,
        *,
        key: Content = None,
        headers: GivenHeaders = (),
        partition: int | None = None,
        priority: Priority | None = None,
        timeout_s: float | None = None,
    ) -> "Future[Placed]":
        """Hand a message over; its future tells its place, or what went wrong with it.

        While the buffer is full this waits for room; with `timeout_s` no longer than that, and raises Busy.
        """
        self._refuse_elsewhere()
        message = to_store(value, key=key, headers=headers, partition=partition, priority=priority)
        future: Future[Placed] = Future()
        future.set_running_or_notify_cancel()  # what has been handed over cannot be called back
        with self._changed:
            has_room = self._changed.wait_for(lambda: self._is_closed or self._outbox.has_room, timeout_s)
            if self._is_closed:
                raise Invalid("the producer is closed")
            if not has_room:
                raise Busy(
                    f"the producer's buffer has been full for {timeout_s} s: send less, or wait longer"
                )
            if self._outbox.add(topic, message, future, now_ns=time.monotonic_ns()):
                self._changed.notify_all()
        return future

    def flush(self) -> None:
        """Wait until all that was sent has been answered. What went wrong is told by the futures."""
        self._refuse_elsewhere()
        with self._changed:
            self._outbox.flush()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._outbox.is_empty)

    def close(self) -> None:
        """Take nothing more, flush, and end. A second time is no error."""
        if self._fork_count != fork_count():
            return  # a child's copy has nothing to end
        with self._changed:
            self._is_closed = True
            self._outbox.flush()
            self._changed.notify_all()
        self._thread.join()
        self._client.close()

    def _refuse_elsewhere(self) -> None:
        """A process that was forked has no thread that sends."""
        if self._fork_count != fork_count():
            raise Invalid("the producer belongs to the process that made it: make one in this one")

    def _work(self) -> None:
        while True:
            with self._changed:
                parcel = self._outbox.take(time.monotonic_ns())
                while parcel is None:
                    if self._is_closed and self._outbox.is_empty:
                        return
                    due_ns = self._outbox.due_in_ns(time.monotonic_ns())
                    self._changed.wait(None if due_ns is None else due_ns / _NS_PER_S)
                    parcel = self._outbox.take(time.monotonic_ns())
            now_ns, now_ms = time.monotonic_ns(), time.time_ns() // 1_000_000
            answered = [parcel]
            try:
                silence = take(self._courier.deliver(parcel, now_ns=now_ns, now_ms=now_ms), self._client)
            except Exception as problem:
                # A bug of ours must not leave anybody waiting for ever.
                fail(parcel.waiting, problem)
            else:
                if silence is not None:
                    with self._changed:
                        overdue = self._outbox.take_older(than_ns=now_ns)
                    fail_all(overdue, silence)
                    answered += overdue
            with self._changed:
                self._outbox.answered(*answered)
                self._changed.notify_all()
