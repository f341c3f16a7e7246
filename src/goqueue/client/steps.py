"""Work that takes several calls, written once for both forms.

Steps are a generator: it yields calls and is sent what they give, or has thrown at it what went wrong.
`take` drives them with a carrier that blocks, `take_async` with one that is awaited.
"""

from collections.abc import Generator
from typing import Any, TypeVar

from goqueue.client.call import Call
from goqueue.client.errors import Refused
from goqueue.client.nouns import AsyncCarrier, Carrier
from goqueue.model.errors import GoQueueError

T = TypeVar("T")
Steps = Generator[Call[Any], Any, T]

PROBLEMS = (GoQueueError, Refused)
"""What a call may raise and steps may have an answer to."""


def ask(call: Call[T]) -> Steps[T]:
    """One call: `found = yield from ask(call)`."""
    reply: T = yield call
    return reply


def take(steps: Steps[T], carrier: Carrier) -> T:
    """Go through steps and give what they return."""
    try:
        call = next(steps)
        while True:
            try:
                reply = carrier.carry(call)
            except PROBLEMS as problem:
                call = steps.throw(problem)
            else:
                call = steps.send(reply)
    except StopIteration as end:
        found: T = end.value
        return found


async def take_async(steps: Steps[T], carrier: AsyncCarrier) -> T:
    """The same, awaited."""
    try:
        call = next(steps)
        while True:
            try:
                reply = await carrier.carry(call)
            except PROBLEMS as problem:
                call = steps.throw(problem)
            else:
                call = steps.send(reply)
    except StopIteration as end:
        found: T = end.value
        return found
