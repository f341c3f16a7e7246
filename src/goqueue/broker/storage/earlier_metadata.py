"""The metadata journal as it was written before it held keys and values: its events, and the keys they mean.

Only read: journals of before begin with these events, until they are written anew. Each is turned into the
puts and drops that lead to the same state.
"""

from dataclasses import dataclass, replace
from uuid import UUID, uuid5

from goqueue.core.access import values as tenant_values
from goqueue.core.access.events import TenantDeleted, TenantSet, UsageNoted
from goqueue.core.cluster import values
from goqueue.core.cluster.values import Topic, encode, name_key, part_key, topic_key
from goqueue.log.commit_rounds import NO_TOPIC
from goqueue.model.cluster import PartitionRecord
from goqueue.model.ids import TopicName
from goqueue.model.settings import TopicSettings


@dataclass(frozen=True, slots=True)
class ClusterFormed:
    cluster_id: str


@dataclass(frozen=True, slots=True)
class EpochRaised:
    epoch: int


@dataclass(frozen=True, slots=True)
class PartitionEpochRaised:
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
    name: TopicName


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    name: TopicName


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    end: int


@dataclass(frozen=True, slots=True)
class JournalBegun:
    name: str


@dataclass(frozen=True, slots=True)
class CommitMarkKept:
    pass


EarlierEvent = (
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
    | TenantSet
    | TenantDeleted
    | UsageNoted
)
EARLIER_EVENT_TYPES: dict[str, type[EarlierEvent]] = {
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
        TenantSet,
        TenantDeleted,
        UsageNoted,
    )
}
Puts = dict[str, bytes]


class EarlierMetadata:
    """What the events of before need to know of those before them."""

    def __init__(self) -> None:
        self._topics: dict[TopicName, Topic] = {}
        self._starts = 0

    def translate(self, event: EarlierEvent) -> tuple[Puts, tuple[str, ...]]:
        """What an event puts, and what it drops. Raises KeyError where those before it are missing."""
        match event:
            case ClusterFormed():
                return {values.CLUSTER: encode(values.Cluster(event.cluster_id))}, ()
            case EpochRaised():
                self._starts = event.epoch
                return {values.STARTS: encode(values.Starts(event.epoch))}, ()
            case ProducerIdsReserved():
                return {values.PRODUCER_IDS: encode(values.ProducerIds(event.end))}, ()
            case JournalBegun():
                return {values.JOURNALS + event.name: encode(values.Begun())}, ()
            case CommitMarkKept():
                return {values.COMMIT_MARK: encode(values.Begun())}, ()
            case TenantSet() | TenantDeleted() | UsageNoted():
                return tenant_values.changes(event)
            case _:
                return self._translate_topic(event)

    def _translate_topic(
        self,
        event: PartitionEpochRaised
        | TopicCreated
        | PartitionsAdded
        | SettingsChanged
        | TopicDeleted
        | TopicRemoved,
    ) -> tuple[Puts, tuple[str, ...]]:
        match event:
            case TopicCreated():
                # Deleted topics were written anew without their ids.
                topic_id = uuid5(NO_TOPIC, event.name) if event.topic_id == NO_TOPIC else event.topic_id
                topic = Topic(
                    event.name,
                    topic_id,
                    event.partitions,
                    event.settings,
                    event.created_ms,
                    event.starts_before,
                )
                return {name_key(event.name): encode(topic_id), **self._put(topic)}, ()
            case PartitionsAdded():
                return self._put(replace(self._topics[event.name], partitions=event.total)), ()
            case SettingsChanged():
                return self._put(replace(self._topics[event.name], settings=event.settings)), ()
            case TopicDeleted():
                return self._put(replace(self._topics[event.name], is_deleted=True)), ()
            case TopicRemoved():
                topic = self._topics.pop(event.name)
                return {}, (name_key(event.name), topic_key(topic.topic_id))
            case PartitionEpochRaised():
                # There was one node, and nothing has ever asked for its name here.
                record = PartitionRecord(
                    leader=None, epoch=event.epoch, replicas=(), isr=(), starts=self._starts
                )
                return {part_key(self._topics[event.name].topic_id, event.partition): encode(record)}, ()

    def _put(self, topic: Topic) -> Puts:
        self._topics[topic.name] = topic
        return {topic_key(topic.topic_id): encode(topic)}
