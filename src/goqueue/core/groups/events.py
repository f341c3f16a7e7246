"""What of consumer groups must survive a restart: generations that were agreed on, and committed offsets."""

from dataclasses import dataclass

from goqueue.model.groups import Protocols, TopicOffsets
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


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    """One event a request, however many partitions it speaks of."""

    group: str
    topics: tuple[TopicOffsets, ...]


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


Event = GroupChanged | OffsetsCommitted | OffsetsDeleted | GroupDeleted | StateReset
EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (GroupChanged, OffsetsCommitted, OffsetsDeleted, GroupDeleted, StateReset)
}
