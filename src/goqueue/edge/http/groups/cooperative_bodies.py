"""The JSON of groups whose members let go of partitions one by one, and of their rebalances."""

from typing import Literal

from msgspec import Struct

from goqueue.edge.http.groups.bodies import PlaceBody, ReconciliationWord, StateWord


class CooperativeJoinReply(Struct):
    """A place in the group. What the member may read it hears with its next heartbeat, and here already."""

    member_id: str
    generation: int
    leader_id: str
    members: list[str]
    partitions: list[PlaceBody]
    protocol: str = "cooperative"
    rebalance_required: Literal[True] = True


class CooperativeHeartbeatReply(Struct, omit_defaults=True):
    """What the member may read, and what it is to let go of, by when at the latest."""

    generation: int
    rebalance_required: bool
    state: ReconciliationWord
    protocol: str
    partitions_to_revoke: list[PlaceBody] = []
    partitions_assigned: list[PlaceBody] = []
    revocation_deadline: str | None = None


class RevokeReply(Struct):
    generation: int
    pending_count: int
    rebalance_state: ReconciliationWord
    status: Literal["acknowledged"] = "acknowledged"


class AssignmentReply(Struct):
    member_id: str
    generation: int
    partitions: list[PlaceBody]


class RebalanceStatsBody(Struct, omit_defaults=True):
    """Rebalances since the broker began."""

    total_rebalances: int
    successful_rebalances: int
    failed_rebalances: int
    total_partitions_revoked: int
    total_partitions_assigned: int
    total_revocation_timeouts: int
    last_rebalance_duration_ms: int
    average_rebalance_duration_ms: float
    rebalances_by_reason: dict[str, int]
    last_rebalance_at: str | None = None


class CooperativeMemberBody(Struct, omit_defaults=True):
    id: str
    client_id: str
    assigned_partitions: list[PlaceBody]
    joined_at: str | None = None
    last_heartbeat: str | None = None


class CooperativeGroupBody(Struct):
    """A group as its rebalances see it."""

    id: str
    state: StateWord
    generation: int
    protocol: str
    assignment_strategy: str
    rebalance_state: ReconciliationWord
    topics: list[str]
    members: list[CooperativeMemberBody]
    member_assignments: dict[str, list[PlaceBody]]
    rebalance_metrics: RebalanceStatsBody
