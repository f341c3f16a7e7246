"""Consumer groups in words: what members ask, what they hear back, and how a group looks from outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.transactions import OpenTransaction

Protocols = tuple[tuple[str, bytes], ...]
"""Ways to assign that a member knows, the best first, each with bytes that only members understand."""

NO_GENERATION = -1
"""The generation of a reader that keeps its offsets with a group without being a member of it."""


class GroupState(Enum):
    """The states of a group, by the names that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    RECONCILING = "Reconciling"


class GroupKind(Enum):
    """How members of a group come to their partitions, and through which door they came."""

    CLASSIC = "classic"
    """A leader among the members assigns."""
    CONSUMER = "consumer"
    """The broker assigns, to clients of Kafka (`group.protocol=consumer`)."""
    HTTP = "http"
    """The broker assigns, to members that came over HTTP."""
    SHARE = "share"
    """All members take from all partitions, by leases: clients of Kafka that are share consumers."""


class Sharing(Enum):
    """How the members of a group share partitions that the broker assigns."""

    EAGER = "eager"
    """Everybody has its new partitions at once, under a new generation; the old one is refused."""
    COOPERATIVE = "cooperative"
    """A partition stays with its owner until the owner lets go."""
    SHARED = "shared"
    """Every member may take from every partition."""


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A place in a generation. `members` is for the leader alone, who assigns."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: tuple[JoinedMember, ...] = ()
    skips_assignment: bool = False


class Synced(NamedTuple):
    protocol_type: str
    protocol: str
    assignment: bytes


class Membership(NamedTuple):
    """Who speaks, and in which generation it believes to be."""

    group: str
    member_id: str
    generation: int
    instance_id: str | None = None


class Leaver(NamedTuple):
    """Who is to leave: by member id, or a static member by its instance id alone."""

    member_id: str
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedMember:
    """A member of such a group, and what it may read from now."""

    member_id: str
    generation: int
    leader_id: str
    """Who has been there longest. It leads nothing here; clients like to know."""
    partitions: tuple[TopicPartition, ...]
    members: tuple[str, ...]
    is_rebalancing: bool
    """Somebody is still to let go of a partition, or to take one."""


class ReconciliationState(Enum):
    """Where a member stands on the way to what it is to have."""

    NONE = "none"
    """It has what it is to have, and so has everybody."""
    PENDING_REVOKE = "pending_revoke"
    """It is to let go of partitions."""
    PENDING_ASSIGN = "pending_assign"
    """It waits for others to let go of partitions."""
    COMPLETE = "complete"
    """It has just come to have what it is to have, or others are not there yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """What a member hears back when it says what it has."""

    member_id: str
    generation: int
    state: ReconciliationState
    to_revoke: tuple[TopicPartition, ...]
    assigned: tuple[TopicPartition, ...]
    """All that it may read from now, but for what it is to let go of."""
    has_changed: bool
    """Whether `assigned` is other than it was."""
    revocation_deadline_ms: int | None
    """The wall clock when what is to be let go of is taken away; None when there is nothing."""
    is_rebalancing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceStats:
    """How often partitions were assigned anew since the broker began, why, and how it went."""

    total: int = 0
    successful: int = 0
    failed: int = 0
    """Rebalances in which a member had to be made to let go."""
    partitions_revoked: int = 0
    partitions_assigned: int = 0
    revocation_timeouts: int = 0
    last_duration_ms: int = 0
    average_duration_ms: float = 0.0
    last_ms: int | None = None
    """The wall clock when the last one began."""
    by_reason: Mapping[str, int] = field(default_factory=dict)
    """member_joined, member_left, member_expired, subscription_changed, topics_changed."""


OffsetRow = tuple[int, int, int, str]
"""Partition, committed offset, leader epoch (-1: not told), metadata. Plain: they come by the hundred."""


class TopicCommit(NamedTuple):
    topic: TopicName
    rows: Sequence[OffsetRow]


class TopicOffsets(NamedTuple):
    """Committed offsets of a topic. The id tells it from a later topic of the same name."""

    topic: TopicName
    topic_id: UUID
    rows: tuple[OffsetRow, ...]
    ahead: tuple[int, ...] = ()
    """Partitions whose offset was merely named: nobody had been shown so much of them then."""


class PartitionLag(NamedTuple):
    """How far a group is behind in a partition; -1 stands for what cannot be told, or was never committed."""

    topic: TopicName
    partition: int
    committed_offset: int
    end_offset: int
    lag: int
    """Messages that are there to be read."""
    lag_ms: int
    """How long ago the first of them was stored; 0 when there is none."""
    held_back_by: OpenTransaction | None = None
    """The oldest transaction open in the partition: who reads committed messages waits for its end."""


class GroupLag(NamedTuple):
    """How far a group is behind, partition by partition."""

    group: str
    partitions: tuple[PartitionLag, ...]

    @property
    def total(self) -> int:
        """Messages over all partitions."""
        return sum(max(partition.lag, 0) for partition in self.partitions)

    @property
    def ms_max(self) -> int:
        """How long the message that waits longest has waited."""
        return max((partition.lag_ms for partition in self.partitions), default=0)


class OffsetReset(NamedTuple):
    topic: TopicName
    partition: int
    old_offset: int
    """-1: none was committed."""
    new_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    """Classic members: what they tell the leader, and what it tells them."""
    assignment: bytes = b""
    epoch: int = 0
    """Members the broker assigns to: the generation they have come to."""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    """What it may read from now."""
    target: tuple[TopicPartition, ...] = ()
    """What it is to have in the end."""
    joined_ms: int | None = None
    last_heartbeat_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group as people and doors see it."""

    name: str
    kind: GroupKind
    state: GroupState
    generation: int
    protocol_type: str
    protocol: str
    """How partitions are assigned: by the protocol of the leader, or by an assignor of the broker."""
    members: tuple[MemberView, ...]
    sharing: Sharing | None = None
    """None: a classic group."""
    key_order: bool = False
    seen_ms: int = 0
    """The wall clock when it last committed, or was last noted to have members; 0: not known."""
    committed_topics: tuple[TopicName, ...] = ()
    """Topics that it has offsets of."""


class GroupListing(NamedTuple):
    name: str
    state: GroupState
    protocol_type: str
    kind: GroupKind = GroupKind.CLASSIC
