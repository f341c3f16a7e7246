"""How the data folder of a node that was alone becomes that of a cluster's first node.

The folder is opened as ever, and its journals are told what a cluster finds in them and one node keeps beside
them. Then what was agreed on the one node goes to the store, and last the folder says which node it is. Until
then it is the lone node's still: whatever fails before, the same is done again from the beginning, and what
stands in the store by then is written over. A cluster that has nodes already is refused: its own groups,
transactions and schemas stand where the lone node's would.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from uuid import NAMESPACE_OID, UUID, uuid5

from goqueue.broker.broker import Broker
from goqueue.broker.cluster.identity import Identity, read_identity, write_identity
from goqueue.broker.delays.deliveries import DELAYED_TOPIC
from goqueue.broker.opening import close_broker
from goqueue.broker.queue.settle import settle
from goqueue.broker.shared_journals import Shared, all_shared
from goqueue.broker.sinks.spreading import spread_sinks
from goqueue.broker.storage.data_folder import LOGS_FOLDER, is_used
from goqueue.broker.storage.journal import JOURNAL_SETTINGS
from goqueue.broker.transactions.writes import new_transaction_id
from goqueue.core.access.usage_hours import USAGE_HOURS
from goqueue.core.access.values import USAGE
from goqueue.core.cluster import values
from goqueue.core.cluster.values import Topic, encode, name_key, part_key, topic_key
from goqueue.log.snapshot import begin_at, load_snapshots, put_snapshot
from goqueue.model.cluster import ABSENT, Guard, Loaded, NodeId, PartitionRecord
from goqueue.model.delivery import Action, Settle
from goqueue.model.errors import CannotJoin, Outdated, Unknown
from goqueue.model.ids import TopicName
from goqueue.model.ports import Disk, Store, Threads
from goqueue.model.transactions import TransactionalPartition, TransactionState

log = logging.getLogger(__name__)
_PUTS_MAX = 50
"""So many keys are changed in one step of the store."""
_OF_ONE_NODE = (
    values.CLUSTER,
    values.STARTS,
    values.FOLDER,
    USAGE,
    USAGE_HOURS,
    values.MEMBERS,
    values.NODES,
    values.CONTROLLER,
    values.NAMES,
    values.TOPICS,
    values.PARTS,
)
"""Keys that mean nothing to a cluster, or stand there in another form."""


async def adopt(
    store: Store,
    disk: Disk,
    threads: Threads,
    node: NodeId,
    *,
    open_alone: Callable[[], Awaitable[Broker]],
    draw_id: Callable[[], str],
) -> bool:
    """Make a lone node's folder that of a cluster's first node; False: it is one already, or is empty.

    `open_alone` opens the folder as that of one node. Raises CannotJoin.
    """
    if await threads.run(read_identity, disk) is not None or not await threads.run(is_used, disk):
        return False
    before = await store.load("")
    _refuse_others(before, node)
    broker = await open_alone()
    try:
        cluster_id = _cluster_id(before) or broker.metadata.cluster_id
        internal = {
            shared.topic: uuid5(NAMESPACE_OID, f"{cluster_id}/{shared.topic}")
            for shared in all_shared(broker)
        }
        _refuse_damage(broker)
        await _write_down(broker, internal[DELAYED_TOPIC])
        agreed = (await broker.store.load("")).items
        topics = list(broker.metadata.topics.values())
        epochs = {
            (topic.topic_id, number): broker.metadata.epoch(topic, number)
            for topic in topics
            for number in range(topic.partitions)
        }
        shared = all_shared(broker)
        now_ms = broker.clock.wall_ms()
    finally:
        await close_broker(broker)
    for one in shared:
        epochs |= await threads.run(_unmark, disk, one, internal[one.topic])
        topics.append(Topic(one.topic, internal[one.topic], one.partitions, JOURNAL_SETTINGS, now_ms))
    puts = {values.CLUSTER: encode(values.Cluster(cluster_id))}
    puts |= {key: item.value for key, item in agreed.items() if not key.startswith(_OF_ONE_NODE)}
    await _put_all(store, before, {**_records(epochs, node), **puts, **_topics(topics)})
    identity = Identity(cluster_id=cluster_id, node_id=node, folder_id=draw_id())
    await threads.run(write_identity, disk, identity)
    log.info("folder_adopted cluster=%s topics=%d", cluster_id, len(topics))
    return True


def _refuse_others(loaded: Loaded, node: NodeId) -> None:
    """A cluster that has other nodes, or what another folder has brought, is none to begin with."""
    others = sorted(
        key.removeprefix(values.MEMBERS)
        for key in loaded.items
        if key.startswith(values.MEMBERS) and key != values.member_key(node)
    )
    if others:
        raise CannotJoin(
            f"the cluster has nodes already ({', '.join(others)}), and with them groups, transactions and "
            "schemas of its own: a folder is adopted by a cluster that begins with it. Name another cluster "
            "(GOQUEUE_CLUSTER_NAME), or copy its topics over with a client"
        )
    for key, item in loaded.items.items():
        if key.startswith(values.PARTS) and values.decode_part(item.value).replicas != (node,):
            raise CannotJoin(
                "the cluster has topics that are not this node's; name another (GOQUEUE_CLUSTER_NAME)"
            )


def _refuse_damage(broker: Broker) -> None:
    damaged = [str(one.source) for one in broker.all_partitions() if one.damage is not None or one.is_failed]
    if damaged:
        raise CannotJoin(
            f"the data folder is damaged ({', '.join(sorted(damaged)[:5])}): mend it or accept the loss "
            "first (docs/repair.md)"
        )


async def _write_down(broker: Broker, delays_id: UUID) -> None:
    """Have in the journals what one node keeps in memory, or beside them."""
    await spread_sinks(broker)
    await broker.delays.rest()
    delays = broker.delays.store
    place = TransactionalPartition(DELAYED_TOPIC, delays_id, 0)
    for known in tuple(broker.transactions.all()):
        if known.state.is_prepared:
            raise CannotJoin(
                f"transaction {known.transactional_id} is decided and cannot be finished; see the log"
            )
        if known.state is not TransactionState.ONGOING:
            continue
        if known.receipts:
            command = Settle(action=Action.EXTEND, receipts=known.receipts, is_pledge=True, is_own=True)
            await settle(broker, command)
        if delays.held.of_producer(known.producer_id):
            journal = await broker.transactions.ensure(known.transactional_id)
            added = journal.transactions.add(
                known.transactional_id,
                known.producer,
                partitions=[place],
                transaction_id=new_transaction_id(broker),
                now_ms=broker.clock.wall_ms(),
            )
            await journal.submit(added)
    noted = [delays.note(target) for target in delays.noted_targets()]
    await delays.journal.submit(*noted, *delays.noted_marks(), *delays.schedules.whole_state())


def _unmark(disk: Disk, shared: Shared, topic_id: UUID) -> dict[tuple[UUID, int], int]:
    """Have the folders of journals not say whose they are; the last epoch of each. Waits for the disk.

    One node's journals are of no topic, a cluster's are: what does not say it may be opened by either.
    """
    epochs: dict[tuple[UUID, int], int] = {}
    for number in range(shared.partitions):
        folder = f"{LOGS_FOLDER}/{shared.topic}/{number}"
        disk.make_folder(folder)
        snapshots = load_snapshots(disk, folder)
        for snapshot in snapshots:
            put_snapshot(disk, folder, replace(snapshot, topic_id=None))
        if not snapshots:
            begin_at(disk, folder, 0)
        known = [epoch for snapshot in snapshots for epoch, _ in snapshot.epochs]
        epochs[topic_id, number] = max(known, default=0)
    return epochs


def _records(epochs: Mapping[tuple[UUID, int], int], node: NodeId) -> dict[str, bytes]:
    """Nobody leads yet, and this node has everything: it is elected when it is ready."""
    return {
        part_key(*place): encode(PartitionRecord(leader=None, epoch=epoch + 1, replicas=(node,), isr=(node,)))
        for place, epoch in epochs.items()
    }


def _topics(topics: list[Topic]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for topic in topics:
        found[topic_key(topic.topic_id)] = encode(replace(topic, starts_before=0))
        found[name_key(TopicName(topic.name))] = encode(topic.topic_id)
    return found


async def _put_all(store: Store, before: Loaded, puts: Mapping[str, bytes]) -> None:
    """Write keys in this order, over what an earlier try has left."""
    for share in _shares(puts):
        guards = [Guard(key, before.items[key].revision if key in before.items else ABSENT) for key in share]
        try:
            await store.change(guards, share, ())
        except (Outdated, Unknown) as error:
            raise CannotJoin(
                f"the store changed while the folder was adopted ({error}); start the node again"
            ) from error


def _shares(puts: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    left = iter(puts.items())
    while share := dict(islice(left, _PUTS_MAX)):
        yield share


def _cluster_id(loaded: Loaded) -> str:
    item = loaded.items.get(values.CLUSTER)
    return "" if item is None else values.decode_cluster(item.value).cluster_id
