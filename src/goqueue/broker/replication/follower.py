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


class Led(Protocol):
    """Who follows with the partition."""

    def heard(self, receiver: "Receiver", message: Following | Frames, frames: Buffer) -> None: ...

    def lost_leader(self, receiver: "Receiver") -> None: ...


class Receiver:
    """Takes what a leader sends. It ends with its stream."""

    def __init__(self, led: Led) -> None:
        self._led = led
        self.stream: Stream

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
        self._links: dict[NodeId, Link] = {}
        self._waiting: dict[NodeId, dict[Callable[[], None], None]] = {}
        self._tasks: dict[NodeId, asyncio.Task[None]] = {}

    def at_hand(self, node: NodeId) -> Link | None:
        """A connection that works, as far as is known; None: ask to be told."""
        link = self._links.get(node)
        return None if link is None or link.is_lost else link

    def tell_when_there(self, node: NodeId, tell: Callable[[], None]) -> None:
        """Call, once, when there is a connection."""
        self._waiting.setdefault(node, {})[tell] = None
        if node not in self._tasks:
            self._tasks[node] = asyncio.get_running_loop().create_task(self._connect(node))

    async def _connect(self, node: NodeId) -> None:
        try:
            self._links[node] = await self._peers.link(node, Pace.LIVE)
        finally:
            del self._tasks[node]
        for tell in self._waiting.pop(node, ()):
            tell()

    def close(self) -> None:
        """Wait for nobody any more."""
        for task in tuple(self._tasks.values()):
            task.cancel()
        self._waiting.clear()
