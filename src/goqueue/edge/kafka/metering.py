"""What users and client ids have used of their quotas: counted here, told in replies, waited for.

Where no quota of that kind is set, nothing of this is reached but a look at an empty table.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from time import perf_counter_ns
from typing import Any, Generic, TypeVar

from goqueue.core.access.client_quotas import Held
from goqueue.core.access.rates import Bucket
from goqueue.edge.kafka.context import Context

T = TypeVar("T")
_NS_PER_MS = 1_000_000


def held_of(context: Context) -> Held | None:
    """What the client is held to, if anybody is to anything."""
    quotas = context.broker.client_quotas
    return quotas.held(context.principal.name, context.client_id) if quotas.entries else None


def charge(context: Context, bucket: Bucket | None, amount: int) -> None:
    """Count what was used. A client that is in debt then is not served for a while, and told so."""
    if bucket is not None:
        now_ns = context.broker.clock.monotonic_ns()
        bucket.take(amount, now_ns=now_ns)
        context.throttle.ask(wait_ms(bucket, now_ns))


def wait_ms(bucket: Bucket, now_ns: int) -> int:
    """How long until a bucket is not in debt."""
    return -(-bucket.wait_ns(0, now_ns=now_ns) // _NS_PER_MS)


async def metered(context: Context, work: Coroutine[Any, Any, T]) -> T:
    """What some work gives; the loop's time that it takes is counted against its client."""
    held = held_of(context)
    if held is None or held.requests is None:
        return await work
    timed = Timed(work)
    try:
        return await timed
    finally:
        charge(context, held.requests, timed.spent_ns)


class Timed(Awaitable[T], Generic[T]):
    """Awaits something, and adds up how long the loop was with it: not how long it has waited."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.spent_ns = 0

    def __await__(self) -> Generator[Any, Any, T]:
        resume: Callable[[], Any] = partial(self._work.send, None)
        while True:
            begun_ns = perf_counter_ns()
            try:
                waited = resume()
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                self.spent_ns += perf_counter_ns() - begun_ns
            try:
                yield waited
            except BaseException as error:
                resume = partial(self._work.throw, error)
            else:
                resume = partial(self._work.send, None)
