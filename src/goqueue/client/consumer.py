"""`Consumer`: a member of a group that takes messages with leases, and says what became of each.

A thread of its own gives signs of life, sends acknowledgements by the hundred, and extends leases.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from types import TracebackType

import msgspec

from goqueue.client.calls import queue
from goqueue.client.connection import Pool
from goqueue.client.consumer_settings import ConsumerSettings
from goqueue.client.forks import fork_count
from goqueue.client.membership import Idleness, Leased, Membership, logger
from goqueue.client.steps import PROBLEMS, take
from goqueue.client.times import Duration
from goqueue.model.errors import Invalid, Unavailable

_NS_PER_S = 1_000_000_000


class Delivered(Leased, frozen=True, kw_only=True):
    """A message that is out with this consumer until it settles it, or its time is up.

    In a `with` block it is acknowledged at the end, unless it was settled there. An exception gives it back
    with the exception's text as the reason; it is logged and goes no further, unless the consumer was made
    with `raise_errors`.
    """

    _consumer: "Consumer"

    def ack(self, *, wait: bool = False) -> None:
        """It is done. The node hears of it within some milliseconds; with `wait`, before this returns."""
        self._consumer._ack(self, wait=wait)

    def nack(self, *, delay: Duration | None = None, reason: str | None = None) -> None:
        """Deliver it again: after `delay`, or else after the topic's back-off."""
        self._consumer._settle(queue.nack([self.receipt], delay=delay, reason=reason), self)

    def reject(self, reason: str | None = None) -> None:
        """Put it aside as a dead letter."""
        self._consumer._settle(queue.reject([self.receipt], reason=reason), self)

    def extend(self, visibility: Duration) -> None:
        """It takes longer: keep it hidden from others for so long from now."""
        self._consumer._extend(self, visibility)

    def __enter__(self) -> "Delivered":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._is_in_transaction:
            return False  # which is to hear of the problem, and then gives the message back
        if problem is None:
            self._consumer._finish(self)
            return False
        return self._consumer._failed(self, problem)


class Consumer:
    """Messages of topics, each delivered to one member of the group at a time.

    Use it in a `with` block and go through it with `for`, or `poll`. One thread at a time does so; messages
    may be settled by any. `stop` from another thread, or from a signal handler, ends an iteration.
    """

    def __init__(self, pool: Pool, settings: ConsumerSettings) -> None:
        self._settings = settings
        self._pool = pool
        # Clients of their own, so that what they wait for can be interrupted.
        self._poller = pool.new_client()
        self._keeper = pool.new_client()
        self._membership = Membership(settings, now_ns=time.monotonic_ns())
        self._fetched: deque[Delivered] = deque()
        self._polling = threading.Lock()
        self._keeping = threading.Lock()
        self._wake = threading.Event()
        self._is_stopped = False
        self._is_closed = False
        self._has_left = False
        self._fork_count = fork_count()
        self._thread = threading.Thread(target=self._keep_up, name="goqueue-consumer", daemon=True)
        self._thread.start()

    @property
    def lost_count(self) -> int:
        """Acknowledgements that came too late: their messages are delivered again."""
        return self._membership.lost_count

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except PROBLEMS:
            if problem is None:
                raise
            logger.warning("a consumer could not be closed properly", exc_info=True)

    def __iter__(self) -> Iterator[Delivered]:
        idleness = Idleness(self._settings, now_ns=time.monotonic_ns())
        while not self._is_stopped:
            if not self._fetched:
                self._fetched.extend(self.poll(wait=self._settings.wait_s))
            if self._fetched:
                yield self._fetched.popleft()
                idleness.ended(now_ns=time.monotonic_ns())
            elif idleness.is_over(now_ns=time.monotonic_ns()):
                return

    def poll(self, *, limit: int | None = None, wait: Duration = 0.0) -> list[Delivered]:
        """Take messages; with none to take, wait for up to `wait` (60 s at most). Joins the group first."""
        if self._is_elsewhere:
            raise Invalid("the consumer belongs to the process that made it: make one in this one")
        with self._polling:
            if self._is_closed:
                raise Invalid("the consumer is closed")
            if self._fetched:
                # An iteration that was left has not come to these.
                count = min(limit or self._settings.limit, len(self._fetched))
                return [self._fetched.popleft() for _ in range(count)]
            take(self._membership.join(), self._pool)
            try:
                polled = take(self._membership.poll(limit=limit, wait=wait), self._poller)
            except Unavailable:
                if self._is_stopped:
                    return []  # while it waited
                raise
        self._membership.took(polled, now_ns=time.monotonic_ns())
        self._wake.set()
        return [
            Delivered(
                *msgspec.structs.astuple(one.message),
                receipt=one.receipt,
                delivery_count=one.delivery_count,
                _membership=self._membership,
                _consumer=self,
            )
            for one in polled
        ]

    def flush(self) -> None:
        """Send all acknowledgements that wait."""
        with self._keeping:
            take(self._membership.flush(time.monotonic_ns()), self._pool)

    def stop(self) -> None:
        """End an iteration, also while it waits: for other threads and for signal handlers.

        What is left to do is done by `close`, and that by the end of the `with` block.
        """
        self._is_stopped = True
        self._poller.abort()

    def close(self) -> None:
        """Give back what was not looked at, send what waits, leave the group. A second time is no error.

        Where the first time was interrupted or failed, the second does the rest.
        """
        if self._has_left or self._is_elsewhere:
            return
        self._is_closed = True
        self.stop()
        with self._polling:  # a poll under way ends now
            if self._has_left:
                return  # another thread was quicker
            self._poller.close()
            self._keeper.abort()
            self._wake.set()
            self._thread.join()
            self._keeper.close()
            unseen = [message.receipt for message in self._fetched]
            take(self._membership.leave(unseen, time.monotonic_ns()), self._pool)
            self._fetched.clear()
            self._has_left = True

    @property
    def _is_elsewhere(self) -> bool:
        """Whether this is the copy of a process that was forked: the membership is its parent's."""
        return self._fork_count != fork_count()

    def _finish(self, message: Delivered) -> None:
        if self._membership.is_open(message.receipt):
            self._ack(message, wait=False)

    def _ack(self, message: Delivered, *, wait: bool) -> None:
        if wait or self._is_closed or self._is_elsewhere:  # then nobody is there to send it later
            self._settle(queue.ack([message.receipt]), message)
        else:
            self._membership.ack(message.receipt, now_ns=time.monotonic_ns())
            self._wake.set()

    def _settle(self, call: queue.Settling, message: Delivered) -> None:
        take(self._membership.settle(call, message.receipt), self._pool)

    def _extend(self, message: Delivered, visibility: Duration) -> None:
        now_ns = time.monotonic_ns()
        take(self._membership.extend(message.receipt, visibility, now_ns=now_ns), self._pool)

    def _failed(self, message: Delivered, problem: BaseException) -> bool:
        return take(self._membership.fail(message, problem), self._pool)

    def _keep_up(self) -> None:
        while not self._is_closed:
            due_ns = self._membership.upkeep_in_ns(time.monotonic_ns())
            if due_ns:
                self._wake.wait(due_ns / _NS_PER_S)
                self._wake.clear()
                continue
            try:
                with self._keeping:
                    take(self._membership.upkeep(time.monotonic_ns()), self._keeper)
            except PROBLEMS as problem:
                if self._is_closed:
                    return  # what it was about is done by close
                logger.warning("a consumer's upkeep has failed and is tried again: %s", problem)
