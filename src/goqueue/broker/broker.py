"""The broker: its topics, its journal, and the upkeep that runs beside the walk of the messages."""

import asyncio
import logging
import random
import re
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

import mmh3

from goqueue.broker.coordinator import Coordinator
from goqueue.broker.delay_keeper import DelayKeeper
from goqueue.broker.delay_store import DelayStore
from goqueue.broker.delivery_room import DeliveryRoom
from goqueue.broker.delivery_upkeep import keep_up_deliveries
from goqueue.broker.expire_offsets import expire_offsets
from goqueue.broker.flusher import Flusher
from goqueue.broker.group_journal import OFFSETS_TOPIC, GroupJournals
from goqueue.broker.journal import Journal
from goqueue.broker.journal_set import SharedJournal
from goqueue.broker.partition import Partition, ReadWaiter
from goqueue.broker.sinks_epochs import keep_up_sinks, recover_sinks
from goqueue.broker.stages import Stages
from goqueue.broker.stored_times import StoredTimes
from goqueue.broker.transaction_ends import keep_up_transactions, recover_transactions
from goqueue.broker.transaction_journal import SINKS_JOURNAL, TRANSACTIONS_TOPIC, TransactionJournals
from goqueue.core.cluster import metadata as metadata_events
from goqueue.core.cluster.metadata import ClusterFormed, Metadata, Topic, TopicRemoved
from goqueue.core.schemas import events as schema_events
from goqueue.core.schemas.registry import Registry
from goqueue.core.transactions.sinks import Sinks
from goqueue.log.recovery import Recovered
from goqueue.model.errors import (
    GoQueueError,
    InternalTopic,
    PartitionNotFound,
    ShuttingDown,
    StorageFailed,
    TopicNotFound,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.ports import Clock, Disk, Threads
from goqueue.model.settings import UNLIMITED, BrokerConfig, TopicSettings
from goqueue.model.topic_names import is_internal

log = logging.getLogger(__name__)
T = TypeVar("T")

LOGS_FOLDER = "logs"
METADATA_TOPIC = TopicName("__metadata")
SCHEMAS_TOPIC = TopicName("__schemas")
DELAYED_TOPIC = TopicName("__delayed")
_OPEN_AT_ONCE = 8
_CLUSTER_ID_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_JOURNAL_SETTINGS = TopicSettings(retention_ms=UNLIMITED)


@dataclass(slots=True)
class OpenTopic:
    """A topic's partitions at work."""

    partitions: list[Partition]
    _turn: int = 0

    def take_turn(self) -> int:
        """Where the next message without a key goes: every partition in its turn."""
        partition = self._turn % len(self.partitions)
        self._turn = partition + 1
        return partition


@dataclass(slots=True)
class Recovery:
    """What opening the data folder found, for the log and for people."""

    partition_count: int = 0
    checked_bytes: int = 0
    cut_bytes: int = 0
    rebuilt_indexes: int = 0

    def add(self, source: TopicPartition, recovered: Recovered) -> None:
        self.partition_count += 1
        self.checked_bytes += recovered.checked_bytes
        self.cut_bytes += recovered.cut_bytes
        self.rebuilt_indexes += recovered.rebuilt_indexes
        if recovered.cut_bytes:
            log.warning(
                "tail_cut partition=%s bytes=%d reason=%s",
                source,
                recovered.cut_bytes,
                recovered.cut_reason.replace(" ", "_"),
            )
        if recovered.rebuilt_indexes:
            log.warning("index_rebuilt partition=%s segments=%d", source, recovered.rebuilt_indexes)


@dataclass(slots=True)
class Broker:
    """Everything a verb needs. Made by `open_broker`."""

    config: BrokerConfig
    disk: Disk
    clock: Clock
    threads: Threads
    chance: random.Random
    metadata: Metadata
    flusher: Flusher
    journal: Journal[metadata_events.Event]
    sinks: Sinks
    stages: Stages
    transactions: TransactionJournals = field(init=False)
    """Transactional ids, and in one of the journals the sinks."""
    coordinator: Coordinator = field(init=False)
    registry: Registry
    registry_journal: SharedJournal[schema_events.Event]
    delays: DelayKeeper = field(init=False)
    started_ms: int
    recovery: Recovery = field(default_factory=Recovery)
    topics: dict[TopicName, OpenTopic] = field(default_factory=dict)
    topic_counts: Mapping[TopicName, int] = field(default_factory=dict)
    """How many partitions each topic of clients has. Another object whenever that has changed."""
    waiting_reads: dict[ReadWaiter, None] = field(default_factory=dict)
    delivery_room: DeliveryRoom = field(default_factory=DeliveryRoom)
    stored_times: StoredTimes = field(default_factory=StoredTimes)
    quarantines_opening: set[TopicName] = field(default_factory=set)
    """Topics for messages that do not fit which are being created or enlarged."""
    producer_ids: range = range(0)
    is_open: bool = False
    is_closed: bool = False
    tasks: dict["asyncio.Task[None]", None] = field(default_factory=dict)
    changes: dict["asyncio.Task[Any]", None] = field(default_factory=dict)
    change_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sink_locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    failure: "asyncio.Future[StorageFailed]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Set when a journal is lost: the broker takes no more work, and its process should start anew."""

    @property
    def cluster_id(self) -> str:
        return self.metadata.cluster_id

    @property
    def leader_epoch(self) -> int:
        return self.metadata.epoch

    @property
    def node_number(self) -> int:
        """Kafka knows nodes by number: the digits at the end of the id, or a hash of it."""
        digits = re.search(r"\d{1,9}$", self.config.node_id)
        return (
            int(digits.group()) if digits else mmh3.hash(self.config.node_id, 0, signed=False) & 0x7FFF_FFFF
        )

    def topic(self, name: str) -> OpenTopic:
        topic = self.topics.get(TopicName(name))
        if topic is None:
            raise TopicNotFound(name)
        return topic

    def partition(self, source: TopicPartition) -> Partition:
        partitions = self.topic(source.topic).partitions
        if not 0 <= source.partition < len(partitions):
            raise PartitionNotFound(*source)
        return partitions[source.partition]

    def all_partitions(self) -> list[Partition]:
        """Every partition, those of the journals last."""
        partitions = [p for topic in self.topics.values() for p in topic.partitions]
        partitions += [journal.partition for journal in self.coordinator.journals]
        partitions += [journal.partition for journal in self.transactions]
        partitions += [self.delays.store.partition, self.registry_journal.partition]
        return [*partitions, self.journal.partition]

    def count_topics(self) -> None:
        """Topics have come, gone or grown: groups follow."""
        self.topic_counts = {
            name: len(topic.partitions) for name, topic in self.topics.items() if not is_internal(name)
        }
        self.coordinator.follow(self.topic_counts)

    def admit(self, topic: str) -> None:
        """Refuse writes and changes that cannot be taken."""
        if not self.is_open:
            raise ShuttingDown
        if is_internal(topic):
            raise InternalTopic(topic)

    def new_id(self) -> UUID:
        return UUID(int=self.chance.getrandbits(128), version=4)

    async def carry_out(self, change: Coroutine[Any, Any, T], lock: asyncio.Lock | None = None) -> T:
        """Make a change to its end, also when whoever asked for it goes away.

        One at a time: of topics without a lock given, else of what that lock stands for.
        """

        async def in_turn() -> T:
            async with lock or self.change_lock:
                return await change

        task = asyncio.get_running_loop().create_task(in_turn())
        self.changes[task] = None
        task.add_done_callback(self.changes.pop)
        return await asyncio.shield(task)

    def sink_lock(self, name: str) -> asyncio.Lock:
        """Held while a sink changes."""
        lock = self.sink_locks.get(name)
        if lock is None:
            lock = self.sink_locks[name] = asyncio.Lock()
        return lock

    def keep(self, task: "asyncio.Task[None]") -> None:
        """Hold on to a background task until it is done."""
        self.tasks[task] = None
        task.add_done_callback(self.tasks.pop)

    def new_partition(self, source: TopicPartition, settings: TopicSettings) -> Partition:
        partition = Partition(
            source,
            f"{LOGS_FOLDER}/{source.topic}/{source.partition}",
            settings,
            disk=self.disk,
            clock=self.clock,
            leader_epoch=self.leader_epoch,
            on_failure=self._reopen_later,
        )
        partition.flusher = self.flusher
        return partition

    async def open_partitions(
        self, sources: Sequence[tuple[TopicPartition, TopicSettings]]
    ) -> list[Partition]:
        """Open partitions from the disk, a few at a time."""
        room = asyncio.Semaphore(_OPEN_AT_ONCE)

        async def open_one(source: TopicPartition, settings: TopicSettings) -> Partition:
            partition = self.new_partition(source, settings)
            async with room:
                await self.threads.run(self.disk.make_folder, partition.folder)
                self.recovery.add(source, await self.threads.run(partition.open))
            return partition

        return await asyncio.gather(*(open_one(source, settings) for source, settings in sources))

    async def open_journal(self, journal: Journal[Any]) -> None:
        """Open a journal's partition and read its machine's state back."""
        partition = journal.partition
        await self.threads.run(self.disk.make_folder, partition.folder)
        self.recovery.add(partition.source, await self.threads.run(partition.open))
        await self.threads.run(journal.replay)

    async def open_delays(self) -> None:
        """Read back what is pending. It is delivered once the keeper has started."""
        store = self.delays.store
        await self.threads.run(self.disk.make_folder, store.partition.folder)
        self.recovery.add(store.partition.source, await self.threads.run(store.partition.open))
        await self.threads.run(store.open)

    def stop_for(self, reason: str) -> None:
        """A journal is lost: what is in memory may differ from the disk, and only a new start tells."""
        self.is_open = False
        if not self.failure.done():
            self.failure.set_result(StorageFailed(f"a journal of the broker has failed: {reason}"))
        for reader in tuple(self.waiting_reads):
            reader.wake()

    def _reopen_later(self, partition: Partition) -> None:
        self.keep(asyncio.get_running_loop().create_task(self._reopen(partition)))

    async def _reopen(self, partition: Partition) -> None:
        """Open a stopped partition anew, as often as it takes."""
        while self.is_open and partition.is_failed:
            try:
                recovered = await self.threads.run(partition.reopen)
                await self.journal.commit(self.metadata.raise_epoch())
            except Exception as error:
                # Whatever it is, the partition cannot stay closed for ever: tell, and try again.
                log.error(
                    "partition_reopen_failed partition=%s reason=%s",
                    partition.source,
                    error,
                    exc_info=not isinstance(error, (OSError, GoQueueError)),
                )
                await asyncio.sleep(self.config.upkeep_interval_ms / 1000)
                continue
            if partition.is_failed:
                partition.resume(leader_epoch=self.leader_epoch)
                log.warning(
                    "partition_reopened partition=%s end_offset=%d cut_bytes=%d",
                    partition.source,
                    partition.log.end_offset,
                    recovered.cut_bytes,
                )


async def open_broker(
    *,
    config: BrokerConfig,
    disk: Disk,
    clock: Clock,
    threads: Threads,
    chance: random.Random | None = None,
) -> Broker:
    """Open a data folder: the journal first, then every partition it speaks of."""
    metadata = Metadata()
    flusher = Flusher(threads, interval_ms=config.flush_interval_ms)
    sinks = Sinks()
    registry = Registry()

    def journal_partition(topic: TopicName, number: int = 0) -> Partition:
        partition = Partition(
            TopicPartition(topic, number),
            f"{LOGS_FOLDER}/{topic}/{number}",
            _JOURNAL_SETTINGS,
            disk=disk,
            clock=clock,
            leader_epoch=0,
            on_failure=lambda _: broker.stop_for(f"see partition_stopped of {topic}"),
        )
        partition.flusher = flusher
        return partition

    broker = Broker(
        config=config,
        disk=disk,
        clock=clock,
        threads=threads,
        chance=chance or random.SystemRandom(),
        metadata=metadata,
        flusher=flusher,
        journal=Journal(journal_partition(METADATA_TOPIC), metadata, metadata_events.EVENT_TYPES),
        sinks=sinks,
        stages=Stages(disk),
        registry=registry,
        registry_journal=SharedJournal(journal_partition(SCHEMAS_TOPIC), registry, schema_events.EVENT_TYPES),
        started_ms=clock.wall_ms(),
    )
    group_journals = GroupJournals(
        config.groups, clock=clock, new_partition=journal_partition, open_journal=broker.open_journal
    )
    broker.coordinator = Coordinator(group_journals, clock)
    broker.coordinator.on_change = broker.delivery_room.wake
    broker.transactions = TransactionJournals(
        sinks, new_partition=journal_partition, open_journal=broker.open_journal
    )
    delayed = DelayStore(
        journal_partition(DELAYED_TOPIC), config.delays, disk=disk, clock=clock, threads=threads
    )
    broker.delays = DelayKeeper(broker, delayed)
    journal = broker.journal
    await broker.open_journal(journal)
    await broker.open_journal(broker.registry_journal)
    await broker.transactions.open({SINKS_JOURNAL, *await _numbers(broker, TRANSACTIONS_TOPIC)})
    if not metadata.cluster_id:
        cluster_id = "".join(broker.chance.choices(_CLUSTER_ID_LETTERS, k=22))
        await journal.commit(ClusterFormed(cluster_id))
    await journal.commit(metadata.raise_epoch())
    for name in sorted(metadata.deleted):
        await remove_folder(broker, name)
    await journal.shorten()
    topics = list(metadata.topics.values())
    partitions = await broker.open_partitions([pair for topic in topics for pair in _sources(topic)])
    for topic in topics:
        broker.topics[topic.name] = OpenTopic(partitions[: topic.partitions])
        del partitions[: topic.partitions]
    broker.count_topics()
    await recover_sinks(broker)
    await broker.coordinator.start(await _numbers(broker, OFFSETS_TOPIC))
    await broker.open_delays()
    await recover_transactions(broker)
    for transaction_journal in broker.transactions:
        await transaction_journal.shorten()
    await broker.delays.start()
    broker.is_open = True
    keep_up_deliveries(broker)
    broker.keep(asyncio.get_running_loop().create_task(_keep_up(broker)))
    return broker


async def close_broker(broker: Broker) -> None:
    """Take no more work, flush everything, note where recovery can begin, let the files go."""
    if broker.is_closed:
        return
    broker.is_open, broker.is_closed = False, True
    for reader in tuple(broker.waiting_reads):
        reader.wake()
    await asyncio.gather(*broker.changes, return_exceptions=True)
    await broker.coordinator.close()
    for task in tuple(broker.tasks):
        task.cancel()
    await asyncio.gather(*broker.tasks, return_exceptions=True)
    # What the tasks had under way themselves.
    await asyncio.gather(*broker.changes, return_exceptions=True)
    await broker.transactions.settle()
    await broker.delays.close()
    partitions = broker.all_partitions()
    for partition in partitions:
        if not partition.is_failed and partition.log.wants_snapshot:
            broker.flusher.request_snapshot(partition)
    await broker.flusher.drain()
    for partition in partitions:
        partition.close(ShuttingDown())


async def remove_folder(broker: Broker, name: TopicName) -> None:
    """Remove what a deleted topic left on the disk, and free its name."""
    await broker.threads.run(_remove_topic_folder, broker.disk, name)
    await broker.journal.commit(TopicRemoved(name))


def _remove_topic_folder(disk: Disk, name: TopicName) -> None:
    if name in disk.list(LOGS_FOLDER):
        disk.remove_tree(f"{LOGS_FOLDER}/{name}")
        disk.sync_folder(LOGS_FOLDER)


async def _numbers(broker: Broker, topic: TopicName) -> list[int]:
    """The partitions of an internal topic that earlier lives of the broker have left."""
    folders = await broker.threads.run(broker.disk.list, f"{LOGS_FOLDER}/{topic}")
    return [int(name) for name in folders if name.isdigit()]


def _sources(topic: Topic) -> list[tuple[TopicPartition, TopicSettings]]:
    return [(TopicPartition(topic.name, n), topic.settings) for n in range(topic.partitions)]


async def _keep_up(broker: Broker) -> None:
    """Every few seconds: apply retention, forget silent producers, note recovery points."""
    while broker.is_open:
        await asyncio.sleep(broker.config.upkeep_interval_ms / 1000)
        for partition in broker.all_partitions():
            try:
                await keep_up_partition(broker, partition)
            except StorageFailed:
                continue  # the partition has said so, and is being opened anew
            except (OSError, GoQueueError) as error:
                log.warning("upkeep_skipped partition=%s reason=%s", partition.source, error)
        await expire_offsets(broker)
        keep_up_deliveries(broker)
        await broker.coordinator.keep_up()
        try:
            await broker.registry_journal.shorten()
            await keep_up_sinks(broker)
            await keep_up_transactions(broker)
        except (OSError, GoQueueError) as error:
            log.warning("upkeep_skipped transactions reason=%s", error)


async def keep_up_partition(broker: Broker, partition: Partition) -> None:
    """Apply retention to one partition and note a recovery point if something has changed."""
    now_ms = broker.clock.wall_ms()
    partition.producers.expire(before_ms=now_ms - broker.config.producer_expiry_ms)
    async with broker.delays.noted(partition.source):
        removed = partition.log.expire(now_ms=now_ms)
    if removed:
        log.info(
            "retention partition=%s segments=%d start_offset=%d",
            partition.source,
            removed,
            partition.log.start_offset,
        )
    if partition.log.wants_snapshot:
        await partition.save_recovery_point()
