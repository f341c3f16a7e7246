"""Reads that wait, and how they end early: the client hangs up, or the door closes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from litestar.types import Receive

from goqueue.broker.broker import Broker
from goqueue.broker.read import read_messages
from goqueue.model.commands import MessagesRead, ReadMessages

T = TypeVar("T")


class LongPolls:
    """Reads that wait for messages to come. When the door closes they are all answered at once."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[Any]] = set()
        self.is_ended = False

    async def read(self, broker: Broker, command: ReadMessages, receive: Receive) -> MessagesRead:
        """Read messages, waiting as long as the command says, the client is there and the door is open."""
        return await self.hold(
            lambda wait_ms: read_messages(broker, replace(command, wait_ms=wait_ms)), command.wait_ms, receive
        )

    async def hold(self, read: Callable[[int], Awaitable[T]], wait_ms: int, receive: Receive) -> T:
        """The same for anything that can be asked to wait for so many milliseconds, or for none."""
        if wait_ms == 0 or self.is_ended:
            return await read(0)
        reading = asyncio.ensure_future(read(wait_ms))
        hanging_up = asyncio.ensure_future(_hung_up(receive))
        self._waiting.add(reading)
        try:
            await asyncio.wait({reading, hanging_up}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done() and not reading.cancelled():
                return reading.result()
        finally:
            self._waiting.discard(reading)
            reading.cancel()
            hanging_up.cancel()
        return await read(0)

    def end(self) -> None:
        """Let every waiting read answer with what there is, now and from now on."""
        self.is_ended = True
        for waiting in self._waiting:
            waiting.cancel()


async def _hung_up(receive: Receive) -> None:
    """Return when the client has gone; what it may still send with a read does not matter."""
    while (await receive())["type"] != "http.disconnect":
        pass
