"""Consumer groups in words: what members ask, what they hear back, and how a group looks from outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from goqueue.model.ids import TopicName

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


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """Become a member, or take part in the next generation as one. Waits for the others."""

    group: str
    member_id: str = ""
    """Empty: a new member."""
    instance_id: str | None = None
    """The name of a static member: it keeps its place when it comes back under a new member id."""
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    is_id_required: bool = False
    """The client can be sent back for a member id, so that one which gives up leaves no ghost behind."""
    may_skip_assignment: bool = False
    """The client understands a leader that need not assign anything."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroup:
    """Learn one's assignment; the leader brings everybody's."""

    group: str
    member_id: str
    instance_id: str | None = None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()


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


class PartitionLag(NamedTuple):
    """How far a group is behind in a partition; end offset and lag are -1 when they cannot be told."""

    topic: TopicName
    partition: int
    committed_offset: int
    end_offset: int
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group as people and doors see it."""

    name: str
    state: GroupState
    generation: int
    protocol_type: str
    protocol: str
    members: tuple[MemberView, ...]
    lags: tuple[PartitionLag, ...] = ()


class GroupListing(NamedTuple):
    name: str
    state: GroupState
    protocol_type: str
