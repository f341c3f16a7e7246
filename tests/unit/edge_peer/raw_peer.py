"""A node made by hand, byte by byte, and a door that it talks to."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import uvloop

from goqueue.edge.peer.calls import CallCodec, Shape
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.door import PeerDoor
from goqueue.edge.peer.hello import NONCE_BYTES, Greeting
from goqueue.edge.peer.wire import HEAD, Kind
from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.commands import ReadMessages
from goqueue.model.peers import Neighbour, Pace, Peer
from goqueue.model.ports import Buffer
from tests.unit.edge_peer.peers_conformance import User

SECRET = "known to all of us"
CODEC = CallCodec([Shape(ReadMessages, str)])
QUICK = PeerConfig(
    cluster_id="c", secret=SECRET, idle_ms=20, silence_ms=200, greeting_ms=200, pause_ms=1, pause_ms_max=10
)
DOOR, RAW = Peer(NodeId("door"), Incarnation(1)), Peer(NodeId("raw"), Incarnation(5))
Message = tuple[int, int, bytes]
"""Kind, id and body."""


class RawPeer:
    """One connection to a door, without any manners of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.sent: list[bytes] = []

    def send(self, *buffers: Buffer) -> None:
        self.sent.extend(map(bytes, buffers))
        if not self.writer.transport.is_closing():
            self.writer.write(b"".join(buffers))

    async def receive(self) -> Message | None:
        """The next message; None: the door has hung up."""
        try:
            async with asyncio.timeout(10):
                size, kind, _, _, number = HEAD.unpack(await self._reader.readexactly(HEAD.size))
                return kind, number, await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return None

    async def next_of(self, kind: Kind) -> Message | None:
        """The next message of a kind; None: the door has hung up before."""
        while (message := await self.receive()) is not None and message[0] != kind:
            pass
        return message

    async def is_hung_up_on(self) -> bool:
        while await self.receive() is not None:
            pass
        return True

    async def greet(
        self, me: Peer = RAW, *, cluster_id: str = "c", secret: str = SECRET, pace: Pace = Pace.LIVE
    ) -> bool:
        """Say who one is; whether that is believed."""
        greeting = Greeting(
            me,
            cluster_id,
            secret.encode(),
            secrets.token_bytes(NONCE_BYTES),
            expected=DOOR,
            pace=pace,
            is_registered=lambda peer: True,
        )
        self.send(*greeting.begin())
        while greeting.peer is None:
            if (message := await self.receive()) is None:
                return False
            self.send(*greeting.take(message[0], message[2]))
        return True

    def close(self) -> None:
        self.writer.transport.abort()


class Attacked:
    """A door, and whatever went wrong in it that nobody was waiting for."""

    def __init__(self, door: PeerDoor, user: User, port: int, stack: AsyncExitStack) -> None:
        self.door = door
        self.user = user
        self.port = port
        self._stack = stack
        self.unhandled: list[dict[str, Any]] = []

    async def connect(self) -> RawPeer:
        raw = RawPeer(*await asyncio.open_connection("127.0.0.1", self.port))
        self._stack.callback(raw.close)
        return raw

    async def greeted(self, me: Peer = RAW) -> RawPeer:
        raw = await self.connect()
        assert await raw.greet(me)
        return raw


@asynccontextmanager
async def attacked(config: PeerConfig) -> AsyncIterator[Attacked]:
    async with AsyncExitStack() as stack:
        door, user = PeerDoor(config, CODEC), User()
        port = await door.start("127.0.0.1", 0)
        stack.push_async_callback(door.stop)
        here = Attacked(door, user, port, stack)
        asyncio.get_running_loop().set_exception_handler(lambda loop, what: here.unhandled.append(what))
        # Nobody listens at this port, so that the door has nobody to dial.
        others = {NodeId(name): Neighbour(Incarnation(5), "127.0.0.1", 1) for name in ("raw", "friend")}
        door.meet(others)
        door.serve(DOOR, user)
        yield here
    assert here.unhandled == []


def attack(work: Callable[[Attacked], Awaitable[None]], config: PeerConfig = QUICK) -> None:
    async def walk() -> None:
        async with attacked(config) as here:
            await work(here)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(walk())
