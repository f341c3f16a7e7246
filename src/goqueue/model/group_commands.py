"""What is asked of consumer groups, one command a verb; nearly all at home with the group's coordinator."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.model.commands import Spot
from goqueue.model.groups import Leaver, Membership, Protocols, Sharing, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.places import GroupCoordinator, GroupCoordinators, Place, Seat


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCommand:
    """What one group is asked."""

    group: str

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup(GroupCommand):
    """Become a member, or take part in the next generation as one. Waits for the others."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroup(GroupCommand):
    """Learn one's assignment; the leader brings everybody's."""

    member_id: str
    instance_id: str | None = None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAssigned(GroupCommand):
    """Become a member of a group whose partitions the broker assigns, or come back as one."""

    client_id: str
    client_host: str = ""
    topics: Sequence[str]
    sharing: Sharing = Sharing.EAGER
    assignor: str = "sticky"
    """`sticky`, `range` or `roundrobin`. The first member chooses for all."""
    member_id: str = ""
    """Empty: a new member. An id that the group no longer knows joins as a new one, too."""
    session_timeout_ms: int = 30_000
    rebalance_timeout_ms: int = 60_000
    """How long a member may take to let go of partitions that another one is to have."""
    key_order: bool = False
    """Shared groups: messages of one key go to one member at a time, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat(GroupCommand):
    """A member of Kafka's newer protocol speaks: it joins, says what it has, or leaves. None: as before."""

    member_id: str
    epoch: int
    """0 to join, -1 to leave, -2 to stop for a while as a static member; else the one it is in."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int | None = None
    topics: Sequence[str] | None = None
    pattern: str | None = None
    """Topics by regular expression; empty: no longer."""
    assignor: str | None = None
    owned: Sequence[TopicPartition] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeat(GroupCommand):
    """A share consumer speaks: it joins, is still there, or leaves."""

    member_id: str
    epoch: int
    """0 to join, -1 to leave; else the one it was told."""
    client_id: str = ""
    client_host: str = ""
    topics: Sequence[str] | None = None
    """None: as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOffsets(GroupCommand):
    """Set where a group reads on: in each partition at a spot or a time, or at offsets given one by one."""

    topics: Sequence[str] | None = None
    """None: all that the group has committed for."""
    partition: int | None = None
    """Of each topic, this one alone."""
    spot: Spot | int = Spot.EARLIEST
    """A named spot, or the first message of a time (unix ms) or later."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Given: they alone count."""
    is_dry_run: bool = False
    is_forced: bool = False
    """Also while the group has members."""


class Heartbeat(NamedTuple):
    """A sign of life of a member whose leader assigns."""

    who: Membership

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.who.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroup(GroupCommand):
    """Members go for good."""

    leavers: Sequence[Leaver]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup(GroupCommand):
    """Forget a group without members, its offsets included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisbandGroup(GroupCommand):
    """Send its HTTP members away, and forget it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroup(GroupCommand):
    """A group as it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroups:
    """Several groups as they are now."""

    groups: Sequence[str]

    @property
    def place(self) -> GroupCoordinators:
        return GroupCoordinators(self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroups:
    """All groups, by name."""

    with_own: bool = False
    """The broker's own as well, in whose names it sends dead letters back."""
    journals: Sequence[int] | None = None
    """Those alone that are kept there, of which the node asked must be the leader; None: all it knows."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


class HeartbeatAssigned(NamedTuple):
    """A sign of life of a member that the broker assigns to. Generation 0 is not checked."""

    who: Membership

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.who.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokePartitions:
    """A member has let go of partitions."""

    who: Membership
    revoked: Sequence[TopicPartition]

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.who.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveAssigned(GroupCommand):
    """A member that the broker assigns to goes for good."""

    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAssignment(GroupCommand):
    """A member and what it may read from now."""

    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSharing(GroupCommand):
    """How the members of a group share partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeRebalances:
    """How often partitions were assigned anew, in one group, or over all there are and were."""

    group: str | None = None

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE if self.group is None else GroupCoordinator(self.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLag(GroupCommand):
    """How far a group is behind in each of its partitions."""


class CommitOffsets(NamedTuple):
    """How far a group has read. Hot, so a tuple."""

    who: Membership
    commits: Sequence[TopicCommit]

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.who.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOffsets(GroupCommand):
    """What a group has committed."""

    wanted: Sequence[tuple[TopicName, Sequence[int]]] | None
    """Partitions by topic; None: all there is."""
    who: Membership | None = None
    """A member that says who it is must know its epoch, if the broker assigns to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListUnstable(GroupCommand):
    """Partitions whose offset an open transaction may change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOffsets(GroupCommand):
    """Forget offsets of topics that no member is subscribed to."""

    unwanted: Sequence[tuple[TopicName, Collection[int]]]
