"""Topics of a cluster, as this node holds them: opened, swapped and let go of as what is agreed changes.

Every node knows every topic. Of a partition that the record places here there is a log; of any other only a
place in the list. Which replica leads is no matter of this room: a partition that was opened refuses
everything until replication has taken it in.
"""

import asyncio
import logging
from typing import Protocol
from uuid import UUID

from goqueue.broker.broker import Broker, OpenTopic
from goqueue.broker.groups.upkeep import forget_topic
from goqueue.broker.slices import Slices
from goqueue.broker.storage.data_folder import LOGS_FOLDER
from goqueue.broker.storage.partition import Partition
from goqueue.broker.topics.folders import Folders
from goqueue.core.cluster.isr import min_isr_of
from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import NodeId, PartitionRecord
from goqueue.model.errors import GoQueueError, LeadershipLost, NotLeader, TopicNotFound
from goqueue.model.ids import TopicName
from goqueue.model.ports import Store
from goqueue.model.settings import TopicSettings

log = logging.getLogger(__name__)
_PAUSE_S = 1.0


class Replicas(Protocol):
    """Who makes replicas of partitions: see `broker/replication`."""

    def holds(self, partition: Partition) -> bool: ...

    def add(self, partition: Partition, *, min_isr: int, min_isr_asked: int) -> object: ...

    def take_settings(self, partition: Partition, settings: TopicSettings) -> None: ...

    def drop(self, partition: Partition) -> None: ...

    async def quiet(self) -> None:
        """Return when nothing is done any more to the files of those that were dropped."""


class Holding:
    def __init__(self, broker: Broker, store: Store) -> None:
        self._broker = broker
        self._folders = Folders(broker, store)
        self._has_left = True
        """Whether there may be folders of replicas that are none any more; nobody knows at the start."""
        self._me = NodeId(broker.config.node_id)
        self._replicas: Replicas | None = None
        self._changed = asyncio.Event()
        self._lock = asyncio.Lock()
        self.lacking: set[tuple[UUID, int]] = set()
        """Partitions that were opened at the start and do not hold what this node is believed to hold."""
        broker.agreement.listeners.append(self._changed.set)

    async def replicate(self, replicas: Replicas) -> None:
        """From now on they have the say about the partitions here, and those of before no more.

        Who waits for an earlier leadership is refused: nobody would answer for it. With pauses: with very
        many partitions this takes so long that the session would end meanwhile.
        """
        self._replicas = replicas
        slices = Slices(self._broker.clock)
        for name, topic in tuple(self._broker.topics.items()):
            number = 0
            while self._broker.topics.get(name) is topic and number < len(topic.partitions):
                partition = topic.partitions[number]
                if partition.is_here and not replicas.holds(partition):
                    partition.refuse_waiters(LeadershipLost(*partition.source))
                    self._add(partition)
                number += 1
                if slices.is_over:
                    await slices.pause()

    async def follow(self) -> None:
        """Keep to what is agreed, for ever."""
        while True:
            self._changed.clear()
            try:
                await self.catch_up()
                await self._sweep()
            except (OSError, GoQueueError) as error:
                log.error("topics_not_followed reason=%s", error)
                await asyncio.sleep(_PAUSE_S)
                self._changed.set()
            await self._changed.wait()
            await asyncio.sleep(self._broker.agreement.together_s)

    async def _sweep(self) -> None:
        """Remove the folders of replicas that have moved away, or whose topic was deleted."""
        async with self._lock:
            if self._has_left:
                await self._files_at_rest()
                held = [partition.folder for partition in self._broker.all_partitions()]
                self._has_left = not await self._folders.sweep(held)

    async def catch_up(self) -> None:
        """Make the topics here what the image says, now."""
        async with self._lock:
            broker, image = self._broker, self._broker.metadata
            slices = Slices(broker.clock)
            for name in tuple(broker.leaving):
                await self._let_go(name)
            for topic in tuple(image.topics.values()):
                opened = broker.topics.get(topic.name)
                if opened is not None and opened.partitions[0].topic_id != topic.topic_id:
                    broker.let_topics_go([topic.name])
                    await self._let_go(topic.name)
                    opened = None
                await self._hold(topic, opened)
                await slices.pause()

    async def _hold(self, topic: Topic, opened: OpenTopic | None) -> None:
        broker = self._broker
        partitions = [] if opened is None else opened.partitions
        wanted = [
            (topic, number)
            for number in range(topic.partitions)
            if number >= len(partitions) or partitions[number].is_here != broker.is_held(topic, number)
        ]
        if opened is not None and opened.settings is not topic.settings:
            opened.settings = topic.settings
            for partition in partitions:
                partition.change_settings(topic.settings)
                if self._replicas is not None and partition.is_here:
                    self._replicas.take_settings(partition, topic.settings)
                broker.telemetry.change(partition.source, topic.settings)
        if not wanted:
            return
        if any(broker.is_held(topic, number) for topic, number in wanted):
            await self._folders.note(broker.metadata.revision)
        fresh = await broker.open_partitions(wanted)
        for partition in fresh:
            self._take_in(topic, partition, partitions)
        if opened is None:
            broker.topics[topic.name] = OpenTopic(partitions, settings=topic.settings)
        broker.count_topics()

    def _take_in(self, topic: Topic, partition: Partition, partitions: list[Partition]) -> None:
        number = partition.source.partition
        if number < len(partitions):
            before, partitions[number] = partitions[number], partition
            self._drop(before)
            self._has_left |= before.is_here
        else:
            partitions.append(partition)
        if not partition.is_here:
            return
        record = self._broker.metadata.record(topic, number)
        if self._lacks(partition, record):
            self.lacking.add((topic.topic_id, number))
        self._add(partition)

    def _lacks(self, partition: Partition, record: PartitionRecord) -> bool:
        """Whether a log that should hold everything is not there, or not whole."""
        is_believed = self._me in record.isr or self._me in record.elr
        return is_believed and (partition.damage is not None or partition.was_made_anew)

    def _add(self, partition: Partition) -> None:
        if self._replicas is not None:
            image, source = self._broker.metadata, partition.source
            topic = image.topics.get(source.topic)
            if topic is not None:
                record = image.record(topic, source.partition)
                asked = topic.settings.min_insync_replicas
                self._replicas.add(partition, min_isr=min_isr_of(record, asked), min_isr_asked=asked)

    def _drop(self, partition: Partition) -> None:
        if partition.is_here:
            if self._replicas is not None:
                self._replicas.drop(partition)
            partition.refuse_waiters(LeadershipLost(*partition.source))
            partition.close(NotLeader(*partition.source))
            self._broker.flusher.forget(partition)

    async def _let_go(self, name: TopicName) -> None:
        """Close a topic that is gone, and remove what it has left on the disk."""
        broker = self._broker
        topic = broker.leaving.pop(name)
        slices = Slices(broker.clock)
        here = [partition for partition in topic.partitions if partition.is_here]
        for partition in here:
            if self._replicas is not None:
                self._replicas.drop(partition)
            partition.close(TopicNotFound(name))
            broker.telemetry.forget(partition.source)
            await slices.pause()
        await forget_topic(broker, topic.partitions[0].topic_id)
        await self._files_at_rest()
        for partition in here:
            broker.flusher.forget(partition)
        await broker.threads.run(_remove_folders, broker, here)

    async def _files_at_rest(self) -> None:
        """Return when nobody writes to partitions that were closed."""
        if self._replicas is not None:
            await self._replicas.quiet()
        await self._broker.flusher.wait_under_way()


def _remove_folders(broker: Broker, partitions: list[Partition]) -> None:
    for partition in partitions:
        broker.disk.remove_tree(partition.folder)
    if partitions:
        broker.disk.sync_folder(f"{LOGS_FOLDER}/{partitions[0].source.topic}")
