"""A node as one of several: it joins before its broker is opened, and leaves before its doors are closed.

Imported only when a cluster is configured: one node alone knows neither etcd nor gRPC.
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from random import SystemRandom

import goqueue
from goqueue.broker.broker import Broker
from goqueue.broker.cluster.controlling import Controlling
from goqueue.broker.cluster.identity import Identity
from goqueue.broker.cluster.joining import become_member, identify, leave
from goqueue.broker.cluster.membership import Membership
from goqueue.broker.cluster.node_store import NodeStore
from goqueue.broker.forwarding.forwarding import PASSED_ON, Forwarding
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.groups.shared import SharedGroups
from goqueue.broker.opening import end_start
from goqueue.broker.replication.replication import Replication
from goqueue.broker.storage.journal import JOURNAL_SETTINGS
from goqueue.broker.storage.journal_set import JOURNAL_COUNT
from goqueue.broker.topics.agreed import AgreedTopics
from goqueue.broker.topics.holding import Holding
from goqueue.core.cluster.controller import WantedTopic
from goqueue.edge.peer.calls import CallCodec
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.door import PeerDoor
from goqueue.edge.peer.replies import shapes
from goqueue.model.cluster import Incarnation, NodeId, NodeRecord, NodeState, PartitionRecord
from goqueue.model.errors import CannotJoin, GoQueueError, StoreUnreachable
from goqueue.model.peers import Peer
from goqueue.model.ports import Disk, Threads
from goqueue.node import config_table as table
from goqueue.node.cluster_peers import ClusterPeers
from goqueue.node.config import ClusterConfig, NodeConfig
from goqueue.node.config_values import Address
from goqueue.node.door_wiring import DoorBlocked, OpenDoor, why_blocked
from goqueue.node.etcd.store import EtcdStore

logger = logging.getLogger(__name__)

DRAIN_S = 5.0
"""So long a node that stops waits for others to lead what it led."""


@asynccontextmanager
async def joined_cluster(config: NodeConfig, disk: Disk, threads: Threads) -> AsyncIterator["ClusterNode"]:
    """Join the cluster that the settings name, as far as it can be joined without a broker."""
    cluster = config.cluster
    assert cluster is not None
    endpoints = [str(address) for address in cluster.etcd]
    store = EtcdStore(endpoints, root=f"/goqueue/{cluster.name}/", chance=SystemRandom())
    node_id = NodeId(config.broker.node_id)
    try:
        local = NodeStore(store, node_id)
        try:
            me = await identify(store, disk, threads, node_id, draw_id=lambda: secrets.token_urlsafe(16))
            patience_ms = 3 * cluster.session_ms + 1_000
            await become_member(
                store, me, rack=cluster.rack, patience_ms=patience_ms, forget_folder=local.forget_folder
            )
        except StoreUnreachable as error:
            raise CannotJoin(
                f"{error}; start etcd, or name its members with {table.CLUSTER_ETCD.variable}"
            ) from error
        node = ClusterNode(cluster, store, local, me, config.kafka_address)
        try:
            yield node
        finally:
            await node.close()
    finally:
        await store.close()


class ClusterNode:
    """What a node needs to be one of several, beside its broker."""

    def __init__(
        self, config: ClusterConfig, store: EtcdStore, local: NodeStore, me: Identity, kafka: Address | None
    ) -> None:
        self._config = config
        self._store = store
        self.local = local
        """What the broker keeps to."""
        self._me = me
        self._kafka_advertised = kafka
        codec = CallCodec(shapes((command, passed.reply) for command, passed in PASSED_ON.items()))
        self._door = PeerDoor(PeerConfig(cluster_id=me.cluster_id, secret=config.secret), codec)
        self._holding: Holding
        self._groups: SharedGroups
        self._peers: ClusterPeers | None = None
        self._membership: Membership | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def prepare(self, broker: Broker) -> None:
        """Open what this node holds, and give up what it does not hold as it should."""
        self._holding = Holding(broker)
        self._groups = SharedGroups(broker)
        broker.shared_topics = AgreedTopics(broker, self._holding)
        await self._holding.catch_up()
        end_start(broker)
        if self._holding.lacking:
            logger.warning("replicas_lacking", extra={"count": len(self._holding.lacking)})
            await leave(self._store, self._me.node_id, self._holding.lacking)

    async def _open_door(self) -> OpenDoor:
        """Let other nodes connect, once there is somebody to be."""
        listener = self._config.peer_listener
        try:
            port = await self._door.start(listener.host, listener.port)
        except OSError as error:
            raise DoorBlocked(why_blocked("peer", listener, table.PEER_LISTENER, error)) from error
        return OpenDoor("peer", Address(listener.host, port), self._door)

    async def enter(self, broker: Broker, doors: Sequence[OpenDoor]) -> OpenDoor:
        """Be known as alive, take part in deciding, and be ready. Raises CannotJoin, StoreUnreachable.

        Returns the door for other nodes.
        """
        peer_door = await self._open_door()
        at = {opened.name: _reached_at(opened.address) for opened in (*doors, peer_door)}
        record = NodeRecord(
            folder_id=self._me.folder_id,
            rack=self._config.rack,
            version=goqueue.__version__,
            peer=str(self._config.peer_advertised or at["peer"]),
            kafka=str(self._kafka_advertised or at.get("kafka", "")),
            http=str(self._config.http_advertised or at.get("http", "")),
        )
        membership = Membership(self._store, self._me, record, session_ms=self._config.session_ms)
        controlling = Controlling(
            self.local,
            broker.metadata,
            broker.agreement,
            membership,
            broker.clock,
            wanted=(WantedTopic(OFFSETS_TOPIC, JOURNAL_COUNT, JOURNAL_SETTINGS),),
        )
        forwarding = Forwarding(broker, self._door)
        peers = self._peers = ClusterPeers(broker, self._store, controlling, forwarding)
        broker.on_partition_failed = peers.failed
        membership.listeners.append(lambda incarnation: self._replicate(broker, peers, incarnation))
        await membership.register()
        self._membership = membership
        broker.agreement.listeners.append(lambda: self._door.meet(peers.neighbours(self._me.node_id)))
        for work in (membership.keep(), controlling.run(), self._holding.follow()):
            self._begin(broker, work)
        broker.forwarding = forwarding
        await membership.tell(NodeState.READY)
        return peer_door

    async def leave(self, broker: Broker) -> None:
        """Let others lead what this node leads, as far as there are others and the store answers."""
        if self._membership is None or self._membership.session.is_lost:
            return
        with suppress(GoQueueError, TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self._membership.tell(NodeState.DRAINING)
                await self._led_by_others(broker)

    async def cut_off(self) -> None:
        """Neither copy nor be copied from any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._peers is not None:
            self._peers.close()
        await self._door.stop()

    async def close(self) -> None:
        """Be gone for the others."""
        await self.cut_off()
        if self._membership is not None:
            await self._membership.close()

    def _replicate(self, broker: Broker, peers: ClusterPeers, incarnation: Incarnation) -> None:
        """Another incarnation begins from nothing: it follows and leads by records of its own."""
        me = Peer(self._me.node_id, incarnation)
        if peers.replication is not None:
            peers.replication.close()
        peers.replication = Replication(
            me,
            clock=broker.clock,
            threads=broker.threads,
            flusher=broker.flusher,
            store=self._store,
            peers=self._door,
            roles=self._groups,
        )
        self._door.serve(me, peers)
        self._door.meet(peers.neighbours(me.node))
        self._holding.replicate(peers.replication)
        peers.replication.begin()

    async def _led_by_others(self, broker: Broker) -> None:
        image, me = broker.metadata, self._me.node_id
        changed = asyncio.Event()
        broker.agreement.listeners.append(changed.set)

        def can_be_led_by_another(record: PartitionRecord) -> bool:
            others = (image.nodes.get(node) for node in record.isr if node != me)
            return any(other is not None and other.state is NodeState.READY for other in others)

        while any(record.leader == me and can_be_led_by_another(record) for record in image.records.values()):
            changed.clear()
            await changed.wait()

    def _begin(self, broker: Broker, work: Coroutine[None, None, None]) -> None:
        """Have something done as long as the node lives; it ends with what that fails for."""

        def tell(task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                logger.error("cluster_left", extra={"reason": repr(error)}, exc_info=error)
                broker.end(error if isinstance(error, GoQueueError) else CannotJoin(repr(error)))

        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(tell)
        self._tasks.append(task)


def _reached_at(listened: Address) -> str:
    """Where others reach a door that listens there: by the machine's name, where it listens everywhere."""
    return str(Address(socket.gethostname(), listened.port) if listened.is_anywhere else listened)
