"""What a client asks for twice in one request is told once: a short request must not have a long reply."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


def once(asked: Iterable[T], name: Callable[[T], Hashable] = lambda one: one) -> list[T]:
    """Each thing asked for, by its name, as it is first named."""
    found: dict[Hashable, T] = {}
    for one in asked:
        found.setdefault(name(one), one)
    return list(found.values())
