"""What is counted: plain numbers in objects that lie at hand where a batch passes.

Nothing is looked up per message and nothing is rendered here; whoever asks for metrics reads the numbers.
How many topics and groups have numbers of their own is bounded: those that come when all places are taken
are counted together under `OTHER`. A topic or group that is gone frees its place and takes its numbers
along. Names that clients choose freely, such as client ids, are not counted by.
"""

from collections import Counter
from collections.abc import Callable, Container

from goqueue.core.telemetry.cluster_counts import ClusterCounts
from goqueue.core.telemetry.histogram import (
    CHECK_BOUNDS_S,
    COUNT_BOUNDS,
    REBALANCE_BOUNDS_S,
    Histogram,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.names import is_internal
from goqueue.model.settings import MetricsConfig

OTHER = TopicName("_other")
"""Stands for all topics, or groups, that have no numbers of their own."""


class TopicCounters:
    """What happened in one topic since the broker began."""

    __slots__ = (
        "ack_seconds",
        "check_seconds",
        "checked_elsewhere",
        "checks_too_slow",
        "delayed",
        "delays_cancelled",
        "delays_fired",
        "failed",
        "fsync_errors",
        "fsyncs",
        "misfits",
        "offset_look_ups",
        "publish_seconds",
        "published",
        "published_bytes",
        "read",
        "read_bytes",
        "read_seconds",
        "redriven",
        "segments_begun",
        "segments_removed",
        "served_bytes",
        "time_look_ups",
        "valid",
        "written_bytes",
    )

    def __init__(self) -> None:
        self.published = self.published_bytes = self.written_bytes = 0
        self.served_bytes = 0
        """Bytes that the log gave out, to whomever."""
        self.read = self.read_bytes = 0
        """By readers that name no group: Kafka consumers, readers by offset."""
        self.failed: Counter[str] = Counter()
        """Messages or batches that were refused, by the code of the error."""
        self.redriven = 0
        self.delayed = self.delays_fired = self.delays_cancelled = 0
        self.checked_elsewhere = self.checks_too_slow = 0
        self.valid = self.misfits = 0
        """Messages that fitted their topic's schemas, and those that did not."""
        self.fsyncs = self.fsync_errors = 0
        self.segments_begun = self.segments_removed = 0
        self.offset_look_ups = self.time_look_ups = 0
        """Of logs that were closed meanwhile; those that are open count for themselves."""
        self.publish_seconds = Histogram()
        self.read_seconds = Histogram()
        self.ack_seconds: dict[str, Histogram] = {}
        """By what was asked for: ack, nack, reject, extend."""
        self.check_seconds = Histogram(CHECK_BOUNDS_S)

    def settled(self, action: str, seconds: float) -> None:
        """Messages were acknowledged, given back, rejected or kept longer, which took so long."""
        known = self.ack_seconds.get(action)
        if known is None:
            known = self.ack_seconds[action] = Histogram()
        known.observe(seconds)

    def checked_apart(self, count: int) -> None:
        """So many of them by a helper process."""
        self.checked_elsewhere += count

    def check_too_slow(self, count: int) -> None:
        """So many were refused because nobody could tell in time whether they fit."""
        self.checks_too_slow += count

    def checked(self, count: int, misfits: int, seconds: float) -> None:
        """So many messages were held against the topic's schemas."""
        self.valid += count - misfits
        self.misfits += misfits
        self.check_seconds.observe(seconds)


class GroupTopicCounters:
    """What one group did with the messages of one topic."""

    __slots__ = (
        "acked",
        "commits",
        "consumed",
        "consumed_bytes",
        "dead_letters",
        "expired",
        "extended",
        "nacked",
        "outdated",
        "passed_over",
        "rejected",
    )

    def __init__(self) -> None:
        self.consumed = self.consumed_bytes = 0
        self.acked = self.nacked = self.rejected = self.expired = self.extended = 0
        self.outdated = self.passed_over = self.dead_letters = 0
        self.commits = 0

    def add(self, other: "GroupTopicCounters") -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class GroupCounters:
    """What happened in one consumer group."""

    __slots__ = (
        "commit_errors",
        "commit_seconds",
        "heartbeat_seconds",
        "heartbeats",
        "joins",
        "leaves",
        "poll_messages",
        "poll_seconds",
        "polls",
        "polls_empty",
        "rebalance_seconds",
        "rebalances",
    )

    def __init__(self) -> None:
        self.polls = self.polls_empty = self.heartbeats = self.joins = 0
        self.commit_errors: Counter[str] = Counter()
        """Partitions whose offset was refused, or whole requests, by the code of the error."""
        self.leaves: Counter[str] = Counter()
        self.rebalances: Counter[str] = Counter()
        """By what began them."""
        self.poll_messages = Histogram(COUNT_BOUNDS)
        self.poll_seconds = Histogram()
        self.commit_seconds = Histogram()
        self.heartbeat_seconds = Histogram()
        self.rebalance_seconds = Histogram(REBALANCE_BOUNDS_S)

    def beaten(self, seconds: float) -> None:
        """A member's heartbeat was answered, which took so long."""
        self.heartbeats += 1
        self.heartbeat_seconds.observe(seconds)

    def polled(self, count: int, seconds: float) -> None:
        """A poll was answered with so many messages."""
        self.polls += 1
        self.polls_empty += not count
        self.poll_messages.observe(count)
        self.poll_seconds.observe(seconds)


class PartitionCounts:
    """What the walk tells of one partition, found once and kept: a method an event."""

    __slots__ = ("_all", "_topic", "_topic_name")

    def __init__(self, all_counters: "Counters", topic: TopicName) -> None:
        self._all = all_counters
        self._topic_name = topic
        self._topic = all_counters.topic(topic)

    def stored(self, count: int, size: int) -> None:
        """Batches of so many messages and bytes are in the log."""
        topic = self._topic
        topic.published += count
        topic.published_bytes += size

    def read(self, count: int, size: int) -> None:
        """A reader that names no group has got messages: a Kafka consumer, a reader by offset."""
        topic = self._topic
        topic.read += count
        topic.read_bytes += size

    def leased(self, group: str, count: int, size: int) -> None:
        """A member of a group has got messages."""
        pair = self._all.group_topic(group, self._topic_name)
        pair.consumed += count
        pair.consumed_bytes += size

    def acked(self, group: str, count: int) -> None:
        self._all.group_topic(group, self._topic_name).acked += count

    def nacked(self, group: str, count: int) -> None:
        self._all.group_topic(group, self._topic_name).nacked += count

    def rejected(self, group: str, count: int) -> None:
        self._all.group_topic(group, self._topic_name).rejected += count

    def expired(self, group: str, count: int) -> None:
        """Leases of so many messages have run out."""
        self._all.group_topic(group, self._topic_name).expired += count

    def extended(self, group: str, count: int) -> None:
        self._all.group_topic(group, self._topic_name).extended += count

    def outdated(self, group: str, count: int) -> None:
        """Messages were too old to be delivered."""
        self._all.group_topic(group, self._topic_name).outdated += count

    def passed_over(self, group: str, count: int) -> None:
        """Messages that nobody can read were left out."""
        self._all.group_topic(group, self._topic_name).passed_over += count

    def dead_lettered(self, group: str, count: int) -> None:
        """Messages are among the dead letters of the topic now."""
        self._all.group_topic(group, self._topic_name).dead_letters += count

    def redriven(self, count: int) -> None:
        """Dead letters have gone back to this topic."""
        self._topic.redriven += count

    def postponed(self, count: int) -> None:
        """Messages wait to be delivered later."""
        self._topic.delayed += count

    def due(self, count: int) -> None:
        """So many of them have been delivered."""
        self._topic.delays_fired += count

    def cancelled(self, count: int) -> None:
        self._topic.delays_cancelled += count


class Counters:
    """All of them."""

    def __init__(self, config: MetricsConfig | None = None) -> None:
        self.config = config or MetricsConfig()
        self.topics: dict[str, TopicCounters] = {}
        self.journals: dict[str, TopicCounters] = {}
        """Topics of the broker's own; they take nobody's place."""
        self.groups: dict[str, GroupCounters] = {}
        self.group_topics: dict[tuple[str, str], GroupTopicCounters] = {}
        self.other_topics = TopicCounters()
        self.other_groups = GroupCounters()
        self.other_group_topics = GroupTopicCounters()
        self.has_other_topics = self.has_other_groups = self.has_other_group_topics = False
        """Whether anything has been counted there."""
        self._gone = GroupTopicCounters()
        """What groups did that are gone, or with topics that are."""
        self.connections: dict[str, Callable[[], int]] = {}
        """How many are open now, by door: each door says how it is told."""
        self.connections_refused: Counter[tuple[str, str]] = Counter()
        """How many were not let in, by door and reason."""
        self.cluster = ClusterCounts()

    def topic(self, name: str) -> TopicCounters:
        """The numbers of a topic that is there. Whoever writes often keeps them."""
        known = self.topics.get(name)
        if known is None:
            if is_internal(name):
                return self.journals.setdefault(name, TopicCounters())
            if len(self.topics) >= self.config.topics_max:
                self.has_other_topics = True
                return self.other_topics
            known = self.topics[name] = TopicCounters()
        return known

    def group(self, name: str) -> GroupCounters:
        known = self.groups.get(name)
        if known is None:
            if len(self.groups) >= self.config.groups_max:
                self.has_other_groups = True
                return self.other_groups
            known = self.groups[name] = GroupCounters()
        return known

    def group_topic(self, group: str, topic: str) -> GroupTopicCounters:
        known = self.group_topics.get((group, topic))
        if known is None:
            if len(self.group_topics) >= self.config.groups_max:
                self.has_other_group_topics = True
                return self.other_group_topics
            known = self.group_topics[group, topic] = GroupTopicCounters()
        return known

    def partition(self, source: TopicPartition) -> PartitionCounts:
        """Where the events of a partition are counted."""
        return PartitionCounts(self, source.topic)

    def forget_topics(self, there: Container[str]) -> None:
        """Topics have gone: their places are free."""
        for name in [name for name in self.topics if name not in there]:
            del self.topics[name]
        for pair in [pair for pair in self.group_topics if pair[1] not in there]:
            self._gone.add(self.group_topics.pop(pair))

    def forget_groups(self, there: Container[str]) -> None:
        """The same for groups."""
        for name in [name for name in self.groups if name not in there]:
            del self.groups[name]
        for pair in [pair for pair in self.group_topics if pair[0] not in there]:
            self._gone.add(self.group_topics.pop(pair))

    def queue_totals(self) -> GroupTopicCounters:
        """What all groups did with all messages since the broker began, with those that are gone."""
        totals = GroupTopicCounters()
        for counters in (*self.group_topics.values(), self.other_group_topics, self._gone):
            totals.add(counters)
        return totals

    def commit_refused(self, group: str, code: str) -> None:
        """Offsets were not taken. The group may not exist either."""
        known = self.groups.get(group)
        if known is None:
            self.has_other_groups = True
            known = self.other_groups
        known.commit_errors[code] += 1

    def refused(self, topic: str, code: str, count: int = 1) -> None:
        """Messages were not taken. The topic may not exist at all: a name alone gets no place."""
        known = self.topics.get(topic)
        if known is None:
            self.has_other_topics = True
            known = self.other_topics
        known.failed[code] += count
