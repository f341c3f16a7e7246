"""The peer door on real sockets does what every network between nodes must."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import uvloop

from goqueue.edge.peer.calls import CallCodec, Shape
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.door import PeerDoor
from goqueue.edge.peer.link import PeerLink
from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.commands import ReadMessages
from goqueue.model.peers import Neighbour, Peer
from goqueue.model.ports import Peers
from tests.unit.edge_peer.peers_conformance import NODES, PeersConformance, User, World

CONFIG = PeerConfig(cluster_id="c", secret="known to all of us", pause_ms=1, pause_ms_max=20)


class RealWorld:
    def __init__(self) -> None:
        self.doors: dict[NodeId, PeerDoor] = {}
        self.peers: Mapping[NodeId, Peers] = self.doors
        self.users: Mapping[NodeId, User] = {node: User() for node in NODES}
        self.neighbours: dict[NodeId, Neighbour] = {}

    async def open(self, stack: AsyncExitStack) -> None:
        for number, node in enumerate(NODES):
            door = self.doors[node] = PeerDoor(CONFIG, CallCodec([Shape(ReadMessages, str)]))
            port = await door.start("127.0.0.1", 0)
            stack.push_async_callback(door.stop)
            self.neighbours[node] = Neighbour(Incarnation(10 + number), "127.0.0.1", port)
        for node, door in self.doors.items():
            door.meet(self.neighbours)
            door.serve(Peer(node, self.neighbours[node].incarnation), self.users[node])

    def links(self, node: NodeId) -> list[PeerLink]:
        return list(self.doors[node]._links)

    def sever(self, one: NodeId, other: NodeId) -> None:
        for link in self.links(one):
            if link.is_known and link.peer.node == other:
                link._pipe.end()

    def stop_reading(self, node: NodeId) -> None:
        for link in self.links(node):
            link._pipe._transport.pause_reading()

    def read_on(self, node: NodeId) -> None:
        for link in self.links(node):
            link._pipe._transport.resume_reading()


class TestPeerDoor(PeersConformance):
    def walk(self, work: Callable[[World], Awaitable[None]]) -> None:
        async def walk() -> None:
            async with AsyncExitStack() as stack:
                world = RealWorld()
                await world.open(stack)
                await work(world)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(walk())
