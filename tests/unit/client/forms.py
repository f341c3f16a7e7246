"""Both forms of the client behind one face, so that a test's body is written once, with awaits.

`Awaited` stands before an object of the plain form: its methods can be awaited, its `with` and `for` are
`async with` and `async for`. The broker lives in a thread of its own, so blocking the test's loop is no harm.
"""

from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from goqueue.client import Consumer, Delivered, Producer, Transaction
from goqueue.client.nouns import Noun

_WRAPPED = (Noun, Consumer, Producer, Transaction, Delivered)


class Awaited:
    """An object of the plain form that is used like one of the awaited form."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return _awaited_method(found) if callable(found) and not isinstance(found, Noun) else _face(found)

    def __await__(self) -> Generator[None, None, Any]:
        yield from ()
        return self._inner.result() if isinstance(self._inner, Future) else _face(self._inner)

    async def __aenter__(self) -> "Awaited":
        return Awaited(self._inner.__enter__())

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> object:
        return self._inner.__exit__(kind, problem, trace)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for one in self._inner:
            yield _face(one)


class _Handed(Awaited):
    """What a method gave: to be awaited once, or used at once."""

    def __await__(self) -> Generator[None, None, Any]:
        yield from ()
        return _face(self._inner)


def _awaited_method(method: Callable[..., Any]) -> Callable[..., _Handed]:
    return lambda *args, **kwargs: _Handed(method(*map(_bare, args), **kwargs))


def _bare(given: Any) -> Any:
    """A message that comes back as an argument, as it was before."""
    return given._inner if isinstance(given, Awaited) else given


def _face(found: Any) -> Any:
    if isinstance(found, list):
        return [_face(one) for one in found]
    return Awaited(found) if isinstance(found, (*_WRAPPED, Future)) else found
