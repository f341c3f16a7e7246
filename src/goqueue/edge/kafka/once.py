"""Many things asked for in one request: each told once, and all of them without holding the loop.

What is asked for twice is told once: a short request must not have a long reply.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import TypeVar

from goqueue.broker.slices import Slices
from goqueue.edge.kafka.context import Context

T = TypeVar("T")
R = TypeVar("R")


def once(asked: Iterable[T], name: Callable[[T], Hashable] = lambda one: one) -> list[T]:
    """Each thing asked for, by its name, as it is first named."""
    found: dict[Hashable, T] = {}
    for one in asked:
        found.setdefault(name(one), one)
    return list(found.values())


async def each(context: Context, asked: Iterable[T], tell: Callable[[T], R]) -> tuple[R, ...]:
    """What is to be told of each thing, in slices."""
    return tuple(await Slices(context.broker.clock).each(asked, tell))


async def done_to_each(
    context: Context, asked: Iterable[T], do: Callable[[T], Awaitable[R]]
) -> tuple[R, ...]:
    """What came of doing something to each thing, one behind the other, in slices."""
    slices = Slices(context.broker.clock)
    done = []
    for one in asked:
        done.append(await do(one))
        await slices.pause()
    return tuple(done)
