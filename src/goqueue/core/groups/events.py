"""What of consumer groups must survive a restart: generations that were agreed on, and committed offsets."""

from dataclasses import dataclass

from goqueue.model.groups import GroupKind, Protocols, Sharing, TopicOffsets
from goqueue.model.ids import TopicName


@dataclass(frozen=True, slots=True)
class MemberKept:
    """A member as the journal has it: enough to go on heartbeating after a restart."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupChanged:
    """A generation is complete: everyone has an assignment, or nobody is left."""

    group: str
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: tuple[MemberKept, ...]


PartitionsOf = tuple[tuple[TopicName, tuple[int, ...]], ...]
"""Partitions by topic, as the journal has them."""


@dataclass(frozen=True, slots=True)
class HolderKept:
    """A member that the broker assigns partitions to, as it has described itself."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    topics: tuple[TopicName, ...]
    pattern: str | None
    assignor: str | None
    joined_ms: int


@dataclass(frozen=True, slots=True)
class GroupAssigned:
    """What the members of a group are to have: the broker has assigned, most often in a new generation."""

    group: str
    kind: GroupKind
    sharing: Sharing
    key_order: bool
    assignor: str
    generation: int
    topics: tuple[tuple[TopicName, int], ...]
    """The topics that members subscribe to, and how many partitions each of them has."""
    came: tuple[HolderKept, ...]
    """New members, and those that describe themselves anew."""
    gone: tuple[str, ...]
    targets: tuple[tuple[str, PartitionsOf], ...]
    """Of members for whom it has changed. In a shared group everybody has everything, which is not told."""


@dataclass(frozen=True, slots=True)
class HolderMoved:
    """A member of a cooperative group has let go of partitions, taken some, or come to a new epoch."""

    group: str
    member_id: str
    epoch: int
    previous_epoch: int
    owned: PartitionsOf
    revoking: PartitionsOf


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """One event a request, however many partitions it speaks of."""

    group: str
    topics: tuple[TopicOffsets, ...]
    committed_ms: int = 0
    """The wall clock then: the offsets of a group without members are kept for a while from here on."""


@dataclass(frozen=True, slots=True)
class OffsetsReset:
    """Somebody has set where the group reads on, whatever it had done before.

    Unlike a commit it may go back: whoever keeps a state of delivery above these offsets begins anew.
    """

    group: str
    topics: tuple[TopicOffsets, ...]
    reset_ms: int


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """The group has members, so its offsets are kept for a while from here on. Noted now and then."""

    group: str
    seen_ms: int


@dataclass(frozen=True, slots=True)
class OffsetsPended:
    """Offsets that a transaction will commit, or not."""

    group: str
    producer_id: int
    topics: tuple[TopicOffsets, ...]
    transaction_id: str = ""
    """Names the transaction, where there are several nodes: a decision may come late."""


@dataclass(frozen=True, slots=True)
class PendingDropped:
    """The transaction is decided. If it was committed, its offsets stand in the event before this one."""

    group: str
    producer_id: int


@dataclass(frozen=True, slots=True)
class OffsetsDeleted:
    group: str
    topic: TopicName
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupDeleted:
    group: str


@dataclass(frozen=True, slots=True)
class StateReset:
    """Begin again from nothing: what follows is the whole state, written to keep the journal short."""


Event = (
    GroupChanged
    | GroupAssigned
    | HolderMoved
    | OffsetsCommitted
    | OffsetsReset
    | OffsetsPended
    | PendingDropped
    | OffsetsDeleted
    | GroupSeen
    | GroupDeleted
    | StateReset
)
EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        GroupChanged,
        GroupAssigned,
        HolderMoved,
        OffsetsCommitted,
        OffsetsReset,
        OffsetsPended,
        PendingDropped,
        OffsetsDeleted,
        GroupSeen,
        GroupDeleted,
        StateReset,
    )
}
