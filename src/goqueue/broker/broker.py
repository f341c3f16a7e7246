"""The broker at work: its topics, its journals, and what every verb needs of it."""

import asyncio
import itertools
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from uuid import UUID

from goqueue.broker.access.audit import AuditLog
from goqueue.broker.access.warden import Warden
from goqueue.broker.backup.store import BackupStore
from goqueue.broker.backup.whole.state import WholeBackups
from goqueue.broker.compaction.state import Compaction
from goqueue.broker.delays.keeper import DelayKeeper
from goqueue.broker.groups.coordinator import Coordinator
from goqueue.broker.health.condition import Health
from goqueue.broker.metadata_state import Agreement
from goqueue.broker.queue.state import QueueState
from goqueue.broker.schemas.state import SchemaState
from goqueue.broker.sinks.state import SinkState
from goqueue.broker.storage.data_folder import LOGS_FOLDER, has_logs, left_beside_logs
from goqueue.broker.storage.elsewhere import PartitionElsewhere, Unled
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.journal import Journal
from goqueue.broker.storage.journal_set import JournalSet
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.readable import Readable
from goqueue.broker.storage.state_journal import StateJournal
from goqueue.broker.storage.waiters import ReadWaiter, tell_in_turn
from goqueue.broker.tenants.quotas import admit_topic_owner
from goqueue.broker.tenants.verbs import attach_tenants
from goqueue.broker.to_the_end import to_the_end
from goqueue.broker.transactions.journal import TransactionJournals
from goqueue.core.access.client_quotas import ClientQuotas
from goqueue.core.access.identities import Identities
from goqueue.core.access.tenants import Tenants
from goqueue.core.access.usage_hours import UsageHours
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.cluster.numbers import node_number
from goqueue.core.cluster.values import Topic
from goqueue.core.groups.settings import GroupSettingsImage
from goqueue.core.telemetry.counters import Counters
from goqueue.core.telemetry.telemetry import Telemetry
from goqueue.log.commit_log import CommitLog
from goqueue.log.file_shelf import FileShelf
from goqueue.log.recovery import Recovered
from goqueue.model.cluster import NodeId
from goqueue.model.errors import (
    GoQueueError,
    InternalTopic,
    JournalDamaged,
    NotSupported,
    PartitionNotFound,
    ShuttingDown,
    StorageFailed,
    TopicNotFound,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.names import is_internal
from goqueue.model.places import Command
from goqueue.model.ports import Clock, Disk, Store, Threads, Workshop
from goqueue.model.running_time import RunningTime
from goqueue.model.settings import BrokerConfig, TopicSettings

log = logging.getLogger(__name__)
C = TypeVar("C", bound=Command)
T = TypeVar("T")

_OPEN_AT_ONCE = 8


@dataclass(slots=True)
class OpenTopic:
    """A topic's partitions at work."""

    partitions: list[Partition]
    turns: Iterator[int] = field(default_factory=itertools.count)
    """A number for each message without a key, one behind the other."""
    is_growing: bool = False
    """It is getting more partitions."""
    settings: TopicSettings | None = None
    """In a cluster: those that its partitions were told last."""
    readables: Sequence[Readable] = field(init=False)
    """Its partitions for whoever only reads them: in a cluster some of them stand for what others hold."""

    def __post_init__(self) -> None:
        self.readables = self.partitions

    def take_turn(self) -> int:
        """Where the next message without a key goes: each partition in its turn, if it takes any."""
        return next(self.turns_past_those_out())

    def turns_past_those_out(self) -> Iterator[int]:
        """Where messages without a key go; when no partition takes any, as if all did: they tell why not."""
        well = [at for at, partition in enumerate(self.partitions) if partition.takes_messages]
        well = well or list(range(len(self.partitions)))
        return (well[turn % len(well)] for turn in self.turns)


Placed = Sequence[Sequence[NodeId]]
"""The nodes that each of several partitions is to be on."""


class SharedTopics(Protocol):
    """How topics are made and changed where several nodes agree on them."""

    def copies(self, asked: int) -> int:
        """How many copies a new topic gets; -1: as the settings say. Raises InvalidReplication."""

    def check_placement(self, replicas: Placed, *, partitions: int, copies: int) -> None:
        """Refuse what new partitions cannot be placed on. Raises InvalidAssignment."""

    async def create(self, topic: Topic, replicas: Placed = ()) -> None:
        """Make a topic, on these nodes if somebody has chosen."""

    async def grow(self, topic: Topic, total: int, replicas: Placed = ()) -> None: ...

    async def delete(self, topic: Topic) -> None:
        """What is left to do for a topic that everybody has been told is gone."""

    async def catch_up(self) -> None:
        """Return when the topics here are what the image says."""


class Forwarding(Protocol):
    """How commands are run that may be at home at another node."""

    async def run(self, verb: "Callable[[Broker, Any], Awaitable[T]]", command: Any) -> T:
        """What the verb gives there, or here."""

    async def run_at(self, node: NodeId, command: Any) -> object:
        """What a command gives at one node, which may be this one."""


class Remotes(Protocol):
    """How partitions are read that other nodes hold."""

    def follow_topics(self) -> None:
        """Topics have come or grown."""


class Rounds(Protocol):
    """How one of several nodes makes sure that it still leads."""

    async def confirm(self, partition: Partition) -> None:
        """Return when it has led the partition until now. Raises NotCoordinator, CoordinatorLoading."""


@dataclass(slots=True)
class Broker:
    """Everything a verb needs. Made by `open_broker`."""

    config: BrokerConfig
    disk: Disk
    clock: Clock
    running: RunningTime
    threads: Threads
    workshop: Workshop
    chance: random.Random
    metadata: Metadata
    commit_log: CommitLog
    flusher: Flusher
    shelf: FileShelf
    health: Health
    store: Store
    """What all nodes agree on."""
    agreement: Agreement
    """The way to change that. `metadata`, `tenants`, `identities` and the rules of `warden` are its image."""
    journal: StateJournal[Any] | None
    """Where one node keeps the store; None: it is one of several, which have it elsewhere."""
    tenants: Tenants
    warden: Warden
    """Who may do what."""
    identities: Identities
    usage_hours: UsageHours
    """What tenants have used by hour, as this node has noted it."""
    group_settings: GroupSettingsImage
    """What was set for groups, by Kafka's names."""
    client_quotas: ClientQuotas
    """What users and client ids of Kafka's clients are held to, at this node."""
    """Users and keys."""
    audit: AuditLog
    """Who did what."""
    sinks: SinkState
    transactions: TransactionJournals = field(init=False)
    """Transactional ids, and in one of the journals the sinks."""
    coordinator: Coordinator = field(init=False)
    schemas: SchemaState
    counters: Counters
    telemetry: Telemetry = field(init=False)
    """Listens to the walk: what it hears goes to the counters and to the traces."""
    backups: BackupStore
    whole_backups: WholeBackups
    delays: DelayKeeper = field(init=False)
    started_ms: int
    topics: dict[TopicName, OpenTopic] = field(default_factory=dict)
    leaving: dict[TopicName, OpenTopic] = field(default_factory=dict)
    """Topics that are gone for everybody, whose partitions are still to be closed."""
    topic_counts: Mapping[TopicName, int] = field(default_factory=dict)
    """How many partitions each topic of clients has. Another object whenever that has changed."""
    waiting_reads: dict[ReadWaiter, None] = field(default_factory=dict)
    queue: QueueState = field(default_factory=QueueState)
    compaction: Compaction = field(default_factory=Compaction)
    producer_ids: range = range(0)
    spare_producer_ids: range = range(0)
    """With several nodes: the block for when those are used up."""
    is_open: bool = False
    is_closed: bool = False
    tasks: dict["asyncio.Task[None]", None] = field(default_factory=dict)
    changes: dict["asyncio.Task[Any]", None] = field(default_factory=dict)
    change_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    failure: "asyncio.Future[GoQueueError]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Set when it cannot go on: the broker takes no more work, and its process should start anew."""

    shared_topics: SharedTopics | None = None
    """In a cluster, once it is entered; None: this node has all topics to itself."""
    forwarding: Forwarding | None = None
    """In a cluster: how commands are run that are at home elsewhere; None: every place is here."""
    remotes: Remotes | None = None
    """In a cluster: what stands for partitions that are elsewhere; None: there are none."""
    rounds: Rounds | None = None
    """In a cluster: who is asked before an answer from state alone; None: nobody else could lead."""
    on_partition_failed: Callable[[Partition], None] | None = None
    """In a cluster: who sees to a partition that the disk has failed."""

    @property
    def cluster_id(self) -> str:
        return self.metadata.cluster_id

    @property
    def coordinator_epoch(self) -> int:
        """The epoch of the journals, which coordinators work from: they all begin anew with the broker."""
        return self.metadata.starts

    @property
    def node_number(self) -> int:
        """By which Kafka's clients know this node."""
        return node_number(NodeId(self.config.node_id))

    @property
    def is_one_of_several(self) -> bool:
        """Whether there are other nodes, who leads which partition being agreed by all of them."""
        return self.journal is None

    def topic(self, name: str) -> OpenTopic:
        topic = self.topics.get(TopicName(name))
        if topic is None:
            raise TopicNotFound(name)
        return topic

    def partition_count(self, name: str) -> int:
        """How many partitions a topic has, by the image of topics that every node has."""
        count = self.topic_counts.get(TopicName(name))
        if count is None:
            raise TopicNotFound(name)
        return count

    def partition(self, source: TopicPartition) -> Partition:
        partitions = self.topic(source.topic).partitions
        if not 0 <= source.partition < len(partitions):
            raise PartitionNotFound(*source)
        return partitions[source.partition]

    def readable(self, source: TopicPartition) -> Readable:
        """A partition for whoever only reads it."""
        partitions = self.topic(source.topic).readables
        if not 0 <= source.partition < len(partitions):
            raise PartitionNotFound(*source)
        return partitions[source.partition]

    def all_partitions(self) -> list[Partition]:
        """Every partition, those of the journals last."""
        partitions = [p for topic in self.topics.values() for p in topic.partitions if p.is_here]
        return partitions + self.journal_partitions()

    def journal_partitions(self) -> list[Partition]:
        """What the broker keeps its own state in. Without any one of them it must start anew."""
        sets: tuple[JournalSet[Any], ...] = (
            self.coordinator.journals,
            self.transactions,
            self.schemas.journals,
            self.delays.journals,
        )
        # Those that several nodes share are partitions of a topic like any other.
        partitions = [journal.partition for one in sets if not one.is_shared for journal in one]
        return partitions if self.journal is None else [*partitions, self.journal.partition]

    def count_topics(self) -> None:
        """Topics have come, gone or grown: tenants and groups follow."""
        if self.tenants.accounts:
            attach_tenants(self)
        self.topic_counts = {
            name: len(topic.partitions) for name, topic in self.topics.items() if not is_internal(name)
        }
        if self.remotes is not None:
            self.remotes.follow_topics()
        self.counters.forget_topics(self.topics)
        self.coordinator.follow(self.topic_counts)

    def admit(self, topic: str, *, is_own: bool = False) -> None:
        """Refuse writes and changes that cannot be taken. What the broker needs itself is no tenant's."""
        if not self.is_open:
            raise ShuttingDown
        if is_internal(topic) and not is_own:
            raise InternalTopic(topic)
        if self.tenants.accounts and not is_own:
            admit_topic_owner(self, topic)

    def at_home(self, verb: "Callable[[Broker, C], Awaitable[T]]", command: C) -> Awaitable[T]:
        """What a verb gives, here or from the node that answers for the command's place."""
        return verb(self, command) if self.forwarding is None else self.forwarding.run(verb, command)

    def admit_alone(self, what: str) -> None:
        """Refuse what one of several nodes would keep to itself, and lose. Raises NotSupported."""
        if self.is_one_of_several:
            raise NotSupported(f"{what} are not served by a cluster yet, only by a node that is alone")

    def new_id(self) -> UUID:
        return UUID(int=self.chance.getrandbits(128), version=4)

    async def carry_out(self, change: Coroutine[Any, Any, T], lock: asyncio.Lock | None = None) -> T:
        """Make a change to its end, also when whoever asked for it goes away."""
        return await to_the_end(self.begin(change, lock))

    def begin(self, change: Coroutine[Any, Any, T], lock: asyncio.Lock | None = None) -> "asyncio.Task[T]":
        """Have a change made to its end, of which nobody need hear.

        One at a time: of topics without a lock given, else of what that lock stands for.
        """

        async def in_turn() -> T:
            try:
                async with lock or self.change_lock:
                    return await change
            finally:
                change.close()  # a process that ends while it waits for its turn never begins it

        task = asyncio.get_running_loop().create_task(in_turn())
        self.changes[task] = None
        task.add_done_callback(self.changes.pop)
        return task

    def keep(self, task: "asyncio.Task[None]") -> None:
        """Hold on to a background task until it is done."""
        self.tasks[task] = None
        task.add_done_callback(self.tasks.pop)

    def is_held(self, topic: Topic, number: int) -> bool:
        """Whether this node has a replica of a partition."""
        if not self.is_one_of_several:
            return True
        return self.config.node_id in self.metadata.record(topic, number).replicas

    def new_partition(self, topic: Topic, number: int) -> Partition:
        source = TopicPartition(topic.name, number)
        kind = Partition if self.is_held(topic, number) else PartitionElsewhere
        partition = kind(
            source,
            f"{LOGS_FOLDER}/{source.topic}/{source.partition}",
            topic.settings,
            disk=self.disk,
            clock=self.clock,
            leader_epoch=self.metadata.epoch(topic, number),
            on_failure=self._reopen_later,
            topic_id=topic.topic_id,
            commit_log=self.commit_log,
            shelf=self.shelf,
        )
        partition.flusher = self.flusher
        partition.counters = self.counters.topic(source.topic)
        partition.telemetry = self.telemetry.watch(source, topic.settings)
        if self.is_one_of_several:
            partition.copies = Unled(partition)
        return partition

    async def open_partitions(
        self, numbers: Sequence[tuple[Topic, int]], *, must_exist: bool = False
    ) -> list[Partition]:
        """Open partitions from the disk, a few at a time. Those that `must_exist` may turn out damaged."""
        opened: dict[int, Partition] = {}
        left = iter(enumerate(numbers))

        async def open_one_by_one() -> None:
            for at, (topic, number) in left:
                partition = opened[at] = self.new_partition(topic, number)
                if not partition.is_here:
                    continue
                # In one go: with very many partitions the way to a thread and back is half of the work.
                first_offset = topic.first_offsets[number] if number < len(topic.first_offsets) else 0
                recovered = await self.threads.run(
                    self._open_folder, partition, must_exist=must_exist, first_offset=first_offset
                )
                self.health.recovery.add(partition.source, recovered)

        await asyncio.gather(*(open_one_by_one() for _ in range(_OPEN_AT_ONCE)))
        return [opened[at] for at in range(len(numbers))]

    def _open_folder(self, partition: Partition, *, must_exist: bool, first_offset: int) -> Recovered:
        """Waits for the disk."""
        self.disk.make_folder(partition.folder)
        if self.is_one_of_several:
            partition.put_others_aside()
        return partition.open(must_exist=must_exist, first_offset=first_offset)

    async def raise_low_epochs(self, partitions: Iterable[Partition]) -> None:
        """A log that was written to in a higher epoch, as when the metadata were lost, goes on above it."""
        for partition in partitions:
            if partition.log.last_epoch >= partition.leader_epoch:
                partition.leader_epoch = await self._raise_epoch(partition.source, partition.log.last_epoch)

    async def _raise_epoch(self, source: TopicPartition, last_epoch: int) -> int:
        return await self.agreement.make(lambda: self.metadata.raise_epoch(source, above=last_epoch))

    def let_topics_go(self, names: Sequence[TopicName]) -> None:
        """Topics are gone from what is agreed: from now on nobody finds them here either."""
        for name in names:
            if (topic := self.topics.pop(name, None)) is not None:
                self.leaving[name] = topic
        self.count_topics()

    def follow_tenants(self) -> None:
        """Tenants have come, gone or changed."""
        attach_tenants(self)
        if self.is_one_of_several:  # who waits here may be one whose tenant was suspended at another node
            tell_in_turn(self.waiting_reads, ReadWaiter.wake)

    async def open_journal(self, journal: Journal[Any]) -> None:
        """Open a journal's partition and read its machine's state back."""
        await self._open_journal_partition(journal.partition)
        await self.threads.run(journal.replay)
        await self._note_journal(journal.partition)

    def _is_store(self, partition: Partition) -> bool:
        return self.journal is not None and partition is self.journal.partition

    async def _open_journal_partition(self, partition: Partition) -> None:
        """Refuses a journal that is damaged: without what it held the broker would break its word."""
        left = ""
        if self._is_store(partition):
            must_exist = await self.threads.run(has_logs, self.disk)
            if not must_exist:
                left = await self.threads.run(left_beside_logs, self.disk)
                must_exist = bool(left)
        else:
            must_exist = str(partition.source) in self.metadata.journals
            partition.leader_epoch = self.coordinator_epoch
        await self.threads.run(self.disk.make_folder, partition.folder)
        recovered = await self.threads.run(partition.open, must_exist=must_exist)
        self.health.recovery.add(partition.source, recovered)
        if recovered.damage is not None:
            reason = str(recovered.damage)
            if left:
                reason = (
                    f"{LOGS_FOLDER}/ is gone, or holds nothing, and {left} shows that a broker has worked in "
                    f"this folder; put {LOGS_FOLDER}/ back, or begin anew in an empty folder"
                )
            raise JournalDamaged(*partition.source, reason)

    async def _note_journal(self, partition: Partition) -> None:
        """Remember that there is this journal, so that its absence is noticed."""
        name = str(partition.source)
        if not self._is_store(partition) and name not in self.metadata.journals:
            await self.agreement.make(lambda: self.metadata.begin_journal(name))

    def stop_for(self, reason: str) -> None:
        """A journal is lost: what is in memory may differ from the disk, and only a new start tells."""
        self.end(StorageFailed(f"a journal of the broker has failed: {reason}"))

    def end(self, error: GoQueueError) -> None:
        """Take no more work, for a reason that only a new start, or a person, can do something about."""
        self.is_open = False
        if not self.failure.done():
            self.failure.set_result(error)
        for reader in tuple(self.waiting_reads):
            reader.wake()

    def _reopen_later(self, partition: Partition) -> None:
        if self.on_partition_failed is not None:
            self.on_partition_failed(partition)
            return
        self.keep(asyncio.get_running_loop().create_task(self._reopen(partition)))

    async def _reopen(self, partition: Partition) -> None:
        """Open a stopped partition anew, as often as it takes."""
        while self.is_open and partition.is_failed:
            try:
                # A flush of it that is under way may yet succeed, and what it made safe is not cut.
                await self.flusher.wait_under_way()
                await self.flusher.seal()
                recovered = await self.threads.run(partition.reopen)
                if not partition.is_failed:
                    return  # its topic was deleted meanwhile
                leader_epoch = await self._raise_epoch(partition.source, partition.leader_epoch)
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
                partition.resume(leader_epoch=leader_epoch)
                log.warning(
                    "partition_reopened partition=%s end_offset=%d cut_bytes=%d",
                    partition.source,
                    partition.log.end_offset,
                    recovered.cut_bytes,
                )


async def remove_folder(broker: Broker, topic: Topic) -> None:
    """Remove what a deleted topic left on the disk, and free its name."""
    await broker.threads.run(_remove_topic_folder, broker.disk, topic.name)
    await broker.agreement.make(lambda: broker.metadata.remove_topic(topic))


def _remove_topic_folder(disk: Disk, name: TopicName) -> None:
    if name in disk.list(LOGS_FOLDER):
        disk.remove_tree(f"{LOGS_FOLDER}/{name}")
        disk.sync_folder(LOGS_FOLDER)
