"""The metadata machine: topics and what is known of them, the epochs of their partitions, producer ids.

It decides nothing about disks. Each method looks at the state and answers with the event that would
change it; `apply` takes events, fresh ones and those read back from the journal after a restart.

Every partition has an epoch of its own, which rises with each start of the node and whenever the partition
alone is opened anew. That all of them rise with a start is one number, `starts`: ten thousand partitions cost
one event. So an epoch is the starts since the topic was made, and what its partition was raised by besides.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from goqueue.model.errors import InvalidPartitionCount, TopicExists, TopicNotFound
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import TopicSettings

PRODUCER_IDS_RESERVED = 1_000
"""Ids are set aside in blocks: a crash wastes the rest of one, and no id is ever given twice."""


@dataclass(frozen=True, slots=True)
class ClusterFormed:
    cluster_id: str


@dataclass(frozen=True, slots=True)
class EpochRaised:
    """The node has started for the so many-th time: every partition is in its next epoch."""

    epoch: int


@dataclass(frozen=True, slots=True)
class PartitionEpochRaised:
    """One partition was opened anew, and is in this epoch."""

    name: TopicName
    partition: int
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicCreated:
    name: TopicName
    topic_id: UUID
    partitions: int
    settings: TopicSettings
    created_ms: int
    starts_before: int = 0
    """How often the node had started before the life in which the topic was made."""


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    name: TopicName
    total: int


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    name: TopicName
    settings: TopicSettings


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """The topic is gone for everybody; its folder is still to be removed."""

    name: TopicName


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """The folder of a deleted topic is gone too: its name is free again."""

    name: TopicName


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    end: int


@dataclass(frozen=True, slots=True)
class JournalBegun:
    """A journal of the broker is there, with a recovery point: without its folder later, it is lost."""

    name: str


@dataclass(frozen=True, slots=True)
class CommitMarkKept:
    """From here on nothing that names an offset is on the disk before the message: else it is missing."""


@dataclass(frozen=True, slots=True)
class StateReset:
    """Begin again from nothing: what follows is the whole state, written to keep the journal short."""


Event = (
    ClusterFormed
    | EpochRaised
    | PartitionEpochRaised
    | TopicCreated
    | PartitionsAdded
    | SettingsChanged
    | TopicDeleted
    | TopicRemoved
    | ProducerIdsReserved
    | JournalBegun
    | CommitMarkKept
    | StateReset
)
EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        ClusterFormed,
        EpochRaised,
        PartitionEpochRaised,
        TopicCreated,
        PartitionsAdded,
        SettingsChanged,
        TopicDeleted,
        TopicRemoved,
        ProducerIdsReserved,
        JournalBegun,
        CommitMarkKept,
        StateReset,
    )
}


@dataclass(frozen=True, slots=True)
class Topic:
    name: TopicName
    topic_id: UUID
    partitions: int
    settings: TopicSettings
    created_ms: int
    starts_before: int = 0
    raised: Mapping[int, int] = field(default_factory=dict)
    """By how much a partition's epoch was raised besides the starts; others by nothing."""


class Metadata:
    """The agreed state of a cluster; on one node, of that node."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.cluster_id = ""
        self.starts = 0
        self.topics: dict[TopicName, Topic] = {}
        self.names: dict[UUID, TopicName] = {}
        self.deleted: set[TopicName] = set()
        self.journals: set[str] = set()
        self.producer_ids_end = 1
        self.is_commit_mark_kept = False

    def topic(self, name: str) -> Topic:
        topic = self.topics.get(TopicName(name))
        if topic is None:
            raise TopicNotFound(name)
        return topic

    def create_topic(
        self,
        name: TopicName,
        *,
        topic_id: UUID,
        partitions: int,
        settings: TopicSettings,
        partitions_max: int,
        now_ms: int,
    ) -> TopicCreated:
        if name in self.topics or name in self.deleted:
            raise TopicExists(name)
        _check_partition_count(partitions, partitions_max)
        return TopicCreated(name, topic_id, partitions, settings, now_ms, self.starts - 1)

    def add_partitions(self, name: str, total: int, *, partitions_max: int) -> PartitionsAdded:
        topic = self.topic(name)
        if total <= topic.partitions:
            raise InvalidPartitionCount(
                f"topic {name} has {topic.partitions} partitions; they can only become more, not {total}"
            )
        _check_partition_count(total, partitions_max)
        return PartitionsAdded(topic.name, total)

    def change_settings(self, name: str, settings: TopicSettings) -> SettingsChanged:
        return SettingsChanged(self.topic(name).name, settings)

    def delete_topic(self, name: str) -> TopicDeleted:
        return TopicDeleted(self.topic(name).name)

    def reserve_producer_ids(self) -> ProducerIdsReserved:
        return ProducerIdsReserved(self.producer_ids_end + PRODUCER_IDS_RESERVED)

    def epoch(self, topic: Topic, partition: int) -> int:
        """The epoch that a partition is in; 1 when its topic has just been made."""
        return self.starts - topic.starts_before + topic.raised.get(partition, 0)

    def note_start(self) -> EpochRaised:
        return EpochRaised(self.starts + 1)

    def raise_epoch(self, source: TopicPartition, *, above: int) -> PartitionEpochRaised:
        """The next epoch of a partition, and one that is higher than another in which it was written to."""
        topic = self.topic(source.topic)
        epoch = max(self.epoch(topic, source.partition), above) + 1
        return PartitionEpochRaised(topic.name, source.partition, epoch)

    def apply(self, event: Event) -> None:
        match event:
            case ClusterFormed():
                self.cluster_id = event.cluster_id
            case EpochRaised():
                self.starts = event.epoch
            case PartitionEpochRaised():
                topic = self.topics[event.name]
                more = event.epoch - self.epoch(topic, event.partition)
                raised = {**topic.raised, event.partition: topic.raised.get(event.partition, 0) + more}
                self.topics[event.name] = replace(topic, raised=raised)
            case TopicCreated():
                self.topics[event.name] = topic_of(event)
                self.names[event.topic_id] = event.name
            case PartitionsAdded():
                self.topics[event.name] = replace(self.topics[event.name], partitions=event.total)
            case SettingsChanged():
                self.topics[event.name] = replace(self.topics[event.name], settings=event.settings)
            case TopicDeleted():
                topic = self.topics.pop(event.name)
                del self.names[topic.topic_id]
                self.deleted.add(event.name)
            case TopicRemoved():
                self.deleted.discard(event.name)
            case ProducerIdsReserved():
                self.producer_ids_end = event.end
            case JournalBegun():
                self.journals.add(event.name)
            case CommitMarkKept():
                self.is_commit_mark_kept = True
            case StateReset():
                self._reset()

    def whole_state(self) -> Iterable[Event]:
        """Events that lead from nothing to the present state, the first one being the reset."""
        yield StateReset()
        yield ClusterFormed(self.cluster_id)
        yield EpochRaised(self.starts)
        yield ProducerIdsReserved(self.producer_ids_end)
        if self.is_commit_mark_kept:
            yield CommitMarkKept()
        for journal in sorted(self.journals):
            yield JournalBegun(journal)
        for topic in self.topics.values():
            yield TopicCreated(
                topic.name,
                topic.topic_id,
                topic.partitions,
                topic.settings,
                topic.created_ms,
                topic.starts_before,
            )
            for partition in topic.raised:
                yield PartitionEpochRaised(topic.name, partition, self.epoch(topic, partition))
        for name in self.deleted:
            # A deleted topic has no id worth keeping; its name alone bars the folder until it is gone.
            yield TopicCreated(name, UUID(int=0), 1, TopicSettings(), 0)
            yield TopicDeleted(name)


def topic_of(event: TopicCreated) -> Topic:
    """A topic as it is when it has just been made."""
    return Topic(
        event.name, event.topic_id, event.partitions, event.settings, event.created_ms, event.starts_before
    )


def _check_partition_count(partitions: int, partitions_max: int) -> None:
    if not 1 <= partitions <= partitions_max:
        raise InvalidPartitionCount(f"a topic has 1 to {partitions_max} partitions, not {partitions}")
