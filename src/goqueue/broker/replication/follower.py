"""A follower's end of a session, and the connections that its node has to leaders.

Frames are written in the turn in which they come, as they are, and a round of the disk is asked for. The
leader hears how far the log is written, once a turn, and how far it is durable, after each round.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from goqueue.model.cluster import NodeId
from goqueue.model.peers import Pace
from goqueue.model.ports import Buffer, Link, Peers, Stream
from goqueue.model.replication import Following, Frames, Message

_Way = tuple[NodeId, Pace]


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


class Links:
    """Connections to other nodes, as far as they are there; who waits for one is told when it comes."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
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
        for tell in self._waiting.pop(way, ()):
            tell()

    def close(self) -> None:
        """Wait for nobody any more."""
        for task in tuple(self._tasks.values()):
            task.cancel()
        self._waiting.clear()
