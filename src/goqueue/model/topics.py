"""Topics in words: how they look, and what is asked of them; the controller decides what changes one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from goqueue.model.cluster import NodeId, PartitionRecord
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.places import Place, Seat, TopicLeaders
from goqueue.model.settings import TopicSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    name: str
    partitions: int | None = None
    """None: the broker's default."""
    replication: int = -1
    settings: Mapping[str, str | None] = field(default_factory=dict)
    """By Kafka's names, as text: {"retention.ms": "3600000"}."""
    validate_only: bool = False
    is_own: bool = False
    """The broker needs the topic: no tenant's quotas stand in the way."""
    created_ms: int | None = None
    """When a topic that is restored was first made; None: now."""
    first_offsets: Sequence[int] = ()
    """Where the partitions of such a topic begin, one after the other; 0 where it does not say."""
    replicas: Sequence[Sequence[NodeId]] = ()
    """The nodes that are to have copies, for each partition, who leads first; none: the cluster chooses."""

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


class PartitionView(NamedTuple):
    """One of thousands, perhaps: a tuple is made in a third of the time."""

    partition: int
    start_offset: int
    end_offset: int
    size_bytes: int
    leader_epoch: int
    damage: str = ""
    """What of it is lost; then it is not written to until that is accepted."""
    record: PartitionRecord | None = None
    """Who leads it and where its copies are; None: there is one node, which has everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A topic as people and doors see it."""

    name: TopicName
    topic_id: UUID
    created_ms: int
    settings: TopicSettings
    partitions: tuple[PartitionView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingView:
    """One setting of a topic, by Kafka's name."""

    name: str
    value: str
    default: str
    is_default: bool
    documentation: str


class SettingChange(NamedTuple):
    """value None: back to the broker's default."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsureTopic:
    """A topic, created now if it is absent and the settings allow that."""

    name: str

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic:
    """Gone for everybody, then off the disk."""

    name: str

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """More partitions for a topic; those it has stay as they are."""

    name: str
    total: int
    validate_only: bool = False
    is_own: bool = False
    """The broker needs them: no tenant's quotas stand in the way."""
    replicas: Sequence[Sequence[NodeId]] = ()
    """As in CreateTopic, for each of those that are new."""

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGrowth:
    """Is a topic getting more partitions just now?"""

    name: str

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterSettings:
    """Other settings from the next append on."""

    name: str
    changes: Sequence[SettingChange]
    validate_only: bool = False

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopic:
    """A topic as it is now."""

    name: str
    only_led: bool = False
    """With those partitions alone that the node asked leads: what several nodes say is put together."""

    @property
    def place(self) -> TopicLeaders:
        return TopicLeaders((self.name,))


@dataclass(frozen=True, slots=True, kw_only=True)
class FindTopic:
    """The topic that has this id, as it is now."""

    topic_id: UUID

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTopics:
    """All topics of clients, by name."""

    only_led: bool = False
    """As of one topic."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSettings:
    """A topic's settings by Kafka's names."""

    name: str

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecords:
    """Give up all messages before an offset."""

    target: TopicPartition
    before_offset: int
    """-1: all there are."""

    @property
    def place(self) -> TopicPartition:
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactPartition:
    """Compact all of a partition that may be compacted, now."""

    target: TopicPartition
    dry_run: bool = False
    """Only tell what would go."""

    @property
    def place(self) -> TopicPartition:
        return self.target


class PartitionCompacted(NamedTuple):
    """What compaction has removed of a partition, or would remove."""

    records_before: int
    records_after: int
    dirty_ratio: float
    """How much of it no round had seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptLoss:
    """Let a damaged partition go on without what is lost."""

    target: TopicPartition
    end_offset: int = 0
    """At least here; never before an offset that it is known to have had."""

    @property
    def place(self) -> TopicPartition:
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeCopy:
    """The copy of a partition that the node asked has."""

    source: TopicPartition

    @property
    def place(self) -> Place:
        return Seat.THIS_NODE


class CopyView(NamedTuple):
    is_leader: bool
    end_offset: int
    commit_mark: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """Know of all that was agreed by a revision."""

    revision: int
    wait_ms: int

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


class LossAccepted(NamedTuple):
    """What a partition has lost, and where it begins and ends now."""

    reason: str
    lost: Sequence[tuple[int, int]]
    start_offset: int
    end_offset: int
