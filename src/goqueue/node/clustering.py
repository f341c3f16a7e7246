"""A node as one of several: it joins before its broker is opened, and leaves before its doors are closed.

Imported only when a cluster is configured: one node alone knows neither etcd nor gRPC.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import SystemRandom

import goqueue
from goqueue.broker.broker import Broker
from goqueue.broker.cluster.controlling import Controlling
from goqueue.broker.cluster.identity import Identity
from goqueue.broker.cluster.joining import become_member, identify
from goqueue.broker.cluster.membership import Membership
from goqueue.broker.cluster.node_store import NodeStore
from goqueue.model.cluster import NodeId, NodeRecord, NodeState
from goqueue.model.errors import CannotJoin, GoQueueError, StoreUnreachable
from goqueue.model.ports import Disk, Threads
from goqueue.node import config_table as table
from goqueue.node.config import ClusterConfig, NodeConfig
from goqueue.node.config_values import Address
from goqueue.node.door_wiring import OpenDoor
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


@dataclass(slots=True)
class ClusterNode:
    """What a node needs to be one of several, beside its broker."""

    config: ClusterConfig
    store: EtcdStore
    local: NodeStore
    """What the broker keeps to."""
    me: Identity
    kafka_advertised: Address | None
    membership: Membership | None = None
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    async def enter(self, broker: Broker, doors: Sequence[OpenDoor]) -> None:
        """Be known as alive, take part in deciding, and be ready. Raises CannotJoin, StoreUnreachable."""
        addresses = {opened.name: str(opened.address) for opened in doors}
        record = NodeRecord(
            folder_id=self.me.folder_id,
            rack=self.config.rack,
            version=goqueue.__version__,
            peer=str(self.config.peer_advertised or self.config.peer_listener),
            kafka=str(self.kafka_advertised or addresses.get("kafka", "")),
            http=str(self.config.http_advertised or addresses.get("http", "")),
        )
        self.membership = Membership(self.store, self.me, record, session_ms=self.config.session_ms)
        await self.membership.register()
        controlling = Controlling(
            self.local, broker.metadata, broker.agreement, self.membership, broker.clock
        )
        self._begin(broker, self.membership.keep())
        self._begin(broker, controlling.run())
        await self.membership.tell(NodeState.READY)

    async def leave(self, broker: Broker) -> None:
        """Let others lead what this node leads, as far as there are others and the store answers."""
        if self.membership is None or self.membership.session.is_lost:
            return
        with suppress(GoQueueError, TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self.membership.tell(NodeState.DRAINING)
                await self._led_by_others(broker)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.membership is not None:
            await self.membership.close()

    async def _led_by_others(self, broker: Broker) -> None:
        image, me = broker.metadata, self.me.node_id
        changed = asyncio.Event()
        broker.agreement.listeners.append(changed.set)
        while any(record.leader == me and len(record.isr) > 1 for record in image.records.values()):
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
