"""The JSON of consumer groups over HTTP: what members and administrators ask, and what they hear back.

Existing clients and the first server disagreed on many names; replies hold both where their types allow.
"""

from collections.abc import Sequence
from typing import Annotated, Generic, Literal

from msgspec import Meta, Struct

from goqueue.wire import groups as wire
from goqueue.wire.pages import Next
from goqueue.wire.times import Time

_INT32 = Meta(ge=-(2**31), le=2**31 - 1)
_INT64 = Meta(ge=-(2**63), le=2**63 - 1)
_NOT_EMPTY = Meta(min_length=1)
_PartitionNumber = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Duration = (
    Annotated[str, Meta(description='Like "30s".')] | Annotated[int, _INT64, Meta(description="In ms.")]
)

ModeWord = Literal["eager", "cooperative", "shared"]
KindWord = Literal["classic", "consumer", "http", "share"]
StateWord = Literal["empty", "stable", "rebalancing", "dead"]
ReconciliationWord = Literal["none", "pending_revoke", "pending_assign", "complete"]
OffsetMap = wire.OffsetMap


PlaceBody = wire.Place


class OffsetBody(Struct):
    """An offset in a partition of a topic."""

    topic: str
    partition: Annotated[int, _INT32]
    offset: Annotated[int, _INT64]


class JoinBody(Struct):
    """Become a member, or come back as one."""

    client_id: Annotated[str, _NOT_EMPTY]
    topics: Annotated[list[str], Meta(min_length=1)]
    member_id: Annotated[str, Meta(description="Of a member that comes back.")] | None = None
    mode: (
        Annotated[
            ModeWord,
            Meta(description="How members share partitions; the first member chooses, eager by default."),
        ]
        | None
    ) = None
    key_order: (
        Annotated[bool, Meta(description="Shared groups: one member at a time for messages of a key.")] | None
    ) = None
    assignor: Annotated[str, Meta(description="sticky, range or roundrobin.")] | None = None
    session_timeout: _Duration | None = None
    rebalance_timeout: _Duration | None = None
    protocol: Annotated[str, Meta(description="Not looked at: the path says it.")] | None = None


class MemberBody(Struct):
    """Who speaks, and in which generation it believes to be; 0 or absent: it does not know."""

    member_id: Annotated[str, _NOT_EMPTY]
    generation: Annotated[int, _INT32] | None = None


class RevokeBody(Struct):
    """What a member has let go of."""

    member_id: Annotated[str, _NOT_EMPTY]
    revoked_partitions: list[PlaceBody]
    generation: Annotated[int, _INT32] | None = None


class CommitOffsetsBody(Struct):
    """How far a member has read, or, without a member id, a reader that keeps its offsets with the group."""

    offsets: Annotated[
        OffsetMap | list[OffsetBody],
        Meta(description="By topic and partition, or one by one. Negative ones are passed over."),
    ]
    member_id: str | None = None
    generation: Annotated[int, _INT32] | None = None


class ResetOffsetsBody(Struct):
    """Where the group is to read on; `to` alone, or `strategy` with `timestamp`."""

    to: (
        Annotated[
            str | Annotated[int, _INT64] | OffsetMap | list[OffsetBody],
            Meta(description="earliest, latest, a time (RFC 3339, or unix ms), or offsets as in a commit."),
        ]
        | None
    ) = None
    strategy: Literal["earliest", "latest", "timestamp"] | None = None
    timestamp: str | Annotated[int, _INT64] | None = None
    topics: Annotated[list[str], Meta(description="Absent: all it has committed for.")] | None = None
    topic: str | None = None
    partition: Annotated[int, _INT32, Meta(description="This one alone; -1: all.")] | None = None
    dry_run: bool | None = False
    force: Annotated[bool | None, Meta(description="Also while the group has members.")] = False


class JoinReply(Struct):
    """A place in the group. `leader` is the member's own id when it has been there longest, else empty."""

    member_id: str
    generation: int
    leader_id: str
    leader: str
    partitions: Annotated[list[int], Meta(description="Numbers alone; assignment has the topics too.")]
    assigned_partitions: Annotated[list[str], Meta(description="Like orders-0.")]
    assignment: list[PlaceBody]
    members: list[str]
    rebalance_required: bool
    mode: ModeWord


class HeartbeatReply(Struct):
    generation: int
    rebalance_required: bool
    state: StateWord
    status: Literal["ok"] = "ok"


class LeaveReply(Struct):
    status: Literal["left"] = "left"
    left: Literal[True] = True


GroupSummary = wire.GroupSummary


class GroupList(Struct, omit_defaults=True):
    """Names for clients, and more of each for people."""

    groups: list[str]
    details: list[GroupSummary]
    next: Next = None


class GroupMemberBody(wire.GroupMember[Time], Generic[Time], frozen=True, kw_only=True, omit_defaults=True):
    id: str
    assigned_partitions: list[str]
    partitions: list[str]


OpenTransactionBody = wire.OpenTransaction[str]


class LagBody(wire.GroupLag[Time], Generic[Time], frozen=True, kw_only=True):
    """Messages that are there to be read, and how long ago the first of them was stored."""

    group: str


PassedOverBody = wire.PassedOver[str]


class GroupBody(wire.Group[Time], Generic[Time], frozen=True, kw_only=True):
    """A group, its members, and how far it is behind."""

    id: str
    members: Sequence[GroupMemberBody[Time]]
    lag: LagBody[Time]


class GroupDeletedReply(Struct):
    group: str
    group_id: str
    deleted: Literal[True] = True


OffsetRefused = wire.OffsetRefused


class CommitOffsetsReply(wire.OffsetsCommitted, frozen=True, kw_only=True):
    """What was committed; `errors` has what was not."""

    status: str
    committed: bool
    group: str


class OffsetsOfGroup(wire.GroupOffsets[Time], Generic[Time], frozen=True, kw_only=True):
    """Committed offsets, under both names that clients know. A group that is not known has none."""

    topics: wire.OffsetMap


OffsetResetBody = wire.OffsetReset


class ResetOffsetsReply(wire.OffsetsReset, frozen=True, kw_only=True):
    """Where the group was and where it reads on, or would after a dry run."""

    new_offsets: wire.OffsetMap
