"""Consumer groups from outside: who is in them, how far they are, and where they go on."""

from collections.abc import Sequence
from typing import Annotated, Generic

from msgspec import Meta, Struct

from goqueue.wire.times import Time

OffsetMap = dict[str, dict[str, Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]]]
"""Topic, then the partition's number as text, then an offset."""
_State = Annotated[str, Meta(description="empty, stable, rebalancing or dead.")]
_Kind = Annotated[str, Meta(description="classic, consumer, http or share.")]


class GroupSummary(Struct, frozen=True):
    id: str
    state: _State
    members: int
    generation: int
    topics: list[str]
    kind: _Kind


class Place(Struct, frozen=True):
    """A partition of a topic."""

    topic: str
    partition: Annotated[int, Meta(ge=0, le=2**31 - 1)]


class GroupMember(Struct, Generic[Time], frozen=True):
    member_id: str
    client_id: str
    client_host: str
    assignment: list[Place]
    joined_at: Time | None = None
    last_heartbeat: Time | None = None


class OpenTransaction(Struct, Generic[Time], frozen=True):
    """A transaction that readers of committed messages wait for; POST /transactions/{id}/abort ends it."""

    transaction_id: str
    transactional_id: str
    producer_id: int
    epoch: int
    first_offset: Annotated[int, Meta(description="Where it begins: nothing is read from here on.")]
    started_at: Time
    open_seconds: float


class PartitionLag(Struct, Generic[Time], frozen=True, omit_defaults=True):
    """How far behind; -1 stands for what cannot be told, or was never committed."""

    topic: str
    partition: int
    offset: int
    end_offset: int
    lag: int
    lag_seconds: float
    held_back_by: OpenTransaction[Time] | None = None
    """The oldest transaction open there; absent: none."""


class GroupLag(Struct, Generic[Time], frozen=True):
    """Messages that are there to be read, and how long ago the first of them was stored."""

    group_id: str
    total: int
    max_seconds: float
    partitions: list[PartitionLag[Time]]


class PassedOver(Struct, Generic[Time], frozen=True):
    """Messages that a queue group had to leave out, because nobody can read them: see the log."""

    topic: str
    partition: int
    first_offset: int
    end_offset: Annotated[int, Meta(description="The first offset behind them.")]
    reason: str
    at: Time


class Group(Struct, Generic[Time], frozen=True, omit_defaults=True):
    """A group, its members, and how far it is behind."""

    group_id: str
    state: _State
    generation: int
    kind: _Kind
    protocol: str
    topics: list[str]
    members: Sequence[GroupMember[Time]]
    lag: GroupLag[Time]
    mode: Annotated[str, Meta(description="eager, cooperative or shared.")] | None = None
    key_order: bool = False
    passed_over: list[PassedOver[Time]] = []


class GroupOffsets(Struct, Generic[Time], frozen=True, omit_defaults=True):
    """How far a group has read: the offsets it reads next. A group that is not known has none."""

    group_id: str
    offsets: OffsetMap
    generation: int | None = None
    updated_at: Time | None = None


class OffsetRefused(Struct, frozen=True):
    """Why one offset was not taken."""

    topic: str
    partition: int
    error: str
    code: str


class OffsetsCommitted(Struct, frozen=True, omit_defaults=True):
    """What was committed; `errors` has what was not."""

    offsets: OffsetMap
    errors: list[OffsetRefused] = []


class OffsetReset(Struct, frozen=True):
    topic: str
    partition: int
    old_offset: Annotated[int, Meta(description="-1: none was committed.")]
    new_offset: int


class OffsetsReset(Struct, frozen=True):
    """Where the group was and where it reads on, or would after a dry run."""

    group_id: str
    dry_run: bool
    reset_count: int
    partitions: list[OffsetReset]
