"""A reply that waits for the disk, while the requests behind it begin."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from goqueue.model.errors import GoQueueError
from goqueue.model.ports import Buffer


class Outcome(Protocol):
    """A part of a reply that may yet turn out badly."""

    def fail(self, error: GoQueueError) -> None: ...


class Wait(NamedTuple):
    outcome: Outcome
    committed: Awaitable[None]


class Later(NamedTuple):
    """What was asked for is decided and written. All `waits` must be over before the reply may leave."""

    waits: Sequence[Wait]
    encode: Callable[[], bytes]


Answer = list[Buffer] | Later
"""The body of a reply, now or later."""
