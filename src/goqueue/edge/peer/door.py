"""The peer door: listens, dials who is registered, cuts off who is not, and keeps all links of a node.

A node dials every other, so between two nodes there are links both ways: over its own it follows and calls,
over the other's it leads and answers. Of those that a node has made with one pace only the newest counts:
the one before is cut, since its node has given it up.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from random import Random

from goqueue.edge.limited_log import LimitedLog
from goqueue.edge.peer.calls import CallCodec
from goqueue.edge.peer.config import PeerConfig, check_listener
from goqueue.edge.peer.dialling import Dialler
from goqueue.edge.peer.hello import NONCE_BYTES, Greeting
from goqueue.edge.peer.link import PeerLink
from goqueue.edge.peer.protocol import PeerProtocol
from goqueue.edge.tls import ServerTls
from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.errors import NodeUnreachable
from goqueue.model.peers import Answered, Loss, Neighbour, Pace, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, Link, PeerUser

logger = logging.getLogger(__name__)

STRANGERS_MAX = 64
"""Connections whose greeting is not done. The oldest makes room for the next, so that nobody can keep peers
out.
"""
_TELL_INTERVAL_S = 60.0
"""How late it is told what the log left out."""


class PeerDoor:
    """All connections of a node with other nodes: the port `Peers` on real sockets."""

    me: Peer
    user: PeerUser

    def __init__(self, config: PeerConfig, codec: CallCodec, tls: ServerTls | None = None) -> None:
        self.config = config
        self._tls = tls
        self.codec = codec
        self.log = LimitedLog(logger)
        self._secret = config.secret.encode()
        self._chance = Random(secrets.randbits(64))
        self._neighbours: dict[NodeId, Neighbour] = {}
        self._diallers: dict[tuple[NodeId, Pace], Dialler] = {}
        self._accepted: dict[tuple[NodeId, Pace], PeerLink] = {}
        self._links: dict[PeerLink, None] = {}
        self._waiting: dict[tuple[NodeId, Pace], asyncio.Future[PeerLink]] = {}
        self._is_serving = False
        self._server: asyncio.Server | None = None
        self._look: asyncio.TimerHandle | None = None
        self._told_s = 0.0
        self._is_stopping = False
        self._left = asyncio.Event()

    async def start(self, host: str, port: int) -> int:
        """Listen; gives the port that was bound. Nobody is let in before `serve`. Raises OSError."""
        check_listener(self.config, host)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._accept,
            host or None,
            port,
            ssl=None if self._tls is None else self._tls.context,
            ssl_handshake_timeout=None if self._tls is None else self._tls.handshake_s,
        )
        self._look_later()
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Let nobody in, dial nobody, and close all links; what is written is sent."""
        if self._server is None:
            return
        self._is_serving, self._is_stopping = False, True
        self._server.close()
        if self._look is not None:
            self._look.cancel()
        for dialler in self._diallers.values():
            dialler.stop()
        self._diallers.clear()
        for link in list(self._links):
            link.finish()
        try:
            await asyncio.wait_for(self._all_left(), self.config.greeting_ms / 1_000)
        except TimeoutError:
            for link in list(self._links):
                link.abort()
            await self._all_left()
        for future in self._waiting.values():
            future.cancel()
        self.log.tell_suppressed()
        await self._server.wait_closed()
        self._server = None

    async def _all_left(self) -> None:
        while self._links:
            self._left.clear()
            await self._left.wait()

    def serve(self, me: Peer, user: PeerUser) -> None:
        if self._is_serving and me != self.me:
            for dialler in self._diallers.values():
                dialler.stop()
            self._diallers.clear()
            for link in list(self._links):
                link.cut("peer_cut", "this node has registered anew")
        self.me, self.user = me, user
        self._is_serving = True
        self._dial_all()

    def meet(self, neighbours: Mapping[NodeId, Neighbour]) -> None:
        self._neighbours = dict(neighbours)
        for link in list(self._links):
            if link.is_known and not self._is_registered(link.peer):
                link.cut("peer_cut", "the peer is not registered any more")
        for place, dialler in list(self._diallers.items()):
            if self._neighbours.get(dialler.node) != dialler.neighbour:
                dialler.stop()
                del self._diallers[place]
        if self._is_serving:
            self._dial_all()

    async def link(self, node: NodeId, pace: Pace) -> Link:
        place = node, pace
        if node in self._neighbours and place not in self._diallers and self._is_serving:
            self._dial(node, pace)
        dialler = self._diallers.get(place)
        if dialler is not None and dialler.link is not None:
            return dialler.link
        future = self._waiting.get(place)
        if future is None:
            future = self._waiting[place] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(future)

    async def call(
        self, node: NodeId, command: Command, *, wait_ms: int, tail: Sequence[Buffer] = ()
    ) -> Answered:
        dialler = self._diallers.get((node, Pace.LIVE))
        if dialler is None:
            raise NodeUnreachable(node)
        if not dialler.tried.is_set():
            wait_ms = await self._first_attempt(dialler, wait_ms)
        if dialler.link is None:
            raise NodeUnreachable(node)
        return await dialler.link.call(command, wait_ms, tail)

    def enter(self, link: PeerLink) -> None:
        strangers = [other for other in self._links if not other.is_known and not other.is_dialler]
        if len(strangers) >= STRANGERS_MAX:
            strangers[0].cut("peer_refused", f"{STRANGERS_MAX} others wait to be known")
        self._links[link] = None
        if self._is_stopping:
            link.abort()

    def welcome(self, link: PeerLink) -> None:
        if link.is_dialler:
            return
        place = link.peer.node, link.pace
        if (earlier := self._accepted.get(place)) is not None:
            earlier.cut("peer_cut", "the peer has made another connection")
        self._accepted[place] = link

    def leave(self, link: PeerLink) -> None:
        self._links.pop(link, None)
        self._left.set()
        if not link.is_known:
            return
        place = link.peer.node, link.pace
        if self._accepted.get(place) is link:
            del self._accepted[place]
        if (dialler := self._diallers.get(place)) is not None:
            dialler.lose(link)
        if self._is_serving:
            self.user.lost(link.peer.node, link.loss)

    @property
    def link_count(self) -> int:
        return len(self._links)

    def _accept(self) -> PeerProtocol:
        return PeerProtocol(self._new_link(None, Pace.LIVE))

    def _new_link(self, expected: Peer | None, pace: Pace) -> PeerLink:
        me = self.me if self._is_serving else Peer(NodeId(""), Incarnation(0))
        greeting = Greeting(
            me,
            self.config.cluster_id,
            self._secret,
            secrets.token_bytes(NONCE_BYTES),
            expected=expected,
            pace=pace,
            is_registered=self._is_registered,
        )
        return PeerLink(self, greeting, is_dialler=expected is not None)

    def _is_registered(self, peer: Peer) -> bool:
        neighbour = self._neighbours.get(peer.node)
        return (
            self._is_serving
            and peer.node != self.me.node
            and neighbour is not None
            and neighbour.incarnation == peer.incarnation
        )

    def _dial_all(self) -> None:
        for node in self._neighbours:
            if node != self.me.node and (node, Pace.LIVE) not in self._diallers:
                self._dial(node, Pace.LIVE)
        for node, pace in self._waiting:
            if node in self._neighbours and (node, pace) not in self._diallers:
                self._dial(node, pace)

    def _dial(self, node: NodeId, pace: Pace) -> None:
        neighbour = self._neighbours[node]
        expected = Peer(node, neighbour.incarnation)
        self._diallers[node, pace] = Dialler(
            node,
            neighbour,
            pace,
            make_link=lambda: self._new_link(expected, pace),
            made=self._made,
            failed=self._failed,
            pauses_ms=(self.config.pause_ms, self.config.pause_ms_max),
            greeting_ms=self.config.greeting_ms,
            chance=self._chance,
            tls=None if self._tls is None else self._tls.greeting,
        )

    def _made(self, link: PeerLink) -> None:
        future = self._waiting.pop((link.peer.node, link.pace), None)
        if future is not None:
            future.set_result(link)

    def _failed(self, node: NodeId, loss: Loss, reason: str) -> None:
        self.log.write(logging.INFO, "peer_not_reached", {"node": node, "reason": reason})
        self.user.lost(node, loss)

    async def _first_attempt(self, dialler: Dialler, wait_ms: int) -> int:
        """Wait for the connection that is being made; how much of the time is left then."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            await asyncio.wait_for(dialler.tried.wait(), wait_ms / 1_000)
        except TimeoutError:
            raise NodeUnreachable(dialler.node) from None
        return max(1, wait_ms - round(1_000 * (loop.time() - began_s)))

    def _look_later(self) -> None:
        seconds = self.config.idle_ms / 1_000
        self._look = asyncio.get_running_loop().call_later(seconds, self._look_around)

    def _look_around(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for link in list(self._links):
            link.look(now_s)
        if now_s - self._told_s > _TELL_INTERVAL_S:
            self._told_s = now_s
            self.log.tell_suppressed()
        self._look_later()
