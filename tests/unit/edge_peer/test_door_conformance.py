"""The peer door on real sockets does what every network between nodes must."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import uvloop

from goqueue.edge.peer.calls import CallCodec, Shape
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.door import PeerDoor
from goqueue.edge.peer.link import PeerLink
from goqueue.edge.tls import ClientAuth, ServerTls
from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.commands import ReadMessages
from goqueue.model.errors import NodeUnreachable
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.peers import Neighbour, Peer
from goqueue.model.ports import Peers
from tests.doors.certificates import Certificates
from tests.unit.edge_peer.peers_conformance import NODES, PeersConformance, User, World

CONFIG = PeerConfig(cluster_id="c", secret="known to all of us", pause_ms=1, pause_ms_max=20)


class RealWorld:
    def __init__(self, tls: ServerTls | None = None) -> None:
        self._tls = tls
        self.doors: dict[NodeId, PeerDoor] = {}
        self.peers: Mapping[NodeId, Peers] = self.doors
        self.users: Mapping[NodeId, User] = {node: User() for node in NODES}
        self.neighbours: dict[NodeId, Neighbour] = {}

    async def open(self, stack: AsyncExitStack) -> None:
        for number, node in enumerate(NODES):
            door = self.doors[node] = PeerDoor(CONFIG, CallCodec([Shape(ReadMessages, str)]), self._tls)
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
    tls: ServerTls | None = None

    def walk(self, work: Callable[[World], Awaitable[None]]) -> None:
        async def walk() -> None:
            async with AsyncExitStack() as stack:
                world = RealWorld(self.tls)
                await world.open(stack)
                await work(world)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(walk())


class TestPeerDoorOverTls(TestPeerDoor):
    @pytest.fixture(autouse=True)
    def _certificates(self, tmp_path: Path) -> None:
        self.tls = Certificates(tmp_path).shown(ClientAuth.REQUIRE)


def test_nodes_whose_certificates_nobody_known_vouches_for_do_not_talk(tmp_path: Path) -> None:
    folders = tmp_path / "ours", tmp_path / "theirs"
    for folder in folders:
        folder.mkdir()
    ours, theirs = (Certificates(folder).shown(ClientAuth.REQUIRE) for folder in folders)

    async def dial() -> None:
        codec = CallCodec([Shape(ReadMessages, str)])
        one, other = PeerDoor(CONFIG, codec, ours), PeerDoor(CONFIG, codec, theirs)
        try:
            ports = await one.start("127.0.0.1", 0), await other.start("127.0.0.1", 0)
            neighbours = {
                node: Neighbour(Incarnation(1), "127.0.0.1", port)
                for node, port in zip(NODES, ports, strict=False)
            }
            for node, door in zip(NODES, (one, other), strict=False):
                door.meet(neighbours)
                door.serve(Peer(node, Incarnation(1)), User())
            with pytest.raises(NodeUnreachable):
                command = ReadMessages(source=TopicPartition(TopicName("orders"), 0))
                await one.call(NODES[1], command, wait_ms=5_000)
        finally:
            await one.stop()
            await other.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(dial())
