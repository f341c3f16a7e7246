"""A broker as one of several: what it holds, that it is alive, what it decides, copies and passes on.

A real node hands in etcd and the peer door, a simulated one a store and a network: what lies between is wired
here, once. The order is what keeps a promise: whoever is registered holds what it is believed to hold.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress

from goqueue.broker.broker import Broker
from goqueue.broker.cluster.controlling import Controlling
from goqueue.broker.cluster.identity import Identity
from goqueue.broker.cluster.joining import become_member, identify, leave
from goqueue.broker.cluster.membership import Membership
from goqueue.broker.cluster.node_store import NodeStore
from goqueue.broker.forwarding.forwarding import Forwarding
from goqueue.broker.member.clocks import Clocks
from goqueue.broker.member.peers import Knock, MemberPeers
from goqueue.broker.opening import end_start
from goqueue.broker.remote.remotes import Remotes
from goqueue.broker.remote.rounds import Rounds
from goqueue.broker.replication.replication import LAG_MAX_MS, Replication
from goqueue.broker.schemas.shared import SharedRegistry
from goqueue.broker.shared_journals import SharedJournals, all_shared
from goqueue.broker.tenants.verbs import share_rates
from goqueue.broker.topics.agreed import AgreedTopics
from goqueue.broker.topics.holding import Holding
from goqueue.broker.transactions.hanging import look_for_hanging
from goqueue.model.cluster import Incarnation, NodeId, NodeRecord, NodeState, PartitionRecord
from goqueue.model.errors import CannotJoin, GoQueueError
from goqueue.model.peers import Peer
from goqueue.model.ports import Disk, Peers, Store, Threads

logger = logging.getLogger(__name__)

DRAIN_S = 5.0
"""So long a node that stops waits for others to lead what it led."""


async def join(
    store: Store,
    disk: Disk,
    threads: Threads,
    node: NodeId,
    *,
    rack: str,
    session_ms: int,
    draw_id: Callable[[], str],
    mark_of: Callable[[str], str] = lambda _: "",
) -> Identity:
    """Join a cluster, as far as it can be joined without a broker. Raises CannotJoin, StoreUnreachable.

    `mark_of` tells what the secret of nodes is known by in a cluster.
    """
    me = await identify(store, disk, threads, node, draw_id=draw_id)
    patience_ms = 3 * session_ms + 1_000
    forget_folder = NodeStore(store, node).forget_folder
    await become_member(
        store,
        me,
        rack=rack,
        patience_ms=patience_ms,
        forget_folder=forget_folder,
        secret_mark=mark_of(me.cluster_id),
    )
    return me


class Member:
    """What a broker needs to be one of several: `prepare` it, then `enter`."""

    def __init__(
        self,
        broker: Broker,
        me: Identity,
        *,
        store: Store,
        peers: Peers,
        knock: Knock,
        session_ms: int,
        quorum: int = 1,
        lag_max_ms: int = LAG_MAX_MS,
    ) -> None:
        """`quorum`: so many nodes are ready before topics are made that brokers need for themselves."""
        self._broker = broker
        self._me = me
        self._store = store
        self._peers = peers
        self._knock = knock
        self._session_ms = session_ms
        self._quorum = quorum
        self._lag_max_ms = lag_max_ms
        self._holding = Holding(broker, store)
        self._journals = SharedJournals(broker, all_shared(broker))
        self._registry = SharedRegistry(broker)
        self._users: MemberPeers | None = None
        self._remotes: Remotes | None = None
        self._rounds: Rounds | None = None
        self.membership: Membership | None = None
        """None: it has not registered yet."""
        self._tasks: list[asyncio.Task[None]] = []

    async def prepare(self) -> None:
        """Open what this node holds, and give up what it does not hold as it should."""
        self._broker.shared_topics = AgreedTopics(self._broker, self._holding)
        await self._holding.catch_up()
        end_start(self._broker)
        if self._holding.lacking:
            logger.warning("replicas_lacking", extra={"count": len(self._holding.lacking)})
            await leave(self._store, self._me.node_id, self._holding.lacking)

    async def enter(self, record: NodeRecord) -> None:
        """Be known as alive, take part in deciding, and be ready. Raises CannotJoin, StoreUnreachable."""
        broker = self._broker
        membership = Membership(
            self._store, self._me, record, session_ms=self._session_ms, wall_ms=broker.clock.wall_ms
        )
        controlling = Controlling(
            NodeStore(self._store, self._me.node_id),
            broker.metadata,
            broker.agreement,
            membership,
            broker.clock,
            wanted=self._journals.wanted,
            quorum=self._quorum,
            counts=broker.counters.cluster,
        )
        forwarding = Forwarding(broker, self._peers)
        remotes = self._remotes = Remotes(broker, forwarding)
        rounds = self._rounds = Rounds(broker, forwarding)
        users = self._users = MemberPeers(broker, self._store, controlling, forwarding, self._knock)
        broker.on_partition_failed = users.failed
        membership.listeners.append(lambda incarnation: self._replicate(users, incarnation))
        await membership.register()
        self.membership = membership
        broker.counters.cluster.is_store_away = lambda: membership.session.is_doubtful
        broker.agreement.listeners.append(lambda: self._peers.meet(users.neighbours(self._me.node_id)))
        for work in (membership.keep(), controlling.run(), self._holding.follow(), remotes.follow()):
            self._begin(work)
        broker.agreement.listeners.append(lambda: share_rates(broker))
        broker.agreement.listeners.append(Clocks(broker.metadata, broker.clock, self._me.node_id).look)
        broker.forwarding, broker.remotes, broker.rounds = forwarding, remotes, rounds
        self._begin(self._registry.follow())
        self._begin(look_for_hanging(broker))
        await membership.tell(NodeState.READY)

    async def leave(self) -> None:
        """Let others lead what this node leads, as far as there are others and the store answers."""
        if self.membership is None or self.membership.session.is_lost:
            return
        with suppress(GoQueueError, TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self.membership.tell(NodeState.DRAINING)
                await self._led_by_others()

    async def cut_off(self) -> None:
        """Neither copy nor be copied from any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._remotes is not None:
            self._remotes.close()
        if self._rounds is not None:
            self._rounds.close()
        if self._users is not None:
            await self._users.close()

    async def close(self) -> None:
        """Be gone for the others."""
        await self.cut_off()
        if self.membership is not None:
            await self.membership.close()

    async def _replicate(self, users: MemberPeers, incarnation: Incarnation) -> None:
        """Another incarnation begins from nothing: it follows and leads by records of its own."""
        broker, me = self._broker, Peer(self._me.node_id, incarnation)
        if users.replication is not None:
            await users.replication.close_in_turn()
        users.replication = Replication(
            me,
            clock=broker.clock,
            threads=broker.threads,
            flusher=broker.flusher,
            store=self._store,
            peers=self._peers,
            lag_max_ms=self._lag_max_ms,
            roles=self._journals,
            counts=broker.counters.cluster,
        )
        self._peers.serve(me, users)
        self._peers.meet(users.neighbours(me.node))
        await self._holding.replicate(users.replication)
        broker.counters.cluster.lags = users.replication.lags
        users.replication.begin()

    async def _led_by_others(self) -> None:
        image, me = self._broker.metadata, self._me.node_id
        changed = asyncio.Event()
        self._broker.agreement.listeners.append(changed.set)

        def can_be_led_by_another(record: PartitionRecord) -> bool:
            others = (image.nodes.get(node) for node in record.isr if node != me)
            return any(other is not None and other.state is NodeState.READY for other in others)

        while any(record.leader == me and can_be_led_by_another(record) for record in image.records.values()):
            changed.clear()
            await changed.wait()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        """Have something done as long as the node lives; it ends with what that fails for."""

        def tell(task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("cluster_left", extra={"reason": repr(error)}, exc_info=error)
                self._broker.end(error if isinstance(error, GoQueueError) else CannotJoin(repr(error)))

        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(tell)
        self._tasks.append(task)
