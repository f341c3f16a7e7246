"""Moving partitions between nodes in words: what is asked for, and how far it is.

What is ordered stands in the store, so any node takes an order; the one that decides carries it out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.model.cluster import MoveState, NodeId
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.places import Place, Seat
from goqueue.model.settings import MiB

THROTTLE_DEFAULT = 10 * MiB
"""Bytes a second that a node sends to those that copy what is moved to them, when nobody says."""
UNTHROTTLED = -1
TIMEOUT_DEFAULT_MS = 24 * 3_600_000


class WantedMove(NamedTuple):
    """A partition, and the nodes it is to be on."""

    source: TopicPartition
    replicas: tuple[NodeId, ...]
    """Who should lead first."""
    before: tuple[NodeId, ...] = ()
    """Where whoever orders it believes it to be; empty: he does not say."""


class WantedSpread(NamedTuple):
    """A topic whose partitions are to be spread evenly."""

    topic: TopicName
    nodes: tuple[NodeId, ...] = ()
    """Over these; empty: over all that are ready."""
    copies: int = 0
    """Of each partition; 0: as many as it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassign:
    """Move partitions to other nodes; all of them are ordered, or none."""

    moves: Sequence[WantedMove] = ()
    spreads: Sequence[WantedSpread] = ()
    throttle_bytes_per_s: int = THROTTLE_DEFAULT
    """UNTHROTTLED: as fast as it goes."""
    timeout_ms: int = TIMEOUT_DEFAULT_MS
    """For each partition, once it has begun to move."""
    replaces: bool = False
    """What is being moved already is moved here instead; else that is refused."""
    keeps_copies: bool = False
    """Refuse what would change the number of copies."""

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReassignment:
    """Let all that is not there yet stay where it was."""

    reassignment_id: str

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelMove:
    """The same for one partition, by whatever it is moved."""

    source: TopicPartition

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeReassignment:
    """How far a reassignment is."""

    reassignment_id: str

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReassignments:
    """All that are under way, and the last ones that are over."""

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMoving:
    """Partitions that are being moved, or wait for it, by order or by the cluster itself."""

    sources: Sequence[TopicPartition] | None = None
    """None: all."""

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


class Moving(NamedTuple):
    source: TopicPartition
    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeCopies:
    """How far those are that follow a partition, as its leader knows."""

    source: TopicPartition

    @property
    def place(self) -> Place:
        return self.source


class CopiesView(NamedTuple):
    start_offset: int
    end_offset: int
    ends: Mapping[NodeId, int]
    """How much each follower has on its disk."""
    sent_bytes: Mapping[NodeId, int]
    """What each was sent since it last connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveView:
    """One partition of a reassignment, and how far it is."""

    source: TopicPartition
    replicas: tuple[NodeId, ...]
    before: tuple[NodeId, ...]
    state: MoveState
    begun_ms: int
    ended_ms: int
    reason: str
    copies: CopiesView | None = None
    """None: it does not move now, or its leader does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentView:
    reassignment_id: str
    state: str
    moves: Sequence[MoveView]
    throttle_bytes_per_s: int
    timeout_ms: int
    ordered_ms: int
    ended_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decommission:
    """Move all that a node holds to others, and let it never come back."""

    node: str
    allows_fewer_copies: bool = False
    """Where the nodes that stay are fewer than the copies of a topic, go on with fewer."""
    throttle_bytes_per_s: int = THROTTLE_DEFAULT

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelDecommission:
    """Let a node stay; what has moved away does not come back by itself."""

    node: str

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDecommission:
    node: str

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DecommissionView:
    node: NodeId
    state: str
    """none, in_progress or retired."""
    holds: int
    """Partitions of which it still has a copy."""
    moving: int
    stuck: Sequence[TopicPartition] = field(default_factory=list)
    """Partitions of which it has the only copy that is in sync, while it is not alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeaders:
    """Have partitions led by who should lead them, or, unclean, by anybody who is alive."""

    sources: Sequence[TopicPartition] | None = None
    """None: all that are not led so."""
    is_unclean: bool = False
    """Where nobody leads: let a replica lead that may lack what was acknowledged. That is lost then."""
    wait_ms: int = 10_000

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


class Election(NamedTuple):
    """What came of one; None: who should lead does."""

    source: TopicPartition
    error: GoQueueError | None
