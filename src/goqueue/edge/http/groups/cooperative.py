"""Groups whose members let go of partitions one by one, over HTTP, and the figures of all rebalances.

The machine behind is the one of every group that the broker assigns to: the paths only speak of it in
other words, so a member may use these and the plain ones side by side.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from litestar import Request, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import QueryParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, seen_at_home
from goqueue.broker.groups.assigned import (
    assignment_of,
    heartbeat_assigned,
    join_assigned,
    leave_assigned,
    rebalance_stats,
    revoke_partitions,
    sharing_of,
)
from goqueue.broker.groups.verbs import describe_group
from goqueue.edge.http.groups.bodies import JoinBody, LeaveReply, MemberBody, ReconciliationWord, RevokeBody
from goqueue.edge.http.groups.cooperative_bodies import (
    AssignmentReply,
    CooperativeGroupBody,
    CooperativeHeartbeatReply,
    CooperativeJoinReply,
    CooperativeMemberBody,
    RebalanceStatsBody,
    RevokeReply,
)
from goqueue.edge.http.groups.routes import (
    TAGS,
    GroupInPath,
    decode_join,
    host_of,
    join_of,
    member_decoder,
    membership_of,
    places,
    second_or_none,
    state_word,
)
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.model.group_commands import (
    DescribeAssignment,
    DescribeGroup,
    DescribeRebalances,
    DescribeSharing,
    HeartbeatAssigned,
    LeaveAssigned,
    RevokePartitions,
)
from goqueue.model.groups import Membership, MemberView, RebalanceStats, Sharing
from goqueue.model.ids import TopicName, TopicPartition

_revoke_decoder = msgspec.json.Decoder(RevokeBody)


@post(
    "/groups/{group:str}/join/cooperative",
    status_code=200,
    operation_id="joinCooperatively",
    summary="Become a member of a group in which a partition stays with its owner until that lets go",
    tags=TAGS,
    operation_class=takes(JoinBody),
    responses=errors(400, 403, 404, 409, 413, 429, 503, 507),
)
async def join_cooperatively_route(
    request: Request[object, object, State],
    broker: NamedDependency[Broker],
    group: GroupInPath,
    body: RawBody,
) -> CooperativeJoinReply:
    command = join_of(group, decode_join(body), host_of(request), Sharing.COOPERATIVE)
    joined = await at_home(broker, join_assigned, command)
    return CooperativeJoinReply(
        member_id=joined.member_id,
        generation=joined.generation,
        leader_id=joined.leader_id,
        members=list(joined.members),
        partitions=places(joined.partitions),
    )


@post(
    "/groups/{group:str}/heartbeat/cooperative",
    status_code=200,
    operation_id="heartbeatCooperatively",
    summary="A sign of life; hears what to let go of and what it may read",
    tags=TAGS,
    operation_class=takes(MemberBody),
    responses=errors(400, 403, 404, 409, 413, 503, 507),
)
async def heartbeat_cooperatively_route(
    broker: NamedDependency[Broker], group: GroupInPath, body: RawBody
) -> CooperativeHeartbeatReply:
    told = await at_home(
        broker, heartbeat_assigned, HeartbeatAssigned(membership_of(group, decode(member_decoder, body)))
    )
    return CooperativeHeartbeatReply(
        generation=told.generation,
        rebalance_required=told.is_rebalancing,
        state=told.state.value,
        protocol=await _protocol_of(broker, group),
        partitions_to_revoke=places(told.to_revoke),
        partitions_assigned=places(told.assigned),
        revocation_deadline=second_or_none(told.revocation_deadline_ms),
    )


@post(
    "/groups/{group:str}/revoke",
    status_code=200,
    operation_id="revokePartitions",
    summary="Say what was let go of, so that its next owner can have it",
    tags=TAGS,
    operation_class=takes(RevokeBody),
    responses=errors(400, 403, 404, 409, 413, 503, 507),
)
async def revoke_route(broker: NamedDependency[Broker], group: GroupInPath, body: RawBody) -> RevokeReply:
    given = decode(_revoke_decoder, body)
    who = Membership(group, given.member_id, max(given.generation or 0, 0))
    revoked = [TopicPartition(TopicName(p.topic), p.partition) for p in given.revoked_partitions]
    told = await at_home(broker, revoke_partitions, RevokePartitions(who=who, revoked=revoked))
    return RevokeReply(told.generation, len(told.to_revoke), told.state.value)


@post(
    "/groups/{group:str}/leave/cooperative",
    status_code=200,
    operation_id="leaveCooperatively",
    summary="Go for good",
    tags=TAGS,
    operation_class=takes(MemberBody),
    responses=errors(400, 403, 404, 409, 413, 503, 507),
)
async def leave_cooperatively_route(
    broker: NamedDependency[Broker], group: GroupInPath, body: RawBody
) -> LeaveReply:
    await at_home(
        broker, leave_assigned, LeaveAssigned(group=group, member_id=decode(member_decoder, body).member_id)
    )
    return LeaveReply()


@get(
    "/groups/{group:str}/assignment",
    operation_id="memberAssignment",
    summary="What a member may read from now",
    tags=TAGS,
    responses=errors(400, 403, 404, 409, 503),
)
async def assignment_route(
    broker: NamedDependency[Broker],
    group: GroupInPath,
    member_id: Annotated[str, QueryParameter(min_length=1, description="Whose.")],
) -> AssignmentReply:
    command = DescribeAssignment(group=group, member_id=member_id)
    member = await seen_at_home(broker, assignment_of, command)
    return AssignmentReply(member.member_id, member.generation, places(member.partitions))


@get(
    "/groups/{group:str}/cooperative",
    operation_id="describeCooperatively",
    summary="A group as its rebalances see it",
    tags=TAGS,
    responses=errors(400, 403, 404, 503),
)
async def describe_cooperatively_route(
    broker: NamedDependency[Broker], group: GroupInPath
) -> CooperativeGroupBody:
    view = await seen_at_home(broker, describe_group, DescribeGroup(group=group))
    stats = await seen_at_home(broker, rebalance_stats, DescribeRebalances(group=group))
    return CooperativeGroupBody(
        id=view.name,
        state=state_word(view.state),
        generation=view.generation,
        protocol=await _protocol_of(broker, group),
        assignment_strategy=view.protocol,
        rebalance_state=_rebalance_state(view.members),
        topics=sorted({topic for member in view.members for topic in member.topics}),
        members=[
            CooperativeMemberBody(
                id=member.member_id,
                client_id=member.client_id,
                assigned_partitions=places(member.partitions),
                joined_at=second_or_none(member.joined_ms),
                last_heartbeat=second_or_none(member.last_heartbeat_ms),
            )
            for member in view.members
        ],
        member_assignments={member.member_id: places(member.partitions) for member in view.members},
        rebalance_metrics=_stats_body(stats),
    )


@get(
    "/groups/{group:str}/rebalance/stats",
    operation_id="groupRebalances",
    summary="How often a group was assigned anew, why, and how long it took",
    tags=TAGS,
    responses=errors(400, 403, 404, 503),
)
async def group_rebalances_route(broker: NamedDependency[Broker], group: GroupInPath) -> RebalanceStatsBody:
    return _stats_body(await seen_at_home(broker, rebalance_stats, DescribeRebalances(group=group)))


@get(
    "/rebalance/stats",
    operation_id="allRebalances",
    summary="The same over all groups",
    tags=TAGS,
    responses=errors(503),
)
async def all_rebalances_route(broker: NamedDependency[Broker]) -> RebalanceStatsBody:
    return _stats_body(await seen_at_home(broker, rebalance_stats, DescribeRebalances()))


async def _protocol_of(broker: Broker, group: str) -> str:
    known = await seen_at_home(broker, sharing_of, DescribeSharing(group=group))
    return "classic" if known is None else known[0].value


def _rebalance_state(members: Sequence[MemberView]) -> ReconciliationWord:
    """Whether somebody is still to let go of something, or to take something."""
    if any(set(member.partitions) - set(member.target) for member in members):
        return "pending_revoke"
    if any(set(member.target) - set(member.partitions) for member in members):
        return "pending_assign"
    return "none"


def _stats_body(stats: RebalanceStats) -> RebalanceStatsBody:
    return RebalanceStatsBody(
        total_rebalances=stats.total,
        successful_rebalances=stats.successful,
        failed_rebalances=stats.failed,
        total_partitions_revoked=stats.partitions_revoked,
        total_partitions_assigned=stats.partitions_assigned,
        total_revocation_timeouts=stats.revocation_timeouts,
        last_rebalance_duration_ms=stats.last_duration_ms,
        average_rebalance_duration_ms=stats.average_duration_ms,
        rebalances_by_reason=dict(stats.by_reason),
        last_rebalance_at=second_or_none(stats.last_ms),
    )


ROUTES = [
    join_cooperatively_route,
    heartbeat_cooperatively_route,
    revoke_route,
    leave_cooperatively_route,
    assignment_route,
    describe_cooperatively_route,
    group_rebalances_route,
    all_rebalances_route,
]
