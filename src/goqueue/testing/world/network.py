"""A simulated network: ordered ways between nodes that are late, cut, clogged and reset, all from one seed.

A connection is two ways. What travels one way arrives in order or not at all: when a connection breaks, a
part of what is under way still arrives, perhaps long after a new connection is up, and the rest is lost.
The two ends learn of a break at times of their own. Each node's callbacks run in its own context, so a node
that is dead hears nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from goqueue.model.cluster import NodeId
from goqueue.model.peers import LINK_UNSENT_BYTES_MAX, SESSION_UNSENT_BYTES_MAX

if TYPE_CHECKING:
    from goqueue.testing.world.links import End
    from goqueue.testing.world.peers import SimulatedPeers


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFaults:
    """How late things are. What breaks, and when, is said by whoever drives the simulation."""

    late_ms: float = 1.0
    """A message takes up to so long."""
    linger_ms: float = 300.0
    """What a broken connection still delivers may take so much longer, and so may the news of the break."""
    silence_ms: float = 2_000.0
    """Who hears nothing for so long gives a connection up."""
    pause_ms: float = 50.0
    pause_ms_max: float = 1_000.0
    """Before a lost connection is dialled again: first, and at most."""


class Parcel(NamedTuple):
    """One message on its way."""

    due_s: float
    size: int
    turn: "Turn | None"
    deliver: Callable[[], None]


class Turn:
    """A session's share of what is under way."""

    __slots__ = ("has_room_again", "is_starved", "unsent_bytes")

    def __init__(self, has_room_again: Callable[[], None]) -> None:
        self.has_room_again = has_room_again
        self.unsent_bytes = 0
        self.is_starved = False


class Way:
    """One direction of a connection. What is put in comes out in order, at the other end's time."""

    def __init__(
        self, network: "SimulatedNetwork", places: tuple[NodeId, NodeId], contexts: tuple[Context, Context]
    ):
        self._network = network
        self.places = places
        self._source_context, self._target_context = contexts
        self._parcels: deque[Parcel] = deque()
        self._last_due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._starved: list[Turn] = []
        self._is_closed = False
        self.unsent_bytes = 0

    def put(self, size: int, deliver: Callable[[], None], turn: Turn | None = None) -> None:
        """Send something. On a way that is closed nothing happens."""
        if not self._is_closed:
            self._put(size, deliver, turn, self._network.late_s())

    def close(self, deliver: Callable[[], None]) -> None:
        """The connection breaks: some of what is under way still arrives, then the other end learns of it."""
        if self._is_closed:
            return
        self._is_closed = True
        kept = self._network.chance.randint(0, len(self._parcels))
        while len(self._parcels) > kept:
            self._drop(self._parcels.pop())
        self._put(0, deliver, None, self._network.late_s() + self._network.linger_s())

    def discard(self) -> None:
        """Whoever should hear of it is gone."""
        self._is_closed = True
        self._parcels.clear()
        self._network.held.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def forget(self, turn: Turn) -> None:
        """A session is closed: what of it has not gone out is dropped, and chance says how much that is."""
        mine = [parcel for parcel in self._parcels if parcel.turn is turn]
        for parcel in mine[self._network.chance.randint(0, len(mine)) :]:
            self._parcels.remove(parcel)
            self._drop(parcel)
        if turn.is_starved:
            turn.is_starved = False
            self._starved.remove(turn)

    def has_room(self, turn: Turn) -> bool:
        if turn.unsent_bytes < SESSION_UNSENT_BYTES_MAX and self.unsent_bytes < LINK_UNSENT_BYTES_MAX:
            return True
        if not turn.is_starved:
            turn.is_starved = True
            self._starved.append(turn)
        return False

    def go_on(self) -> None:
        """Deliver what is due, if the network lets it pass."""
        if self._timer is None and self._parcels:
            if self._network.is_stopped(*self.places):
                self._network.held[self] = None
                return
            loop = asyncio.get_running_loop()
            due_s = max(self._parcels[0].due_s, loop.time())
            self._timer = loop.call_at(due_s, self._deliver, context=self._target_context)

    def _put(self, size: int, deliver: Callable[[], None], turn: Turn | None, late_s: float) -> None:
        self._last_due_s = max(self._last_due_s, asyncio.get_running_loop().time() + late_s)
        self._parcels.append(Parcel(self._last_due_s, size, turn, deliver))
        self.unsent_bytes += size
        if turn is not None:
            turn.unsent_bytes += size
        self.go_on()

    def _deliver(self) -> None:
        self._timer = None
        if self._network.is_stopped(*self.places):
            self.go_on()
        elif self._parcels:
            parcel = self._parcels.popleft()
            self._drop(parcel)
            if self._starved:
                asyncio.get_running_loop().call_soon(self._tell_room, context=self._source_context)
            self.go_on()
            parcel.deliver()

    def _drop(self, parcel: Parcel) -> None:
        self.unsent_bytes -= parcel.size
        if parcel.turn is not None:
            parcel.turn.unsent_bytes -= parcel.size

    def _tell_room(self) -> None:
        if self.unsent_bytes > LINK_UNSENT_BYTES_MAX // 2:
            return
        told = [turn for turn in self._starved if turn.unsent_bytes <= SESSION_UNSENT_BYTES_MAX // 2]
        for turn in told:
            turn.is_starved = False
        self._starved = [turn for turn in self._starved if turn.is_starved]
        for turn in told:
            turn.has_room_again()


class SimulatedNetwork:
    """All nodes of a simulation, and what lies between them."""

    def __init__(self, chance: Random, faults: NetworkFaults | None = None) -> None:
        self.chance = chance
        self.faults = faults or NetworkFaults()
        self.nodes: dict[NodeId, SimulatedPeers] = {}
        """Those that are alive and serve."""
        self.ends: dict[End, None] = {}
        """Of connections that are not over."""
        self.held: dict[Way, None] = {}
        """Ways with something that waits for the network, also of connections that are over at one end."""
        self._cuts: dict[tuple[NodeId, NodeId], int] = {}
        self._cut_count = 0
        self._clogged: set[tuple[NodeId, NodeId]] = set()

    def cut(self, source: NodeId, target: NodeId) -> None:
        """Nothing from one node arrives at the other, until it is healed. Cut both ways by calling it twice.

        What is under way waits, as TCP sends it again; who hears nothing for too long gives up.
        """
        if (source, target) not in self._cuts:
            self._cut_count += 1
            self._cuts[source, target] = self._cut_count
            for end in list(self.ends):
                if (end.peer.node, end.node) == (source, target):
                    end.give_up_later(self.faults.silence_ms / 1_000)

    def heal(self, source: NodeId, target: NodeId) -> None:
        self._cuts.pop((source, target), None)
        self._go_on(source, target)

    def heal_all(self) -> None:
        """Nothing is cut or clogged any more."""
        places = {*self._cuts, *self._clogged}
        self._cuts.clear()
        self._clogged.clear()
        for place in sorted(places):
            self._go_on(*place)

    def clog(self, source: NodeId, target: NodeId) -> None:
        """A node takes nothing from another, which is not gone: what it sends piles up there."""
        self._clogged.add((source, target))

    def unclog(self, source: NodeId, target: NodeId) -> None:
        self._clogged.discard((source, target))
        self._go_on(source, target)

    def reset(self, one: NodeId, other: NodeId) -> None:
        """All connections between two nodes break, and may be made anew."""
        for end in list(self.ends):
            if {end.node, end.peer.node} == {one, other}:
                end.outward.close(end.other_lost)

    def crash(self, node: NodeId, *, is_power_cut: bool = False) -> None:
        """A node dies and hears nothing any more. Its neighbours' systems tell them, but not after a power
        cut.
        """
        self.nodes.pop(node, None)
        for end in list(self.ends):
            if end.node == node:
                end.die(is_power_cut=is_power_cut)

    def is_stopped(self, source: NodeId, target: NodeId) -> bool:
        """Whether nothing arrives there from here now."""
        return (source, target) in self._cuts or (source, target) in self._clogged

    def cut_since(self, source: NodeId, target: NodeId) -> int:
        """Which cut it is that lies between them; 0: none."""
        return self._cuts.get((source, target), 0)

    def late_s(self) -> float:
        return self.chance.uniform(0, self.faults.late_ms) / 1_000

    def linger_s(self) -> float:
        return self.chance.uniform(0, self.faults.linger_ms) / 1_000

    def _go_on(self, source: NodeId, target: NodeId) -> None:
        for way in [way for way in self.held if way.places == (source, target)]:
            del self.held[way]
            way.go_on()
