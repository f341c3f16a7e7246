"""A node as one of several: it joins before its broker is opened, and leaves before its doors are closed.

Imported only when a cluster is configured: one node alone knows neither etcd nor gRPC. Here etcd and the peer
door are made; how a broker is one of several is wired in `broker/member`.
"""

import asyncio
import hashlib
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from random import SystemRandom

import goqueue
from goqueue.broker.broker import Broker
from goqueue.broker.cluster.identity import Identity
from goqueue.broker.cluster.node_store import NodeStore
from goqueue.broker.forwarding.table import PASSED_ON
from goqueue.broker.member.adopting import adopt
from goqueue.broker.member.member import Member, join
from goqueue.edge.peer.calls import CallCodec
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.door import PeerDoor
from goqueue.edge.peer.replies import shapes
from goqueue.model.cluster import NodeId, NodeRecord
from goqueue.model.errors import CannotJoin, StoreUnreachable
from goqueue.model.ports import Disk, Threads
from goqueue.node import config_table as table
from goqueue.node.certificates import server_tls
from goqueue.node.config import NodeConfig
from goqueue.node.config_values import Address
from goqueue.node.door_wiring import DoorBlocked, OpenDoor, why_blocked
from goqueue.node.etcd.store import EtcdStore


@asynccontextmanager
async def joined_cluster(
    config: NodeConfig, disk: Disk, threads: Threads, *, open_alone: Callable[[], Awaitable[Broker]]
) -> AsyncIterator["ClusterNode"]:
    """Join the cluster that the settings name, as far as it can be joined without a broker.

    `open_alone` opens the folder of a node that was alone, which may be adopted.
    """
    cluster = config.cluster
    assert cluster is not None
    endpoints = [str(address) for address in cluster.etcd]
    root = f"/goqueue/{cluster.name}/"
    store = EtcdStore(endpoints, root=root, chance=SystemRandom(), access=cluster.etcd_access)
    try:
        try:
            if cluster.adopts:
                await adopt(
                    store,
                    disk,
                    threads,
                    NodeId(config.broker.node_id),
                    open_alone=open_alone,
                    draw_id=_draw_id,
                )
            me = await join(
                store,
                disk,
                threads,
                NodeId(config.broker.node_id),
                rack=cluster.rack,
                session_ms=cluster.session_ms,
                draw_id=_draw_id,
                mark_of=partial(secret_mark, cluster.secret),
            )
        except StoreUnreachable as error:
            raise CannotJoin(
                f"{error}; start etcd, or name its members with {table.CLUSTER_ETCD.variable}"
            ) from error
        node = ClusterNode(config, store, me)
        try:
            yield node
        finally:
            await node.close()
    finally:
        await store.close()


@cache
def secret_mark(secret: str, cluster_id: str) -> str:
    """The same for nodes with the same secret, and of no use to whoever wants to know that.

    It takes some 50 ms to make, so that nobody who reads it tries out all words there are.
    """
    return hashlib.scrypt(secret.encode(), salt=cluster_id.encode(), n=2**14, r=8, p=1, dklen=16).hex()


def _draw_id() -> str:
    return secrets.token_urlsafe(16)


class ClusterNode:
    """The ways of a node to the others: etcd and the peer door."""

    def __init__(self, whole: NodeConfig, store: EtcdStore, me: Identity) -> None:
        config = whole.cluster
        assert config is not None
        self._config = config
        self._store = store
        self.local = NodeStore(store, me.node_id)
        """What the broker keeps to."""
        self._me = me
        tls = None if config.tls is None else server_tls(config.tls, whole)
        self.certificates = [] if tls is None else [tls]
        """What is shown to other nodes."""
        codec = CallCodec(shapes((command, passed.reply) for command, passed in PASSED_ON.items()))
        self._door = PeerDoor(PeerConfig(cluster_id=me.cluster_id, secret=config.secret), codec, tls)
        self._member: Member | None = None

    async def prepare(self, broker: Broker) -> None:
        """Open what this node holds, and give up what it does not hold as it should."""
        self._member = Member(
            broker,
            self._me,
            store=self._store,
            peers=self._door,
            knock=_is_refused,
            session_ms=self._config.session_ms,
            quorum=self._config.quorum,
            lag_max_ms=self._config.replica_lag_ms,
        )
        broker.counters.cluster.is_store_unsafe = lambda: self._store.is_unsafe
        await self._member.prepare()

    async def _open_door(self) -> OpenDoor:
        """Let other nodes connect, once there is somebody to be."""
        listener = self._config.peer_listener
        try:
            port = await self._door.start(listener.host, listener.port)
        except OSError as error:
            raise DoorBlocked(why_blocked("peer", listener, table.PEER_LISTENER, error)) from error
        return OpenDoor("peer", Address(listener.host, port), self._door)

    async def enter(self, doors: Sequence[OpenDoor]) -> OpenDoor:
        """Be known as alive, and be ready. Raises CannotJoin, StoreUnreachable.

        Returns the door for other nodes.
        """
        assert self._member is not None, "it is prepared first"
        peer_door = await self._open_door()
        listeners, http = _listeners(doors, "kafka"), _listeners(doors, "http")
        if http and self._config.http_advertised is not None:
            http[next(iter(http))] = str(self._config.http_advertised)
        record = NodeRecord(
            folder_id=self._me.folder_id,
            rack=self._config.rack,
            version=goqueue.__version__,
            peer=str(self._config.peer_advertised or _told(peer_door)),
            kafka=next(iter(listeners.values()), ""),
            http=next(iter(http.values()), ""),
            kafka_listeners=listeners if len(listeners) > 1 else {},
            http_listeners=http if len(http) > 1 else {},
            secret_mark=secret_mark(self._config.secret, self._me.cluster_id),
        )
        await self._member.enter(record)
        return peer_door

    async def leave(self) -> None:
        """Let others lead what this node leads, as far as there are others and the store answers."""
        if self._member is not None:
            await self._member.leave()

    async def cut_off(self) -> None:
        """Neither copy nor be copied from any more."""
        if self._member is not None:
            await self._member.cut_off()
        await self._door.stop()

    async def close(self) -> None:
        """Be gone for the others."""
        await self.cut_off()
        if self._member is not None:
            await self._member.close()


def _listeners(doors: Sequence[OpenDoor], name: str) -> dict[str, str]:
    """Where each listener of a door is reached, by its name."""
    return {opened.listener: _told(opened) for opened in doors if opened.name == name}


async def _is_refused(host: str, port: int, wait_s: float) -> bool:
    try:
        async with asyncio.timeout(wait_s):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError):
        return False
    writer.close()
    return False


def _told(opened: OpenDoor) -> str:
    """Where others reach a door: as it says, or by the machine's name, where it listens everywhere."""
    listened = opened.address
    reached = Address(socket.gethostname(), listened.port) if listened.is_anywhere else listened
    return str(opened.advertised or reached)
