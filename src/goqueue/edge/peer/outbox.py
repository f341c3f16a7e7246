"""What waits to go out on one connection.

A session's messages keep their order; sessions take turns, a message each, so that one with much to send
does not stand before the others. What belongs to no session goes at once. Nothing waits while the socket
takes it. When there is no room for a session, it is told once there is: when half of what may wait has
gone.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from goqueue.model.peers import LINK_UNSENT_BYTES_MAX, SESSION_UNSENT_BYTES_MAX
from goqueue.model.ports import Buffer

BURST_S = 0.05
"""A throttled connection may be ahead of its rate by what it sends in this time."""
_PAUSE_S = 0.001
"""A shorter pause is not worth its timer, and one of almost nothing would never end."""


class Pipe(Protocol):
    """Where bytes go out."""

    @property
    def unsent_bytes(self) -> int:
        """What it has taken and not got rid of."""

    def write(self, buffers: Sequence[Buffer]) -> None: ...


class Turn:
    """A session in the outbox: what of it waits."""

    __slots__ = ("has_room_again", "is_starved", "unsent_bytes", "waiting")

    def __init__(self, has_room_again: Callable[[], None]) -> None:
        self.has_room_again = has_room_again
        self.waiting: deque[tuple[list[Buffer], int]] = deque()
        self.unsent_bytes = 0
        self.is_starved = False


class Outbox:
    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._rate = 0
        self._loop = asyncio.get_running_loop()
        self._paid_until_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._turns: deque[Turn] = deque()
        self._starved: list[Turn] = []
        self._is_writable = True
        self._waiting_bytes = 0
        self.has_spoken = False
        """Whether anything was said since somebody last set this to False."""

    @property
    def unsent_bytes(self) -> int:
        return self._waiting_bytes + self._pipe.unsent_bytes

    def throttle(self, bytes_per_s: int) -> None:
        """From now on send no more than so much of sessions; 0: as much as there is."""
        self._rate = bytes_per_s

    def say(self, buffers: Sequence[Buffer]) -> None:
        """Send what belongs to no session."""
        self.has_spoken = True
        self._pipe.write(buffers)

    def send(self, turn: Turn, buffers: list[Buffer], size: int) -> None:
        """Send something of a session, or keep it until it is its turn."""
        if self._turns or not self._may_send(size):
            if not turn.waiting:
                self._turns.append(turn)
            turn.waiting.append((buffers, size))
            turn.unsent_bytes += size
            self._waiting_bytes += size
        else:
            self.has_spoken = True
            self._pipe.write(buffers)

    def has_room(self, turn: Turn) -> bool:
        """Whether a session may send more. If not, it is told when it may."""
        if not self._turns:
            return True
        if turn.unsent_bytes < SESSION_UNSENT_BYTES_MAX and self.unsent_bytes < LINK_UNSENT_BYTES_MAX:
            return True
        if not turn.is_starved:
            turn.is_starved = True
            self._starved.append(turn)
        return False

    def forget(self, turn: Turn) -> None:
        """Drop what of a session has not gone out."""
        if turn.waiting:
            self._turns.remove(turn)
            turn.waiting.clear()
            self._waiting_bytes -= turn.unsent_bytes
            turn.unsent_bytes = 0
        if turn.is_starved:
            turn.is_starved = False
            self._starved.remove(turn)
        if self._starved:
            # Not from within a call of a stream.
            self._loop.call_soon(self._tell_room)

    def hold(self) -> None:
        """The socket takes no more for now."""
        self._is_writable = False

    def go_on(self) -> None:
        """It does again."""
        self._is_writable = True
        self._drain()

    def close(self) -> None:
        """Nothing goes out any more, and nobody is told of room."""
        self._is_writable = False
        if self._timer is not None:
            self._timer.cancel()
        self._turns.clear()
        self._starved.clear()
        self._waiting_bytes = 0

    def _drain(self) -> None:
        while self._turns and self._may_send(self._turns[0].waiting[0][1]):
            turn = self._turns.popleft()
            buffers, size = turn.waiting.popleft()
            turn.unsent_bytes -= size
            self._waiting_bytes -= size
            if turn.waiting:
                self._turns.append(turn)
            self.has_spoken = True
            self._pipe.write(buffers)
        if self._starved:
            self._tell_room()

    def _may_send(self, size: int) -> bool:
        """Whether a message of this size may go now; it is counted then."""
        if not self._is_writable:
            return False
        if not self._rate:
            return True
        now_s = self._loop.time()
        ahead_s = self._paid_until_s - now_s - BURST_S
        if ahead_s > 0:
            if self._timer is None:
                self._timer = self._loop.call_later(max(ahead_s, _PAUSE_S), self._go_on_with_rate)
            return False
        self._paid_until_s = max(now_s, self._paid_until_s) + size / self._rate
        return True

    def _go_on_with_rate(self) -> None:
        self._timer = None
        self._drain()

    def _tell_room(self) -> None:
        if self.unsent_bytes > LINK_UNSENT_BYTES_MAX // 2:
            return
        told = [turn for turn in self._starved if turn.unsent_bytes <= SESSION_UNSENT_BYTES_MAX // 2]
        for turn in told:
            turn.is_starved = False
        self._starved = [turn for turn in self._starved if turn.is_starved]
        for turn in told:
            turn.has_room_again()
