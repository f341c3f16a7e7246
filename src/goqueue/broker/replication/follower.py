"""A follower's end of a session, and the connections that its node has to leaders.

Frames are written in the turn in which they come, as they are, and a round of the disk is asked for. The
leader hears how far the log is durable, after each round, and where somebody waits for that, how far it is
written, once a turn.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from goqueue.broker.slices import Slices
from goqueue.model.cluster import NodeId
from goqueue.model.peers import Pace
from goqueue.model.ports import Buffer, Clock, Link, Peers, Stream
from goqueue.model.replication import Following, Frames, Message

_Way = tuple[NodeId, Pace]
LATER_S = 0.1
"""A follower that was refused, or lost its leader, asks again after this, if there are few of them."""
_REST = 3
"""So many times as long as it took to let all ask, none does."""


class Led(Protocol):
    """Who follows with the partition."""

    def heard(self, receiver: "Receiver", message: Following | Frames, frames: Buffer) -> None: ...

    def lost_leader(self, receiver: "Receiver") -> None: ...


class Receiver:
    """Takes what a leader sends. It ends with its stream."""

    def __init__(self, led: Led) -> None:
        self._led = led
        self.stream: Stream
        self.pace = Pace.LIVE

    def close(self) -> None:
        self.stream.close()

    # Called by the stream.

    def received(self, message: Message, frames: Buffer) -> None:
        if isinstance(message, (Frames, Following)):
            self._led.heard(self, message, frames)

    def has_room_again(self) -> None:
        """What a follower says is small, and is not held back."""

    def ended(self) -> None:
        self._led.lost_leader(self)


class Asking:
    """Those that ask their leaders again after a while, one after the other.

    When a node comes, thousands are refused at once, until its leaders have heard of it. If each asked again
    ten times a second, all would be busy with that, and nobody would hear of anything.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[Callable[[], None], None] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def later(self, ask: Callable[[], None]) -> None:
        """Call it, once, after a while; what is asked for meanwhile is the same."""
        self._waiting[ask] = None
        if self._task is None and not self._is_closed:
            self._task = asyncio.get_running_loop().create_task(self._work())

    def close(self) -> None:
        """Ask nobody any more."""
        self._is_closed = True
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        pause_s = LATER_S
        try:
            while self._waiting:
                await asyncio.sleep(pause_s)
                begun_ns = self._clock.monotonic_ns()
                waiting, self._waiting = self._waiting, {}
                await in_turn(waiting, self._clock)
                pause_s = max(LATER_S, _REST * (self._clock.monotonic_ns() - begun_ns) / 1e9)
        finally:
            self._task = None


async def in_turn(calls: Iterable[Callable[[], None]], clock: Clock) -> None:
    """Make calls one after the other, with pauses for everybody else."""
    slices = Slices(clock)
    for call in calls:
        call()
        if slices.is_over:
            await slices.pause()


class Links:
    """Connections to other nodes, as far as they are there; who waits for one is told when it comes."""

    def __init__(self, peers: Peers, clock: Clock) -> None:
        self._peers = peers
        self._clock = clock
        self._links: dict[_Way, Link] = {}
        self._waiting: dict[_Way, dict[Callable[[], None], None]] = {}
        self._tasks: dict[_Way, asyncio.Task[None]] = {}

    def at_hand(self, node: NodeId, pace: Pace) -> Link | None:
        """A connection that works, as far as is known; None: ask to be told."""
        link = self._links.get((node, pace))
        return None if link is None or link.is_lost else link

    def tell_when_there(self, node: NodeId, pace: Pace, tell: Callable[[], None]) -> None:
        """Call, once, when there is a connection."""
        way = node, pace
        self._waiting.setdefault(way, {})[tell] = None
        if way not in self._tasks:
            self._tasks[way] = asyncio.get_running_loop().create_task(self._connect(way))

    async def _connect(self, way: _Way) -> None:
        try:
            self._links[way] = await self._peers.link(*way)
        finally:
            del self._tasks[way]
        await in_turn(self._waiting.pop(way, ()), self._clock)

    def close(self) -> None:
        """Wait for nobody any more."""
        for task in tuple(self._tasks.values()):
            task.cancel()
        self._waiting.clear()
