"""One life of a node of a simulated cluster: a whole broker, joined to the others as a real node is.

What a process wires with etcd and sockets is wired here with a simulated store and network; everything else
is what nodes run. It has no doors: whoever drives the simulation calls verbs.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.cluster.controlling import Controlling
from goqueue.broker.cluster.identity import Identity
from goqueue.broker.cluster.joining import become_member, identify, leave
from goqueue.broker.cluster.membership import Membership
from goqueue.broker.cluster.node_store import NodeStore
from goqueue.broker.opening import end_start, open_broker
from goqueue.broker.replication.replication import Replication
from goqueue.broker.topics.agreed import AgreedTopics
from goqueue.broker.topics.holding import Holding
from goqueue.core.cluster.values import node_key
from goqueue.model.cluster import Incarnation, NodeId, NodeRecord, NodeState
from goqueue.model.errors import GoQueueError, NotSupported
from goqueue.model.peers import Answered, Loss, Neighbour, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, Stream, StreamUser
from goqueue.model.replication import Follow
from goqueue.model.settings import BrokerConfig
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.lives import Life
from goqueue.testing.world.network import SimulatedNetwork
from goqueue.testing.world.peers import SimulatedPeers
from goqueue.testing.world.store import SimulatedStore
from goqueue.testing.world.threads import SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand

SESSION_MS = 2_000
KNOCK_S = 0.25
"""So long after the first time a door is knocked at once more."""


class ClusterNode:
    def __init__(
        self,
        node: NodeId,
        config: BrokerConfig,
        *,
        disk: SimulatedDisk,
        clock: SimulatedClock,
        store: SimulatedStore,
        network: SimulatedNetwork,
        chance: Random,
    ) -> None:
        self.node = node
        self.life = Life()
        self.disk = disk
        self._config = config
        self._clock = clock
        self._store = store
        self._network = network
        self._chance = chance
        self._threads = SimulatedThreads(Random(f"threads {chance.random()}"))
        self._peers = SimulatedPeers(network)
        self._me: Identity
        self._holding: Holding
        self._controlling: Controlling
        self.broker: Broker
        self.membership: Membership | None = None
        self.replication: Replication | None = None
        self.is_ready = False
        self.failure: BaseException | None = None
        """Why it has ended by itself."""

    def start(self) -> None:
        """Begin to live; see `is_ready`."""
        self.life.begin(self._seen_to(self._join()))

    async def _join(self) -> None:
        store, local = self._store, NodeStore(self._store, self.node)
        draw_id = lambda: f"{self._chance.getrandbits(64):x}"  # noqa: E731
        self._me = await identify(store, self.disk, self._threads, self.node, draw_id=draw_id)
        await become_member(
            store, self._me, rack="", patience_ms=3 * SESSION_MS + 1_000, forget_folder=local.forget_folder
        )
        self.broker = broker = await open_broker(
            config=self._config,
            disk=self.disk,
            clock=self._clock,
            threads=self._threads,
            workshop=WorkshopAtHand(),
            chance=self._chance,
            shared=local,
        )
        self._holding = Holding(broker)
        broker.shared_topics = AgreedTopics(broker, self._holding)
        await self._holding.catch_up()
        end_start(broker)
        if self._holding.lacking:
            await leave(store, self.node, self._holding.lacking)
        record = NodeRecord(folder_id=self._me.folder_id, peer=f"{self.node}:1")
        membership = Membership(store, self._me, record, session_ms=SESSION_MS)
        self._controlling = Controlling(local, broker.metadata, broker.agreement, membership, self._clock)
        broker.on_partition_failed = lambda partition: (
            None if self.replication is None else self.replication.failed(partition)
        )
        membership.listeners.append(self._replicate)
        await membership.register()
        self.membership = membership
        broker.agreement.listeners.append(lambda: self._peers.meet(self._neighbours()))
        for work in (membership.keep(), self._controlling.run(), self._holding.follow()):
            asyncio.get_running_loop().create_task(self._seen_to(work))
        await membership.tell(NodeState.READY)
        self.is_ready = True

    async def _seen_to(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except Exception as error:
            self.failure = error

    def _replicate(self, incarnation: Incarnation) -> None:
        broker, me = self.broker, Peer(self.node, incarnation)
        if self.replication is not None:
            self.replication.close()
        self.replication = Replication(
            me,
            clock=broker.clock,
            threads=broker.threads,
            flusher=broker.flusher,
            store=self._store,
            peers=self._peers,
        )
        self._peers.serve(me, self)
        self._peers.meet(self._neighbours())
        self._holding.replicate(self.replication)
        self.replication.begin()

    def _neighbours(self) -> dict[NodeId, Neighbour]:
        image = self.broker.metadata
        return {
            node: Neighbour(image.incarnation(node), node, 1) for node in image.nodes if node != self.node
        }

    # What other nodes want: see `PeerUser`.

    def followed(self, stream: Stream, message: Follow) -> StreamUser | None:
        return None if self.replication is None else self.replication.followed(stream, message)

    async def answer(self, caller: Peer, command: Command, tail: Buffer, *, wait_ms: int) -> Answered:
        raise NotSupported(f"{type(command).__name__} cannot be asked of a simulated node")

    def lost(self, node: NodeId, loss: Loss) -> None:
        """Who decides knocks at the door of who resets its connections, and ends the session of the dead."""
        is_concerned = self._controlling.is_deciding or self.broker.metadata.controller == node
        if loss in (Loss.REFUSED, Loss.RESET) and is_concerned and node not in self._network.nodes:
            asyncio.get_running_loop().create_task(self._end_session(node))

    async def _end_session(self, node: NodeId) -> None:
        guard = self.broker.metadata.guard(node_key(node))
        await asyncio.sleep(KNOCK_S)
        if node in self._network.nodes:
            return
        with suppress(GoQueueError):
            await self._store.end_session(guard.key, guard.revision)
