"""The verbs on topics: create, delete, describe, add partitions, change settings, delete records."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from goqueue.broker.broker import Broker, OpenTopic, remove_folder
from goqueue.broker.groups.upkeep import forget_topic
from goqueue.broker.slices import Slices
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.storage.data_folder import LOGS_FOLDER
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.quotas import admit_partitions, within_retention
from goqueue.broker.topics.settings import MIN_INSYNC, change_settings, settings_from, view_settings
from goqueue.core.cluster.isr import min_isr_of
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.cluster.values import Topic
from goqueue.log.partition_log import storage_error
from goqueue.log.snapshot import begin_at
from goqueue.model.delivery import DEAD_LETTER_SUFFIX
from goqueue.model.errors import (
    GoQueueError,
    InvalidPartitionCount,
    InvalidReplication,
    InvalidSetting,
    OffsetOutOfRange,
    TooManyTopics,
    TopicExists,
    TopicNotFound,
)
from goqueue.model.ids import TopicName
from goqueue.model.names import checked_topic_name, is_internal
from goqueue.model.schemas import QUARANTINE_SUFFIX
from goqueue.model.settings import TopicSettings
from goqueue.model.topics import (
    AddPartitions,
    AlterSettings,
    CopyView,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    DescribeCopy,
    DescribeGrowth,
    DescribeSettings,
    DescribeTopic,
    EnsureTopic,
    FindTopic,
    ListTopics,
    PartitionView,
    SettingChange,
    SettingView,
    TopicView,
)

HIGH_WATERMARK = -1


async def create_topic(broker: Broker, command: CreateTopic) -> TopicView:
    """Create a topic. Its folders come first and mean nothing until the journal speaks of them."""
    name = checked_topic_name(command.name)
    broker.admit(name, is_own=command.is_own)
    _copies(broker, command)
    return await broker.carry_out(_create_topic(broker, name, command))


async def _create_topic(broker: Broker, name: TopicName, command: CreateTopic) -> TopicView:
    broker.admit(name, is_own=command.is_own)
    partitions = broker.config.default_partitions if command.partitions is None else command.partitions
    settings = settings_from(command.settings, defaults=broker.config.topic_defaults)
    _check_policy(name, settings)
    if not command.is_own:
        is_given = command.settings.get("retention.ms") is not None
        settings = within_retention(broker, name, settings, is_given=is_given)
    topic = broker.metadata.new_topic(
        name,
        topic_id=broker.new_id(),
        partitions=partitions,
        settings=settings,
        partitions_max=broker.config.limits.partitions_per_topic,
        now_ms=broker.clock.wall_ms() if command.created_ms is None else command.created_ms,
    )
    if not command.is_own:
        admit_partitions(broker, name, partitions)
        _check_space(broker, partitions)
        if len(broker.topic_counts) >= broker.config.limits.topics:
            raise TooManyTopics(f"there are {broker.config.limits.topics} topics, and may be no more")
    if command.settings.get(MIN_INSYNC) is not None:
        _check_min_insync(settings, _copies(broker, command))
    if command.replicas and broker.shared_topics is not None:
        copies = _copies(broker, command)
        broker.shared_topics.check_placement(command.replicas, partitions=partitions, copies=copies)
    if command.validate_only:
        return TopicView(
            name=name,
            topic_id=topic.topic_id,
            created_ms=topic.created_ms,
            settings=topic.settings,
            partitions=tuple(PartitionView(number, 0, 0, 0, 0) for number in range(partitions)),
        )
    if broker.shared_topics is not None:
        copies = _copies(broker, command)
        first_offsets = tuple(command.first_offsets[:partitions]) if any(command.first_offsets) else ()
        topic = replace(topic, replication=copies, first_offsets=first_offsets)
        await broker.shared_topics.create(topic, command.replicas)
        return await describe_topic(broker, DescribeTopic(name=name))
    if any(command.first_offsets):
        await _begin_partitions(broker, topic, command.first_offsets[:partitions])
    opened = await _open_partitions(broker, topic, range(partitions))
    await broker.agreement.make(lambda: broker.metadata.create_topic(topic))
    await broker.raise_low_epochs(opened)
    broker.topics[name] = OpenTopic(opened)
    broker.count_topics()
    return await describe_topic(broker, DescribeTopic(name=name))


def _copies(broker: Broker, command: CreateTopic) -> int:
    asked = len(command.replicas[0]) if command.replicas else command.replication
    if broker.shared_topics is not None:
        return asked if command.replicas else broker.shared_topics.copies(asked)
    if asked not in (-1, 1):
        raise InvalidReplication(f"1 node cannot hold {asked} copies; ask for 1")
    return 1


def _check_policy(name: str, settings: TopicSettings) -> None:
    """What is put aside may have no key, and is kept message by message."""
    if settings.is_compacted and name.endswith((DEAD_LETTER_SUFFIX, QUARANTINE_SUFFIX)):
        raise InvalidSetting(f"{name} takes messages without keys, so it cannot be compacted")


def _check_min_insync(settings: TopicSettings, copies: int) -> None:
    if settings.min_insync_replicas > copies:
        have = "there is 1 copy" if copies == 1 else f"there are {copies} copies"
        raise InvalidSetting(f"{have} of each partition: {MIN_INSYNC} can only be up to {copies} here")


async def ensure_topic(broker: Broker, command: EnsureTopic) -> TopicView:
    """The topic, created now if it is absent and the settings allow that."""
    if TopicName(command.name) not in broker.topics and broker.config.auto_create_topics:
        try:
            return await create_topic(broker, CreateTopic(name=command.name))
        except TopicExists:
            pass  # somebody else was quicker
    return await describe_topic(broker, DescribeTopic(name=command.name))


async def delete_topic(broker: Broker, command: DeleteTopic) -> None:
    """Delete a topic: gone for everybody once journalled, then off the disk."""
    broker.admit(command.name)
    broker.topic(command.name)
    async with broker.health.reserve.lent():
        await broker.carry_out(_delete_topic(broker, command.name))


async def _delete_topic(broker: Broker, name: str) -> None:
    broker.admit(name)
    deleted = await broker.agreement.make(lambda: broker.metadata.delete_topic(name))
    if broker.shared_topics is not None:
        await broker.shared_topics.delete(deleted)
        return
    topic = broker.leaving.pop(deleted.name)
    slices = Slices(broker.clock)
    for partition in topic.partitions:
        partition.close(TopicNotFound(name))
        broker.telemetry.forget(partition.source)
        await slices.pause()
    await forget_topic(broker, deleted.topic_id)
    await broker.flusher.wait_under_way()
    for partition in topic.partitions:
        broker.flusher.forget(partition)
        await slices.pause()
    await remove_folder(broker, deleted)
    while topic.partitions:
        # Thousands of them take tens of milliseconds to free.
        topic.partitions.pop()
        await slices.pause()


async def add_partitions(broker: Broker, command: AddPartitions) -> TopicView:
    """Give a topic more partitions; those it has stay as they are."""
    broker.admit(command.name, is_own=command.is_own)
    broker.topic(command.name)
    return await broker.carry_out(_add_partitions(broker, command))


async def _add_partitions(broker: Broker, command: AddPartitions) -> TopicView:
    name, total = command.name, command.total
    broker.admit(name, is_own=command.is_own)
    topic = broker.topic(name)
    partitions_max = broker.config.limits.partitions_per_topic
    broker.metadata.check_growth(name, total, partitions_max=partitions_max)
    if not command.is_own:
        admit_partitions(broker, name, total)
        _check_space(broker, total - len(topic.partitions))
    if command.replicas and broker.shared_topics is not None:
        known = broker.metadata.topic(name)
        fresh_count = total - known.partitions
        broker.shared_topics.check_placement(
            command.replicas, partitions=fresh_count, copies=known.replication
        )
    if not command.validate_only:
        fresh = range(len(topic.partitions), total)
        topic.is_growing = True
        try:
            if broker.shared_topics is not None:
                await broker.shared_topics.grow(broker.metadata.topic(name), total, command.replicas)
                return await describe_topic(broker, DescribeTopic(name=name))
            opened = await _open_partitions(broker, broker.metadata.topic(name), fresh)
            await broker.agreement.make(lambda: broker.metadata.add_partitions(name, total))
            await broker.raise_low_epochs(opened)
        finally:
            topic.is_growing = False
        topic.partitions += opened
        broker.count_topics()
    return await describe_topic(broker, DescribeTopic(name=name))


def _check_space(broker: Broker, more: int) -> None:
    """Refuse partitions beyond what the broker may have in all."""
    there, most = sum(broker.topic_counts.values()), broker.config.limits.partitions
    if there + more > most:
        raise InvalidPartitionCount(
            f"there are {there} partitions in all and may be {most}: {more} more are too many"
        )


async def _begin_partitions(broker: Broker, topic: Topic, first_offsets: Sequence[int]) -> None:
    """Let the partitions of a topic that is still to be made begin at these offsets."""
    name = topic.name

    def begin() -> None:
        if name in broker.disk.list(LOGS_FOLDER):
            # A crash has left it before the journal spoke of the topic: nothing in it counts.
            broker.disk.remove_tree(f"{LOGS_FOLDER}/{name}")
        for number, offset in enumerate(first_offsets):
            folder = f"{LOGS_FOLDER}/{name}/{number}"
            broker.disk.make_folder(folder)
            if offset:
                begin_at(broker.disk, folder, offset, topic_id=topic.topic_id)

    try:
        await broker.threads.run(begin)
    except OSError as error:
        raise storage_error(error, f"new partitions of {name}") from error


async def _open_partitions(broker: Broker, topic: Topic, numbers: range) -> list[Partition]:
    try:
        return await broker.open_partitions([(topic, number) for number in numbers])
    except OSError as error:
        raise storage_error(error, f"new partitions of {topic.name}") from error


async def describe_topic(broker: Broker, command: DescribeTopic) -> TopicView:
    """A topic as it is now."""
    topic = broker.topic(command.name)
    known = broker.metadata.topic(command.name)
    slices = Slices(broker.clock)
    if command.only_led:
        # A leader that has just begun may know less than was acknowledged: it asks those in sync first.
        await commit_written(partition for partition in topic.partitions if partition.is_leader)
    partitions = await slices.each(tuple(topic.partitions), _view)
    if broker.is_one_of_several:
        partitions = await slices.each(partitions, partial(_with_record, broker.metadata, known))
    if command.only_led:
        me = broker.config.node_id
        partitions = [view for view in partitions if view.record is None or view.record.leader == me]
    return TopicView(
        name=known.name,
        topic_id=known.topic_id,
        created_ms=known.created_ms,
        settings=known.settings,
        partitions=tuple(partitions),
    )


async def topic_by_id(broker: Broker, command: FindTopic) -> TopicView:
    """The topic that has this id."""
    name = broker.metadata.names.get(command.topic_id)
    if name is None:
        raise TopicNotFound(f"with id {command.topic_id}")
    return await describe_topic(broker, DescribeTopic(name=name))


async def list_topics(broker: Broker, command: ListTopics) -> list[TopicView]:
    """All topics of clients, by name."""
    slices = Slices(broker.clock)
    views = []
    for name in sorted(name for name in broker.topics if not is_internal(name)):
        if name in broker.topics:  # it may have gone while others had their turn
            views.append(await describe_topic(broker, DescribeTopic(name=name, only_led=command.only_led)))
        await slices.pause()
    return views


def describe_copy(broker: Broker, command: DescribeCopy) -> CopyView | None:
    """What this node has of a partition; None: it holds no copy, or one that cannot be looked at now."""
    partition = broker.partition(command.source)
    try:
        log = partition.log
    except GoQueueError:
        return None
    return CopyView(partition.is_leader, log.end_offset, partition.commit_mark, partition.leader_epoch)


def is_growing(broker: Broker, command: DescribeGrowth) -> bool:
    """Whether a topic is getting more partitions just now."""
    return broker.topic(command.name).is_growing


def describe_settings(broker: Broker, command: DescribeSettings) -> list[SettingView]:
    """A topic's settings by Kafka's names."""
    broker.topic(command.name)
    topic, defaults = broker.metadata.topic(command.name), broker.config.topic_defaults
    record = broker.metadata.record(topic, 0)
    # Shown is what holds: as many as are asked for may be more than there are copies.
    held = min_isr_of(record, topic.settings.min_insync_replicas)
    by_default = min_isr_of(record, defaults.min_insync_replicas)
    return view_settings(
        replace(topic.settings, min_insync_replicas=held),
        defaults=replace(defaults, min_insync_replicas=by_default),
    )


async def alter_settings(broker: Broker, command: AlterSettings) -> TopicView:
    """Change some of a topic's settings; they hold from the next append, and survive a restart."""
    broker.admit(command.name)
    broker.topic(command.name)
    return await broker.carry_out(
        _alter_settings(broker, command.name, command.changes, command.validate_only)
    )


async def _alter_settings(
    broker: Broker, name: str, changes: Sequence[SettingChange], validate_only: bool
) -> TopicView:
    broker.admit(name)
    topic = broker.topic(name)
    settings = change_settings(
        broker.metadata.topic(name).settings, changes, defaults=broker.config.topic_defaults
    )
    _check_policy(name, settings)
    if any(change.name == "retention.ms" for change in changes):
        is_given = any(change.name == "retention.ms" and change.value is not None for change in changes)
        settings = within_retention(broker, name, settings, is_given=is_given)
    if any(change.name == MIN_INSYNC and change.value is not None for change in changes):
        known = broker.metadata.topic(name)
        _check_min_insync(settings, len(broker.metadata.record(known, 0).replicas))
    if not validate_only:
        await broker.agreement.make(lambda: broker.metadata.change_settings(name, settings))
        slices = Slices(broker.clock)
        for partition in topic.partitions:
            partition.change_settings(settings)
            broker.telemetry.change(partition.source, settings)
            await slices.pause()
    return await describe_topic(broker, DescribeTopic(name=name))


async def delete_records(broker: Broker, command: DeleteRecords) -> int:
    """Give up all messages before an offset (-1: all there are); returns the log's new start."""
    broker.admit(command.target.topic)
    partition = broker.partition(command.target)
    partition.admit_write()
    partition.admit_read()
    log = partition.log
    await commit_written([partition])
    offset = partition.commit_mark if command.before_offset == HIGH_WATERMARK else command.before_offset
    if not 0 <= offset <= partition.commit_mark:
        raise OffsetOutOfRange(offset, start_offset=log.start_offset, end_offset=partition.commit_mark)
    async with broker.delays.noted(command.target):
        partition.move_start(offset)
    async with broker.health.reserve.lent():
        await partition.save_recovery_point()
    return log.start_offset


def _with_record(image: Metadata, topic: Topic, view: PartitionView) -> PartitionView:
    record = image.record(topic, view.partition)
    return view._replace(leader_epoch=record.epoch, record=record)


def _view(partition: Partition) -> PartitionView:
    try:
        log = partition.log
    except GoQueueError:
        # A partition that the disk has failed is still a partition; it has nothing to show just now.
        return PartitionView(partition.source.partition, -1, -1, 0, -1)
    damage = "" if log.damage is None else str(log.damage)
    number, epoch = partition.source.partition, partition.leader_epoch
    return PartitionView(number, log.start_offset, partition.commit_mark, log.size_bytes, epoch, damage)
