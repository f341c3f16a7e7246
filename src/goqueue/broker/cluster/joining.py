"""How a node joins a cluster: who it is, whether it may, and what it no longer holds.

The order is what keeps a promise: whoever is registered and stands in an ISR holds everything. A node whose
folder is new takes itself out of every ISR and ELR before the cluster knows the new folder, and it is
registered only behind that. What is refused leaves nothing behind but the id of a cluster that has none yet.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from uuid import UUID

from goqueue.broker.cluster.identity import NODE_FILE, Identity, read_identity, write_identity
from goqueue.broker.storage.data_folder import is_used
from goqueue.core.cluster import values
from goqueue.core.cluster.isr import without_copy
from goqueue.core.cluster.numbers import node_number
from goqueue.core.cluster.values import encode, member_key, node_key
from goqueue.model.cluster import ABSENT, Guard, Loaded, Member, NodeId, PartitionRecord
from goqueue.model.errors import CannotJoin, Compacted, Outdated, Unknown
from goqueue.model.ports import Disk, Store, Threads

TRIES_MAX = 10
"""So often a step is tried again when others were quicker, or no answer came."""


async def identify(
    store: Store, disk: Disk, threads: Threads, node_id: NodeId, *, draw_id: Callable[[], str]
) -> Identity:
    """Find out, or settle, which node of which cluster this folder is. Raises CannotJoin."""
    known = await threads.run(read_identity, disk)
    if known is not None:
        _check_known(known, node_id, await _cluster_id(store))
        return known
    if await threads.run(is_used, disk):
        raise CannotJoin(
            "the data folder holds what a node that was alone has stored; give the node of a cluster a "
            "folder of its own (GOQUEUE_BROKER_DATADIR), or let a new cluster begin with this one "
            "(GOQUEUE_CLUSTER_ADOPT=true)"
        )
    cluster_id = await _cluster_id(store) or await _form_cluster(store, draw_id())
    identity = Identity(cluster_id=cluster_id, node_id=node_id, folder_id=draw_id())
    await threads.run(write_identity, disk, identity)
    return identity


async def become_member(
    store: Store,
    me: Identity,
    *,
    rack: str,
    patience_ms: int,
    forget_folder: Callable[[], Awaitable[None]],
    secret_mark: str = "",
) -> None:
    """Have the cluster know this node and its folder. Raises CannotJoin, and then it is not known.

    `patience_ms`: how long a node of the same name is waited for that seems to be alive. `forget_folder` is
    called before a folder is known that was not: what was noted of one before it holds no more.
    """
    key = member_key(me.node_id)
    for _ in range(TRIES_MAX):
        loaded = await store.load("")
        item = loaded.items.get(key)
        _check_number(me.node_id, loaded)
        check_secret(me.node_id, secret_mark, loaded)
        wanted, guards = Member(folder_id=me.folder_id, rack=rack), [Guard(key, ABSENT)]
        if item is not None:
            member = values.decode_member(item.value)
            if member == wanted:
                return
            if member.is_retired:
                raise CannotJoin(f"node {me.node_id} was retired from the cluster; join under another id")
            guards = [Guard(key, item.revision)]
            if member.folder_id != me.folder_id:
                await wait_until_gone(store, me, loaded, patience_ms=patience_ms)
                await leave(store, me.node_id, _places_of(me.node_id, loaded))
                # Nobody of the old folder may be there when the new one takes its name.
                guards.append(Guard(node_key(me.node_id), ABSENT))
        try:
            if item is None or len(guards) > 1:
                await forget_folder()
            await store.change(guards, {key: encode(wanted)}, ())
        except (Outdated, Unknown):
            continue
        return
    raise CannotJoin(f"the cluster's records of node {me.node_id} change all the time; try again later")


def check_secret(me: NodeId, secret_mark: str, loaded: Loaded, *, came_before: int | None = None) -> None:
    """Refuse to be one of several who would all refuse this node: it would be believed to hold copies.

    `came_before`: only those count that had registered by then. Raises CannotJoin.
    """
    for key, item in loaded.items.items() if secret_mark else ():
        if not key.startswith(values.NODES) or key == node_key(me):
            continue  # what this node itself was told in an earlier life counts for nothing
        other = values.decode_node(item.value)
        is_known = came_before is None or (other.incarnation or item.revision) < came_before
        if other.secret_mark not in ("", secret_mark) and is_known:
            raise CannotJoin(
                f"node {key.removeprefix(values.NODES)} has another secret; GOQUEUE_CLUSTER_SECRET must be "
                "the same for all nodes (to change it, stop all of them first)"
            )


async def leave(store: Store, node: NodeId, places: Collection[tuple[UUID, int]]) -> None:
    """Take a node out of the ISR and ELR of partitions that it does not hold as it should."""
    left = set(places)
    for _ in range(TRIES_MAX):
        loaded = await store.load(values.PARTS)
        left &= _places_of(node, loaded)
        if not left:
            return
        for place in sorted(left, key=str):
            item = loaded.items[values.part_key(*place)]
            record = without_copy(values.decode_part(item.value), node)
            try:
                key = values.part_key(*place)
                await store.change([Guard(key, item.revision)], {key: encode(record)}, ())
            except (Outdated, Unknown):
                continue  # looked at again with the next load
    raise CannotJoin(f"records of partitions of node {node} change all the time; try again later")


async def wait_until_gone(store: Store, me: Identity, loaded: Loaded, *, patience_ms: int) -> None:
    """Wait for the end of a node that has this one's name and another folder. Raises CannotJoin."""
    key = node_key(me.node_id)
    if key not in loaded.items:
        return
    other = values.decode_node(loaded.items[key].value)
    try:
        async with asyncio.timeout(patience_ms / 1000):
            await _gone(store, key, loaded.revision)
    except TimeoutError:
        raise CannotJoin(
            f"another node named {me.node_id} is alive, with another data folder (its peer door: "
            f"{other.peer or 'none'}); give each node an id of its own (GOQUEUE_BROKER_NODEID)"
        ) from None


async def _gone(store: Store, key: str, after: int) -> None:
    while True:
        try:
            async for change in store.follow(key, after):
                if key in change.drops:
                    return
        except Compacted:
            loaded = await store.load(key)
            if key not in loaded.items:
                return
            after = loaded.revision


async def _cluster_id(store: Store) -> str:
    item = (await store.load(values.CLUSTER)).items.get(values.CLUSTER)
    return values.decode_cluster(item.value).cluster_id if item is not None else ""


async def _form_cluster(store: Store, cluster_id: str) -> str:
    """The first node names the cluster; of several that are first, one does."""
    try:
        formed = encode(values.Cluster(cluster_id))
        await store.change([Guard(values.CLUSTER, ABSENT)], {values.CLUSTER: formed}, ())
    except (Outdated, Unknown):
        named = await _cluster_id(store)
        if not named:
            raise
        return named
    return cluster_id


def _check_number(node: NodeId, loaded: Loaded) -> None:
    """Kafka's clients know nodes by numbers: two with the same one would be one node to them."""
    for key, item in loaded.items.items():
        other = NodeId(key.removeprefix(values.MEMBERS))
        if not key.startswith(values.MEMBERS) or other == node or node_number(other) != node_number(node):
            continue
        if not values.decode_member(item.value).is_retired:
            raise CannotJoin(
                f"Kafka's clients would know node {node} by the number {node_number(node)}, which is that of "
                f"node {other}; give it an id that ends with another number (GOQUEUE_BROKER_NODEID)"
            )


def _check_known(known: Identity, node_id: NodeId, cluster_id: str) -> None:
    if known.node_id != node_id:
        raise CannotJoin(
            f"the data folder is that of node {known.node_id}, not of {node_id} ({NODE_FILE}); start it with "
            "its own id (GOQUEUE_BROKER_NODEID), or give this node a folder of its own"
        )
    if not cluster_id:
        raise CannotJoin(
            f"the data folder is of cluster {known.cluster_id}, and this etcd knows of no cluster: either it "
            "is not the right one (GOQUEUE_CLUSTER_ETCD, GOQUEUE_CLUSTER_NAME), or it has lost its data: "
            "restore them from a snapshot of etcd"
        )
    if known.cluster_id != cluster_id:
        raise CannotJoin(
            f"the data folder is of cluster {known.cluster_id}, and this etcd is of {cluster_id}; point to "
            "the right one (GOQUEUE_CLUSTER_ETCD, GOQUEUE_CLUSTER_NAME), or give this node an empty folder"
        )


def _places_of(node: NodeId, loaded: Loaded) -> set[tuple[UUID, int]]:
    """Partitions of which a node is believed to hold everything."""
    return {
        values.parsed_part_key(key)
        for key, item in loaded.items.items()
        if key.startswith(values.PARTS) and _is_believed(node, values.decode_part(item.value))
    }


def _is_believed(node: NodeId, record: PartitionRecord) -> bool:
    return node in record.isr or node in record.elr
