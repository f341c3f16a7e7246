"""The broker at one moment, summed up by the labels under which it is told.

Thousands of partitions and groups are walked, so that is done in slices: between them the loop serves others.
Numbers of one answer may therefore be some milliseconds apart.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from goqueue.broker.broker import Broker
from goqueue.broker.groups.lag import Unread, lags_of, stored_times
from goqueue.broker.slices import Slices
from goqueue.broker.storage.partition import Partition
from goqueue.core.cluster.isr import min_isr_of
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.consumer_assignment import assigned_partitions
from goqueue.core.groups.group import Group
from goqueue.core.groups.groups import GroupRecord
from goqueue.core.groups.members import CONSUMER
from goqueue.core.telemetry.counters import OTHER, GroupCounters, GroupTopicCounters, TopicCounters
from goqueue.model.cluster import PartitionRecord
from goqueue.model.delivery import REDRIVE_GROUP_PREFIX
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Lane
from goqueue.model.names import is_internal

_LOOK_UPS_MAX = 1_000
"""So many partitions are looked up in time for one answer; groups that come later are told without it."""


@dataclass(slots=True)
class LogRow:
    """Logs of a topic, or one of them."""

    partitions: int = 0
    stopped: int = 0
    start_offset: int = 0
    end_offset: int = 0
    commit_mark: int = 0
    size_bytes: int = 0
    segments: int = 0
    segments_begun: int = 0
    segments_removed: int = 0
    offset_look_ups: int = 0
    time_look_ups: int = 0

    @property
    def active_segments(self) -> int:
        """Each partition that is at work writes to one."""
        return self.partitions - self.stopped

    def add(self, partition: Partition) -> None:
        self.partitions += 1
        try:
            log = partition.log
        except GoQueueError:
            self.stopped += 1  # it has nothing to show just now
            return
        self.start_offset += log.start_offset
        self.end_offset += log.end_offset
        self.commit_mark += partition.commit_mark
        self.size_bytes += log.size_bytes
        self.segments += log.segment_count
        self.segments_begun += log.segments_begun
        self.segments_removed += log.segments_removed
        self.offset_look_ups += log.offset_look_ups
        self.time_look_ups += log.time_look_ups


@dataclass(slots=True)
class GroupRow:
    """A group, or all that have no place of their own."""

    records: list[GroupRecord] = field(default_factory=list)
    partitions: int = 0
    """Partitions that members have. One that several share counts for each of them."""


@dataclass(slots=True)
class PairRow:
    """A group's way through a topic, or through one of its partitions."""

    committed_offset: int = 0
    lag: int = 0
    lag_ms: int | None = 0
    """None: it was not looked up."""
    in_flight: int = 0
    ready: int = 0
    waiting: int = 0
    is_queue: bool = False
    """Whether messages are leased, one by one."""


@dataclass(slots=True)
class ClusterRow:
    """Records of partitions, summed up."""

    partitions: int = 0
    leads: Counter[str] = field(default_factory=Counter)
    follows: Counter[str] = field(default_factory=Counter)
    isr_sizes: dict[str, int] = field(default_factory=dict)
    """The least of each topic, by its label."""
    under_replicated: int = 0
    under_min_isr: int = 0
    unled: int = 0
    led_by_others: int = 0
    moving: int = 0

    def add(self, label: str, record: PartitionRecord, min_isr: int) -> None:
        self.partitions += 1
        self.follows.update(node for node in record.replicas if node != record.leader)
        in_sync = len(record.isr)
        self.isr_sizes[label] = min(in_sync, self.isr_sizes.get(label, in_sync))
        self.under_replicated += in_sync < len(record.replicas) - len(record.adding)
        self.under_min_isr += in_sync < min_isr
        self.moving += bool(record.adding or record.removing)
        self.led_by_others += record.leader is not None and record.leader != record.replicas[0]
        if record.leader is None:
            self.unled += 1
        else:
            self.leads[record.leader] += 1


class View:
    """Made for one answer: what is looked at is summed up here, what is counted is read from the counters."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.counters = broker.counters
        self.by_partition = broker.counters.config.by_partition
        self.now_ms = broker.clock.wall_ms()
        self.topics: dict[str, LogRow] = {}
        """By topic, those of the broker's own journals too."""
        self.logs: dict[tuple[str, ...], LogRow] = {}
        """The same, by partition where that is wanted."""
        self.lanes: dict[tuple[str, str], int] = {}
        self.groups: dict[str, GroupRow] = {}
        self.pairs: dict[tuple[str, ...], PairRow] = {}
        """By topic, group, and partition where that is wanted."""
        self.cluster = ClusterRow()
        self.consumers: dict[tuple[str, str], int] = {}
        """Members that have partitions of a topic, by topic and group."""

    async def look(self) -> "View":
        """Walk through everything there is."""
        await self._look_at_partitions()
        await self._look_at_records()
        await self._look_at_groups()
        return self

    def topic_label(self, name: str) -> str:
        return name if name in self.counters.topics or name in self.counters.journals else OTHER

    def topics_of_clients(self) -> Iterator[tuple[str, TopicCounters]]:
        # What was under way when its topic was deleted may have counted for it once more.
        there = self.broker.topics
        yield from (pair for pair in self.counters.topics.items() if pair[0] in there)
        if self.counters.has_other_topics:
            yield OTHER, self.counters.other_topics

    def counted_topics(self) -> Iterator[tuple[str, TopicCounters]]:
        """The same, and the broker's own journals."""
        yield from self.topics_of_clients()
        yield from self.counters.journals.items()

    def counted_groups(self) -> Iterator[tuple[str, GroupCounters]]:
        yield from self.counters.groups.items()
        if self.counters.has_other_groups:
            yield OTHER, self.counters.other_groups

    def counted_pairs(self) -> Iterator[tuple[tuple[str, str], GroupTopicCounters]]:
        """By topic and group."""
        for (group, topic), counts in self.counters.group_topics.items():
            if topic in self.broker.topics:
                yield (topic, group), counts
        if self.counters.has_other_group_topics:
            yield (OTHER, OTHER), self.counters.other_group_topics

    async def _look_at_partitions(self) -> None:
        slices = Slices(self.broker.clock)
        for partition in self.broker.all_partitions():
            name, number = partition.source
            label = self.topic_label(name)
            self.topics.setdefault(label, LogRow()).add(partition)
            if self.by_partition:
                # Without a name of its own a topic has no partitions of their own either.
                key = (label, "" if label == OTHER else str(number))
                self.logs.setdefault(key, LogRow()).add(partition)
            if not is_internal(name):
                for lane, count in zip(Lane, partition.lane_counts, strict=True):
                    if count:
                        self.lanes[label, lane.label] = self.lanes.get((label, lane.label), 0) + count
            if slices.is_over:
                await slices.pause()
        if not self.by_partition:
            self.logs = {(label,): row for label, row in self.topics.items()}

    async def _look_at_records(self) -> None:
        broker, image = self.broker, self.broker.metadata
        if not broker.is_one_of_several:
            # The one node leads all there is, and nobody copies it.
            here, row = broker.config.node_id, self.cluster
            row.partitions = row.leads[here] = sum(broker.topic_counts.values())
            row.follows[here] = 0
            row.isr_sizes = {self.topic_label(name): 1 for name in broker.topic_counts}
            return
        slices = Slices(broker.clock)
        for node in image.members:
            self.cluster.leads[node] += 0
            self.cluster.follows[node] += 0
        for (topic_id, _), record in tuple(image.records.items()):
            name = image.names.get(topic_id)
            if name is not None and name in image.topics:
                asked = image.topics[name].settings.min_insync_replicas
                self.cluster.add(self.topic_label(name), record, min_isr_of(record, asked))
            if slices.is_over:
                await slices.pause()

    async def _look_at_groups(self) -> None:
        journals = self.broker.coordinator.journals
        # Those that redrive dead letters are the broker's own: nobody waits for them to catch up.
        records = [
            record for journal in journals for record in journal.groups if not _is_own(record.membership.name)
        ]
        self.counters.forget_groups({record.membership.name for record in records})
        unread: list[Unread] = []
        rows: list[PairRow] = []
        slices = Slices(self.broker.clock)
        for record in records:
            name = record.membership.name
            self.counters.group(name)  # one that nothing was counted of has its place too
            label = name if name in self.counters.groups else OTHER
            row = self.groups.setdefault(label, GroupRow())
            row.records.append(record)
            row.partitions += self._look_at_members(record.membership)
            lags, behind = await lags_of(self.broker, record)
            for lag in lags:
                pair = self._pair(name, lag.topic, lag.partition)
                pair.committed_offset += max(lag.committed_offset, 0)
                pair.lag += max(lag.lag, 0)
                if slices.is_over:
                    await slices.pause()
            for place in behind:
                lag = lags[place.at]
                rows.append(self._pair(name, lag.topic, lag.partition))
                unread.append(place._replace(at=len(unread)))
                if slices.is_over:
                    await slices.pause()
            await slices.pause()
        await self._look_at_deliveries()
        await self._look_up_times(unread, rows)

    def _look_at_members(self, group: Group | AssignedGroup) -> int:
        """Note who has partitions of which topics; how many partitions that is."""
        count = 0
        for held in _held_by_members(group):
            count += len(held)
            for topic in {source.topic for source in held}:
                key = self._pair_label(group.name, topic)
                self.consumers[key] = self.consumers.get(key, 0) + 1
        return count

    async def _look_at_deliveries(self) -> None:
        found = [delivery for journal in self.broker.coordinator.journals for delivery in journal.deliveries]
        slices = Slices(self.broker.clock)
        for delivery in found:
            if delivery.topic in self.broker.topics and not _is_own(delivery.group):
                row = self._pair(delivery.group, *delivery.source)
                row.is_queue = True
                row.in_flight += delivery.leased_count
                row.ready += delivery.shelf.count
                row.waiting += len(delivery.waiting)
            if slices.is_over:
                await slices.pause()

    async def _look_up_times(self, unread: list[Unread], rows: list[PairRow]) -> None:
        times = await stored_times(self.broker, unread[:_LOOK_UPS_MAX])
        for at, row in enumerate(rows):
            stored_ms = times.get(at, -1)
            if stored_ms < 0:
                row.lag_ms = None
            elif row.lag_ms is not None:
                row.lag_ms = max(row.lag_ms, self.now_ms - stored_ms)

    def _pair_label(self, group: str, topic: str) -> tuple[str, str]:
        self.counters.group_topic(group, topic)  # one that nothing was counted of has its place too
        return (topic, group) if (group, topic) in self.counters.group_topics else (OTHER, OTHER)

    def _pair(self, group: str, topic: str, partition: int) -> PairRow:
        key: tuple[str, ...] = self._pair_label(group, topic)
        if self.by_partition:
            key = (*key, "" if key[0] == OTHER else str(partition))
        return self.pairs.setdefault(key, PairRow())


def _held_by_members(group: Group | AssignedGroup) -> Iterator[Collection[TopicPartition]]:
    """What each member has."""
    if isinstance(group, AssignedGroup):
        yield from (holder.owned for holder in group.members.values())
    elif group.protocol_type == CONSUMER:
        yield from (_partitions_in(member.assignment) for member in group.members.values())


_partitions_in = lru_cache(maxsize=10_000)(assigned_partitions)
"""Assignments are told at every scrape and change with rebalances only."""


def _is_own(group: str) -> bool:
    return group.startswith(REDRIVE_GROUP_PREFIX)
