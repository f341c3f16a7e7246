"""Opening and closing: a folder of data becomes a broker at work, and a broker lets its folder go."""

import asyncio
import random
from typing import Any

from goqueue.broker.access.audit import AuditLog
from goqueue.broker.access.warden import Warden
from goqueue.broker.audit_topic import AuditTopic
from goqueue.broker.backup.store import BackupStore
from goqueue.broker.backup.whole.catalogue import Catalogue
from goqueue.broker.backup.whole.disk_objects import WHOLE_FOLDER, DiskObjects
from goqueue.broker.backup.whole.state import WholeBackups
from goqueue.broker.broker import Broker, OpenTopic, remove_folder
from goqueue.broker.compaction.compacting import keep_compacting
from goqueue.broker.delays.deliveries import JOURNAL as DELAY_JOURNAL
from goqueue.broker.delays.keeper import DelayKeeper
from goqueue.broker.groups.coordinator import Coordinator
from goqueue.broker.groups.journal import OFFSETS_TOPIC, GroupJournals
from goqueue.broker.health.condition import Health
from goqueue.broker.health.floors import compare_floors
from goqueue.broker.health.reserve import Reserve
from goqueue.broker.metadata_state import Agreement
from goqueue.broker.queue.upkeep import keep_up_deliveries
from goqueue.broker.schemas.state import JOURNAL as SCHEMA_JOURNAL
from goqueue.broker.schemas.state import SchemaState
from goqueue.broker.sinks.epochs import recover_sinks
from goqueue.broker.sinks.state import SinkState
from goqueue.broker.storage.data_folder import LOGS_FOLDER
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.journal import JOURNAL_SETTINGS
from goqueue.broker.storage.journal_set import JOURNAL_COUNT
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.state_journal import StateJournal
from goqueue.broker.storage.store_journal import METADATA_TOPIC, StoreJournal
from goqueue.broker.tenants.verbs import note_usage
from goqueue.broker.transactions.ends import recover_transactions, watch_transactions
from goqueue.broker.transactions.journal import SINKS_JOURNAL, TRANSACTIONS_TOPIC, TransactionJournals
from goqueue.broker.upkeep import keep_up
from goqueue.core.access.client_quotas import ClientQuotas
from goqueue.core.access.identities import Identities
from goqueue.core.access.rule_values import RuleImage
from goqueue.core.access.rules import RuleBook
from goqueue.core.access.tenants import Tenants
from goqueue.core.access.usage_hours import UsageHours
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.groups.settings import GroupSettingsImage
from goqueue.core.telemetry.counters import Counters
from goqueue.core.telemetry.telemetry import Telemetry
from goqueue.log.commit_log import COMMIT_FOLDER, CommitLog
from goqueue.log.file_shelf import FileShelf
from goqueue.model.errors import CommitLogDamaged, ShuttingDown
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.ports import Clock, Disk, Sealer, Store, Threads, Workshop
from goqueue.model.running_time import RunningTime
from goqueue.model.settings import BrokerConfig

_CLUSTER_ID_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


async def open_broker(
    *,
    config: BrokerConfig,
    disk: Disk,
    clock: Clock,
    threads: Threads,
    workshop: Workshop,
    chance: random.Random | None = None,
    reserve: Reserve | None = None,
    shared: Store | None = None,
    sealer: Sealer | None = None,
    backup_disk: Disk | None = None,
) -> Broker:
    """Open a data folder: the journal first, then every partition it speaks of.

    `shared`: what is agreed is kept there, since this node is one of several. `sealer`: for backups.
    `backup_disk`: where whole ones go, if not to the broker's own.
    """
    broker = _put_together(
        config,
        disk,
        clock,
        threads,
        workshop,
        chance or random.SystemRandom(),
        reserve or Reserve(disk, threads, size_bytes=0),
        shared,
        sealer,
        backup_disk,
    )
    await threads.run(broker.commit_log.open)
    if broker.journal is not None:
        await broker.open_journal(broker.journal)
    await broker.agreement.load()
    if COMMIT_FOLDER in broker.metadata.journals and broker.commit_log.is_new:
        raise CommitLogDamaged(COMMIT_FOLDER, "the folder was removed: all is missing")
    await threads.run(broker.commit_log.make_folder)
    broker.agreement.begin_following(broker.stop_for)
    try:
        await _open_all(broker)
    except BaseException:
        broker.agreement.stop(ShuttingDown())
        raise
    return broker


async def _open_all(broker: Broker) -> None:
    """Open all that the metadata speak of, and begin to work."""
    config, metadata = broker.config, broker.metadata
    agreement = broker.agreement
    if not metadata.cluster_id:
        cluster_id = "".join(broker.chance.choices(_CLUSTER_ID_LETTERS, k=22))
        await agreement.make(lambda: metadata.form_cluster(cluster_id))
    if COMMIT_FOLDER not in metadata.journals:
        await agreement.make(lambda: metadata.begin_journal(COMMIT_FOLDER))
    await agreement.make(metadata.note_start)
    if broker.journal is not None:
        broker.journal.partition.leader_epoch = broker.coordinator_epoch
    if not broker.is_one_of_several:
        await broker.schemas.journals.open([SCHEMA_JOURNAL])
        await broker.transactions.open({SINKS_JOURNAL, *await _numbers(broker, TRANSACTIONS_TOPIC)})
    broker.telemetry = Telemetry(
        broker.counters, config.tracing, metadata.cluster_id, began_us=broker.clock.wall_us()
    )
    if broker.journal is not None:
        await _open_topics(broker, broker.journal)
    agreement.on_topics_gone = broker.let_topics_go
    agreement.on_tenants_changed = broker.follow_tenants
    if not broker.is_one_of_several:
        await broker.coordinator.start(await _numbers(broker, OFFSETS_TOPIC))
    await compare_floors(broker)
    await recover_sinks(broker)
    if not broker.is_one_of_several:
        await broker.delays.journals.open([DELAY_JOURNAL])
        await recover_transactions(broker)
    for transaction_journal in broker.transactions:
        await transaction_journal.shorten()
    if not broker.is_one_of_several:
        await broker.delays.start()
        end_start(broker)
    broker.is_open = True
    watch_transactions(broker)
    await keep_up_deliveries(broker)
    broker.keep(asyncio.get_running_loop().create_task(keep_up(broker)))
    broker.keep(asyncio.get_running_loop().create_task(keep_compacting(broker)))
    if broker.audit.is_on:
        await broker.audit.open()
        broker.keep(asyncio.get_running_loop().create_task(broker.audit.write_on()))
        if config.access.audit.has_topic:
            topic = AuditTopic(broker)
            await topic.open()
            broker.audit.on_written, broker.audit.topic = topic.offer, topic
            broker.keep(asyncio.get_running_loop().create_task(topic.publish_on()))


def end_start(broker: Broker) -> None:
    """All partitions are open, and have what the commit log held for them: it may let go of that.

    A node of several opens its partitions behind its broker, and says so itself.
    """
    broker.flusher.end_start([partition for partition in broker.all_partitions() if partition.damage])


async def _open_topics(broker: Broker, journal: StateJournal[Any]) -> None:
    """Open all partitions there are: the one node has them all."""
    metadata = broker.metadata
    for _, topic in sorted(metadata.deleted.items()):
        await remove_folder(broker, topic)
    await journal.shorten()
    topics = list(metadata.topics.values())
    numbers = [(topic, number) for topic in topics for number in range(topic.partitions)]
    partitions = await broker.open_partitions(numbers, must_exist=True)
    await broker.raise_low_epochs(partitions)
    for topic in topics:
        broker.topics[topic.name] = OpenTopic(partitions[: topic.partitions])
        del partitions[: topic.partitions]
    broker.count_topics()


async def close_broker(broker: Broker) -> None:
    """Take no more work, flush everything, note where recovery can begin, let the files go."""
    if broker.is_closed:
        return
    broker.is_open, broker.is_closed = False, True
    for reader in tuple(broker.waiting_reads):
        reader.wake()
    await asyncio.gather(*broker.changes, return_exceptions=True)
    await broker.coordinator.close()
    broker.transactions.watch.close()
    for task in tuple(broker.tasks):
        task.cancel()
    await asyncio.gather(*broker.tasks, return_exceptions=True)
    # What the tasks had under way themselves.
    await asyncio.gather(*broker.changes, return_exceptions=True)
    await broker.audit.close()
    await broker.transactions.drain()
    await broker.delays.close()
    await note_usage(broker)
    broker.agreement.stop(ShuttingDown())
    partitions = broker.all_partitions()
    for partition in partitions:
        if not partition.is_failed and partition.log.wants_snapshot:
            broker.flusher.request_snapshot(partition)
    await broker.flusher.drain()
    for partition in partitions:
        partition.close(ShuttingDown())
    await broker.flusher.close()
    broker.commit_log.close()


def _put_together(
    config: BrokerConfig,
    disk: Disk,
    clock: Clock,
    threads: Threads,
    workshop: Workshop,
    chance: random.Random,
    reserve: Reserve,
    shared: Store | None,
    sealer: Sealer | None,
    backup_disk: Disk | None,
) -> Broker:
    """A broker with all its rooms, which has read nothing yet."""
    metadata = Metadata(config.node_id)
    tenants = Tenants()
    identities, client_quotas, group_settings = Identities(tenants), ClientQuotas(), GroupSettingsImage()
    usage_hours = UsageHours(days=config.usage_days)
    audit = AuditLog(config.access.audit, config.node_id, disk=disk, clock=clock, threads=threads)
    warden = Warden(
        RuleBook(config.access.super_users, is_on=config.access.is_on),
        audit,
        data_sampling=config.access.audit.data_sampling if config.access.audit.is_on else 0,
        chance=chance.random,
    )
    running = RunningTime(clock)
    counters = Counters(config.metrics)
    commit_log = CommitLog(
        disk,
        draw_salt=lambda: chance.getrandbits(64),
        file_bytes=config.commit_log.file_bytes,
        files_max=config.commit_log.files_max,
    )
    flusher = Flusher(threads, clock, commit_log, interval_ms=config.flush_interval_ms)
    shelf = FileShelf()

    def journal_partition(topic: TopicName, number: int = 0) -> Partition:
        partition = Partition(
            TopicPartition(topic, number),
            f"{LOGS_FOLDER}/{topic}/{number}",
            JOURNAL_SETTINGS,
            disk=disk,
            clock=clock,
            leader_epoch=0,
            on_failure=lambda _: broker.stop_for(f"see partition_stopped of {topic}"),
            commit_log=commit_log,
            shelf=shelf,
        )
        partition.flusher = flusher
        partition.counters = counters.topic(topic)
        return partition

    objects = DiskObjects(disk, WHOLE_FOLDER) if backup_disk is None else DiskObjects(backup_disk)
    own = StoreJournal(journal_partition(METADATA_TOPIC)) if shared is None else None
    store = shared or own
    assert store is not None
    broker = Broker(
        config=config,
        disk=disk,
        clock=clock,
        running=running,
        threads=threads,
        workshop=workshop,
        chance=chance,
        metadata=metadata,
        commit_log=commit_log,
        flusher=flusher,
        shelf=shelf,
        health=Health(clock, reserve),
        store=store,
        agreement=Agreement(
            store,
            metadata,
            tenants,
            [RuleImage(warden.book), identities, client_quotas, usage_hours, group_settings],
        ),
        journal=None if own is None else own.journal,
        tenants=tenants,
        warden=warden,
        identities=identities,
        client_quotas=client_quotas,
        usage_hours=usage_hours,
        group_settings=group_settings,
        audit=audit,
        sinks=SinkState(disk),
        schemas=SchemaState(
            config.schemas,
            new_partition=journal_partition,
            open_journal=lambda journal: broker.open_journal(journal),
        ),
        counters=counters,
        backups=BackupStore(disk, sealer),
        whole_backups=WholeBackups(Catalogue(objects, sealer)),
        started_ms=clock.wall_ms(),
    )
    group_journals = GroupJournals(
        config.groups,
        clock=clock,
        running=running,
        new_partition=journal_partition,
        open_journal=broker.open_journal,
    )
    broker.coordinator = Coordinator(group_journals, clock, counters)
    broker.coordinator.on_change = broker.queue.wake
    broker.transactions = TransactionJournals(
        running, new_partition=journal_partition, open_journal=broker.open_journal
    )
    broker.delays = DelayKeeper(broker, new_partition=journal_partition, open_journal=broker.open_journal)
    for journals in (
        group_journals,
        broker.transactions,
        broker.schemas.journals,
        broker.delays.journals,
    ):
        journals.is_shared = broker.is_one_of_several
    return broker


async def _numbers(broker: Broker, topic: TopicName) -> list[int]:
    """The partitions of an internal topic that earlier lives of the broker have left, or should have."""
    folders = await broker.threads.run(broker.disk.list, f"{LOGS_FOLDER}/{topic}")
    known = {str(number) for number in range(JOURNAL_COUNT)}
    begun = {name.rpartition("/")[2] for name in broker.metadata.journals if name.startswith(f"{topic}/")}
    return sorted(int(name) for name in known.intersection(folders) | begun)
