"""The port `Peers` over a simulated network: one node's connections, streams and calls.

It promises what the peer door does and no more; both pass one suite. Commands and replies travel as the
values they are, frames as copies. A node that starts again gets another one of these.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context, copy_context

from goqueue.model.cluster import NodeId
from goqueue.model.errors import NodeUnreachable
from goqueue.model.peers import Answered, Loss, Neighbour, Pace, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, PeerUser
from goqueue.testing.world.links import End
from goqueue.testing.world.network import SimulatedNetwork, Way


class Dialling:
    """Keeps one connection to a neighbour."""

    def __init__(self, owner: "SimulatedPeers", node: NodeId, neighbour: Neighbour, pace: Pace) -> None:
        self._owner = owner
        self.node = node
        self.neighbour = neighbour
        self.pace = pace
        self.link: End | None = None
        self.tried = asyncio.Event()
        self._pause_s = 0.0
        self._is_stopped = False
        self._later(owner.network.late_s())

    def stop(self) -> None:
        self._is_stopped = True
        self.tried.set()

    def lose(self, end: End) -> None:
        if end is self.link:
            self.link = None
            self.tried.clear()
            self._again()

    def _again(self) -> None:
        faults, chance = self._owner.network.faults, self._owner.network.chance
        self._later(self._pause_s * chance.uniform(0.5, 1.0))
        self._pause_s = min(max(2 * self._pause_s, faults.pause_ms / 1_000), faults.pause_ms_max / 1_000)

    def _later(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._dial, context=self._owner.context)

    def _dial(self) -> None:
        owner = self._owner
        if self._is_stopped or owner.network.nodes.get(owner.me.node) is not owner:
            return
        network, other = owner.network, owner.network.nodes.get(self.node)
        if other is None:
            self._fail(Loss.REFUSED)
        elif network.is_stopped(owner.me.node, self.node) or network.is_stopped(self.node, owner.me.node):
            self._fail(Loss.SILENT)
        elif not other.is_registered(owner.me) or other.me.incarnation != self.neighbour.incarnation:
            self._fail(Loss.RESET)
        else:
            self._pause_s = 0.0
            self.link = owner.connect(other, self.pace)
            self.tried.set()
            owner.made(self.link)

    def _fail(self, loss: Loss) -> None:
        self.tried.set()
        self._again()
        self._owner.user.lost(self.node, loss)


class SimulatedPeers:
    """One life of one node on the network: the port `Peers`."""

    me: Peer
    user: PeerUser
    context: Context

    def __init__(self, network: SimulatedNetwork) -> None:
        self.network = network
        self.failures: list[Exception] = []
        """Bugs in verbs that were called: the caller hears only that there was one."""
        self._is_serving = False
        self._neighbours: dict[NodeId, Neighbour] = {}
        self._diallings: dict[tuple[NodeId, Pace], Dialling] = {}
        self._accepted: dict[tuple[NodeId, Pace], End] = {}
        self._waiting: dict[tuple[NodeId, Pace], asyncio.Future[End]] = {}

    def serve(self, me: Peer, user: PeerUser) -> None:
        self.context = copy_context()
        if self._is_serving and me != self.me:
            self._stop_dialling()
            for end in self._ends():
                end.lose(Loss.CUT)
        self.me, self.user = me, user
        self._is_serving = True
        self.network.nodes[me.node] = self
        self._dial_all()

    def meet(self, neighbours: Mapping[NodeId, Neighbour]) -> None:
        self._neighbours = dict(neighbours)
        if not self._is_serving:
            return
        for end in self._ends():
            if not self.is_registered(end.peer):
                end.lose(Loss.CUT)
        for place, dialling in list(self._diallings.items()):
            if self._neighbours.get(dialling.node) != dialling.neighbour:
                dialling.stop()
                del self._diallings[place]
        self._dial_all()

    async def link(self, node: NodeId, pace: Pace) -> End:
        place = node, pace
        dialling = self._diallings.get(place)
        if dialling is not None and dialling.link is not None:
            return dialling.link
        future = self._waiting.setdefault(place, asyncio.get_running_loop().create_future())
        self._dial_all()
        return await asyncio.shield(future)

    async def call(
        self, node: NodeId, command: Command, *, wait_ms: int, tail: Sequence[Buffer] = ()
    ) -> Answered:
        dialling = self._diallings.get((node, Pace.LIVE))
        if dialling is None:
            raise NodeUnreachable(node)
        try:
            async with asyncio.timeout(wait_ms / 1_000):
                await dialling.tried.wait()
        except TimeoutError:
            raise NodeUnreachable(node) from None
        if dialling.link is None:
            raise NodeUnreachable(node)
        return await dialling.link.call(command, wait_ms, tail)

    def stop(self) -> None:
        """Leave in good order: all connections end, and nobody is let in."""
        self._stop_dialling()
        self.network.nodes.pop(self.me.node, None)
        for end in self._ends():
            end.lose(Loss.CUT)

    def is_registered(self, peer: Peer) -> bool:
        neighbour = self._neighbours.get(peer.node)
        return (
            peer.node != self.me.node and neighbour is not None and neighbour.incarnation == peer.incarnation
        )

    def connect(self, other: "SimulatedPeers", pace: Pace) -> End:
        """Both ends of a new connection; this one's."""
        here, there = End(self, other.me, pace), End(other, self.me, pace)
        here.other, there.other = there, here
        places, contexts = (self.me.node, other.me.node), (self.context, other.context)
        here.outward = Way(self.network, places, contexts)
        there.outward = Way(self.network, places[::-1], contexts[::-1])
        self.network.ends |= {here: None, there: None}
        other.accept(there)
        return here

    def accept(self, end: End) -> None:
        place = end.peer.node, end.pace
        if (earlier := self._accepted.get(place)) is not None:
            # What was sent over it may come for a while yet.
            linger_s = self.network.linger_s()
            asyncio.get_running_loop().call_later(linger_s, earlier.lose, Loss.CUT, context=self.context)
        self._accepted[place] = end

    def made(self, link: End) -> None:
        future = self._waiting.pop((link.peer.node, link.pace), None)
        if future is not None and not future.done():
            future.set_result(link)

    def leave(self, end: End) -> None:
        place = end.peer.node, end.pace
        if self._accepted.get(place) is end:
            del self._accepted[place]
        if (dialling := self._diallings.get(place)) is not None:
            dialling.lose(end)

    def _ends(self) -> list[End]:
        return [end for end in self.network.ends if end.node == self.me.node]

    def _dial_all(self) -> None:
        if not self._is_serving:
            return
        live = [(node, Pace.LIVE) for node in self._neighbours if node != self.me.node]
        for node, pace in [*live, *self._waiting]:
            if node in self._neighbours and (node, pace) not in self._diallings:
                self._diallings[node, pace] = Dialling(self, node, self._neighbours[node], pace)

    def _stop_dialling(self) -> None:
        for dialling in self._diallings.values():
            dialling.stop()
        self._diallings.clear()
