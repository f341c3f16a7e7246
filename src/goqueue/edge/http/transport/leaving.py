"""How a connection ends that its client may still be writing to.

A socket that is closed with bytes unread resets the connection, and a client that is still sending then never
reads the reply that says why. So the reply is sent, then the end of what we say, and what comes is dropped
until the client has gone, within bounds.
"""

import asyncio
from collections.abc import Callable

from goqueue.model.ports import Buffer


class PoliteTransport:
    """A transport as uvicorn uses one, whose `close` first asks whether the client is still sending."""

    __slots__ = ("_is_leaving", "_leave", "_transport")

    def __init__(self, transport: asyncio.Transport, leave: Callable[[], bool]) -> None:
        self._transport = transport
        self._leave = leave
        """Whether the connection is to be left open for a while, for the client's sake."""
        self._is_leaving = False

    def write(self, data: Buffer) -> None:
        if not self._is_leaving:
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._is_leaving or self._transport.is_closing()

    def close(self) -> None:
        """Say no more, and hang up as soon as that can be done without harm."""
        if self.is_closing():
            return
        self._is_leaving = self._leave()
        if not self._is_leaving:
            self._transport.close()
        elif self._transport.can_write_eof():
            self._transport.write_eof()

    def forget(self) -> None:
        """The connection is over; nothing here keeps it in memory."""
        self._leave = _at_once

    def hang_up(self) -> None:
        """At once, whatever the client does."""
        self._transport.close()


def _at_once() -> bool:
    return False
