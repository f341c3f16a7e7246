"""The JSON of consumer groups over HTTP: what members and administrators ask, and what they hear back.

Existing clients and the first server disagreed on many names; replies hold both where their types allow.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from goqueue.wire.pages import Next

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
OffsetMap = dict[str, dict[str, Annotated[int, _INT64]]]
"""Topic, then the partition's number as text, then an offset."""


class PlaceBody(Struct):
    """A partition of a topic."""

    topic: str
    partition: _PartitionNumber


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


class GroupSummary(Struct):
    id: str
    state: StateWord
    members: int
    generation: int
    topics: list[str]
    kind: KindWord


class GroupList(Struct, omit_defaults=True):
    """Names for clients, and more of each for people."""

    groups: list[str]
    details: list[GroupSummary]
    next: Next = None


class GroupMemberBody(Struct, omit_defaults=True):
    id: str
    member_id: str
    client_id: str
    client_host: str
    assigned_partitions: list[str]
    partitions: list[str]
    assignment: list[PlaceBody]
    joined_at: str | None = None
    last_heartbeat: str | None = None


class OpenTransactionBody(Struct):
    """A transaction that readers of committed messages wait for; POST /transactions/{id}/abort ends it."""

    transaction_id: str
    transactional_id: str
    producer_id: int
    epoch: int
    first_offset: Annotated[int, Meta(description="Where it begins: nothing is read from here on.")]
    started_at: str
    open_seconds: float


class PartitionLagBody(Struct, omit_defaults=True):
    """How far behind; -1 stands for what cannot be told, or was never committed."""

    topic: str
    partition: int
    offset: int
    end_offset: int
    lag: int
    lag_seconds: float
    held_back_by: (
        Annotated[OpenTransactionBody, Meta(description="The oldest transaction open there; absent: none.")]
        | None
    ) = None


class LagBody(Struct):
    """Messages that are there to be read, and how long ago the first of them was stored."""

    group: str
    group_id: str
    total: int
    max_seconds: float
    partitions: list[PartitionLagBody]


class PassedOverBody(Struct):
    """Messages that a queue group had to leave out, because nobody can read them: see the log."""

    topic: str
    partition: int
    first_offset: int
    end_offset: Annotated[int, Meta(description="The first offset behind them.")]
    reason: str
    at: str


class GroupBody(Struct, omit_defaults=True):
    """A group, its members, and how far it is behind."""

    id: str
    group_id: str
    state: StateWord
    generation: int
    kind: KindWord
    protocol: str
    topics: list[str]
    members: list[GroupMemberBody]
    lag: LagBody
    mode: ModeWord | None = None
    key_order: bool = False
    passed_over: list[PassedOverBody] = []


class GroupDeletedReply(Struct):
    group: str
    group_id: str
    deleted: Literal[True] = True


class OffsetRefused(Struct):
    """Why one offset was not taken."""

    topic: str
    partition: int
    error: str
    code: str


class CommitOffsetsReply(Struct, omit_defaults=True):
    """What was committed; `errors` has what was not."""

    status: str
    committed: bool
    group: str
    offsets: OffsetMap
    errors: list[OffsetRefused] = []


class OffsetsOfGroup(Struct, omit_defaults=True):
    """Committed offsets, under both names that clients know. A group that is not known has none."""

    group_id: str
    topics: OffsetMap
    offsets: OffsetMap
    generation: int | None = None
    updated_at: str | None = None


class OffsetResetBody(Struct):
    topic: str
    partition: int
    old_offset: Annotated[int, Meta(description="-1: none was committed.")]
    new_offset: int


class ResetOffsetsReply(Struct):
    """Where the group was and where it reads on, or would after a dry run."""

    group_id: str
    dry_run: bool
    reset_count: int
    partitions: list[OffsetResetBody]
    new_offsets: OffsetMap
