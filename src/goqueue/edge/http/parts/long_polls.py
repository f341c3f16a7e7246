"""Reads that wait, and how they end early: the client hangs up, or the door closes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from litestar.types import Scope

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.read.read import read_messages
from goqueue.edge.http.transport.caller import Caller, caller_of
from goqueue.model.commands import MessagesRead, ReadMessages

T = TypeVar("T")


class LongPolls:
    """Reads that wait for messages to come. When the door closes they are all answered at once."""

    def __init__(self) -> None:
        self._waiting: set[Caller] = set()
        self.is_ended = False

    async def read(self, broker: Broker, command: ReadMessages, scope: Scope) -> MessagesRead:
        """Read messages, waiting as long as the command says, the client is there and the door is open."""
        return await self.hold(
            lambda wait_ms: at_home(broker, read_messages, replace(command, wait_ms=wait_ms)),
            command.wait_ms,
            scope,
        )

    async def hold(self, read: Callable[[int], Awaitable[T]], wait_ms: int, scope: Scope) -> T:
        """The same for anything that can be asked to wait for so many milliseconds, or for none."""
        if wait_ms == 0 or self.is_ended:
            return await read(0)
        caller = caller_of(scope)
        if caller.has_hung_up:
            return await read(0)
        # Thousands wait here: the request's own task does, because another one for the read would cost more
        # than all else that a read holds.
        caller.begin_to_wait()
        self._waiting.add(caller)
        try:
            return await read(wait_ms)
        except asyncio.CancelledError:
            if not caller.take_back_cancel():
                raise  # it is the whole request that is given up
        finally:
            self._waiting.discard(caller)
            caller.end_to_wait()
        return await read(0)

    def end(self) -> None:
        """Let every waiting read answer with what there is, now and from now on."""
        self.is_ended = True
        for caller in self._waiting:
            caller.let_go()
