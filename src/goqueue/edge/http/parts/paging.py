"""Listings by pages: `limit` and `after` in the query, `next` in the reply when there is more.

Without a limit a listing is whole, as existing clients expect it. However long it is, what it shows is made
in slices, and others have their turn in between; what has gone meanwhile is left out.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Generic, NamedTuple, TypeVar

from litestar.params import QueryParameter

from goqueue.broker.broker import Broker
from goqueue.broker.slices import Slices
from goqueue.model.errors import NotFound

T = TypeVar("T")
PAGE_COUNT_MAX = 10_000
ALL = ABSENT = 2**63 - 1
"""No limit. A number rather than None, for which the framework takes the word `null`."""

Limit = Annotated[
    int,
    QueryParameter(
        ge=1, le=ALL, description="At most so many, and no page has more than 10000; absent: all."
    ),
]
After = Annotated[
    str | None, QueryParameter(description="Only what stands behind this: the `next` of the page before.")
]


class Page(NamedTuple, Generic[T]):
    rows: list[T]
    next: str | None
    """The last name of a page that is not the last."""


def names_in_page(names: Sequence[str], limit: int, after: str | None) -> Page[str]:
    """The wanted part of a list that is sorted."""
    first = 0 if after is None else bisect_right(names, after)
    end = len(names) if limit == ALL else first + min(limit, PAGE_COUNT_MAX)
    wanted = list(names[first:end])
    return Page(wanted, wanted[-1] if wanted and end < len(names) else None)


async def shown_in_slices(broker: Broker, names: Sequence[str], show: Callable[[str], T]) -> list[T]:
    """What a listing shows of each name."""
    slices = Slices(broker.clock)
    shown = []
    for name in names:
        with suppress(NotFound):
            shown.append(show(name))
        await slices.pause()
    return shown


def as_given(count: int) -> int | None:
    """A count as a client gave it; None where it did not."""
    return None if count == ABSENT else count
