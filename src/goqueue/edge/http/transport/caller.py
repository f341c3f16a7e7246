"""Who is at the other end of a connection, for a request that waits on their behalf.

Thousands of requests wait at the same time, so there is no task that listens for the client to hang up:
the connection tells its caller, and the caller wakes the task that waits.
"""

import asyncio
from typing import cast

from litestar.types import Scope

from goqueue.edge.http.transport.flow import Flow

CALLER = "goqueue.caller"
"""Where a connection puts it into the scope of each of its requests."""


class Caller:
    """A client that is there or has hung up. Its requests are served one at a time, so one waits at most."""

    __slots__ = ("_flow", "_is_let_go", "_waiting", "has_hung_up")

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.has_hung_up = False
        self._waiting: asyncio.Task[object] | None = None
        self._is_let_go = False

    def begin_to_wait(self) -> None:
        """From now on, whatever ends the wait cancels what the running task awaits."""
        self._waiting = asyncio.current_task()
        self._is_let_go = False
        # It may have sent more requests already, which are not read meanwhile; nor would its hanging up be.
        self._flow.resume_reading()

    def end_to_wait(self) -> None:
        self._waiting = None

    def hang_up(self) -> None:
        """The client has gone: nothing waits for it any more."""
        self.has_hung_up = True
        self.let_go()

    def let_go(self) -> None:
        """End the wait, if there is one."""
        if self._waiting is not None and not self._is_let_go:
            self._is_let_go = True
            self._waiting.cancel()

    def take_back_cancel(self) -> bool:
        """Whether a cancellation was only the end of the wait. Then the task is as if it had not been."""
        return self._waiting is not None and self._is_let_go and self._waiting.uncancel() == 0


def caller_of(scope: Scope) -> Caller:
    """Whoever sent a request."""
    return cast("dict[str, Caller]", scope)[CALLER]
