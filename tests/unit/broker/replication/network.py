"""Connections between nodes in one process: ordered, with some delay, and cut at will."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence

from goqueue.model.cluster import NodeId
from goqueue.model.peers import Answered, Neighbour, Pace, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, Link, Peers, PeerUser, Stream, StreamUser
from goqueue.model.replication import Follow, Message

UNSENT_BYTES_MAX = 64 * 1024


class Network:
    """Who can reach whom."""

    def __init__(self, *, delay_s: float = 0.001) -> None:
        self.delay_s = delay_s
        self.users: dict[NodeId, tuple[Peer, PeerUser]] = {}
        self.streams: list[LocalStream] = []
        self.apart: set[frozenset[NodeId]] = set()
        self.sent_messages = 0

    def part(self, one: NodeId, other: NodeId) -> None:
        """Cut two nodes off from each other; their streams end."""
        self.apart.add(frozenset((one, other)))
        for stream in [s for s in self.streams if {s.me.node, s.peer.node} == {one, other}]:
            stream.end()

    def join(self) -> None:
        self.apart.clear()

    def leave(self, node: NodeId) -> None:
        """A node is gone."""
        self.users.pop(node, None)
        for stream in [s for s in self.streams if node in (s.me.node, s.peer.node)]:
            stream.end()

    def between(self, one: NodeId, other: NodeId) -> "LocalStream | None":
        """The end of a stream that one node has to another, if there is one that somebody uses."""
        found = [s for s in self.streams if s.user and (s.me.node, s.peer.node) == (one, other)]
        return found[-1] if found else None

    def reaches(self, one: NodeId, other: NodeId) -> bool:
        return one in self.users and other in self.users and frozenset((one, other)) not in self.apart


class LocalStream(Stream):
    def __init__(self, network: Network, me: Peer, peer: Peer, session: int) -> None:
        self._network = network
        self.me = me
        self._peer = peer
        self._session = session
        self.user: StreamUser | None = None
        self.other: LocalStream
        self._is_over = False
        self._on_way: deque[tuple[Message, bytes]] = deque()
        self._unsent_bytes = 0
        self._was_full = False
        self.is_stuck = False
        network.streams.append(self)

    @property
    def peer(self) -> Peer:
        return self._peer

    @property
    def session(self) -> int:
        return self._session

    @property
    def is_over(self) -> bool:
        return self._is_over

    @property
    def has_room(self) -> bool:
        has_room = self._unsent_bytes < UNSENT_BYTES_MAX
        self._was_full = self._was_full or not has_room
        return has_room

    def send(self, message: Message, frames: Sequence[Buffer] = ()) -> None:
        if self._is_over:
            return
        self._network.sent_messages += 1
        data = b"".join(frames)
        self._unsent_bytes += len(data)
        self._on_way.append((message, data))
        asyncio.get_running_loop().call_later(self._network.delay_s, self._arrive)

    def _arrive(self) -> None:
        if self._is_over or self.other._is_over or not self._on_way:
            return
        if self.is_stuck:
            asyncio.get_running_loop().call_later(self._network.delay_s, self._arrive)
            return
        message, data = self._on_way.popleft()
        self._unsent_bytes -= len(data)
        if self._was_full and self.has_room and self.user is not None:
            self._was_full = False
            asyncio.get_running_loop().call_soon(self.user.has_room_again)
        if self.other.user is not None:
            self.other.user.received(message, data)

    def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._network.streams.remove(self)
            asyncio.get_running_loop().call_soon(self.other.end)

    def end(self) -> None:
        """The other side is gone."""
        if not self._is_over:
            self._is_over = True
            self._network.streams.remove(self)
            asyncio.get_running_loop().call_soon(self.other.end)
            if self.user is not None:
                asyncio.get_running_loop().call_soon(self.user.ended)


class LocalLink(Link):
    def __init__(self, network: Network, me: Peer, peer: Peer) -> None:
        self._network = network
        self._me = me
        self._peer = peer

    @property
    def peer(self) -> Peer:
        return self._peer

    @property
    def pace(self) -> Pace:
        return Pace.LIVE

    @property
    def is_lost(self) -> bool:
        known = self._network.users.get(self._peer.node)
        is_there = known is not None and known[0] == self._peer
        return not is_there or not self._network.reaches(self._me.node, self._peer.node)

    def follow(self, message: Follow, user: StreamUser) -> Stream:
        here = LocalStream(self._network, self._me, self._peer, message.session)
        there = LocalStream(self._network, self._peer, self._me, message.session)
        here.other, there.other = there, here
        here.user = user
        asyncio.get_running_loop().call_later(self._network.delay_s, self._open, there, message)
        return here

    def _open(self, there: LocalStream, message: Follow) -> None:
        if self.is_lost or there.is_over:
            there.end()
            return
        there.user = self._network.users[self._peer.node][1].followed(there, message)
        if there.user is None:
            there.close()


class LocalPeers(Peers):
    def __init__(self, network: Network) -> None:
        self._network = network
        self._me: Peer

    def serve(self, me: Peer, user: PeerUser) -> None:
        self._me = me
        self._network.users[me.node] = (me, user)

    def meet(self, neighbours: Mapping[NodeId, Neighbour]) -> None:
        pass

    async def link(self, node: NodeId, pace: Pace) -> Link:
        while not self._network.reaches(self._me.node, node):
            await asyncio.sleep(0.05)
        return LocalLink(self._network, self._me, self._network.users[node][0])

    async def call(
        self, node: NodeId, command: Command, *, wait_ms: int, tail: Sequence[Buffer] = ()
    ) -> Answered:
        raise NotImplementedError
