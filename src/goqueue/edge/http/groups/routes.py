"""Consumer groups over HTTP: join, heartbeat and leave for members; list, describe and delete for people."""

from collections.abc import Iterable
from itertools import starmap
from typing import Annotated

import msgspec
from litestar import Request, delete, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, seen_at_home
from goqueue.broker.groups.assigned import heartbeat_assigned, join_assigned, leave_assigned
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.groups.verbs import describe_group, describe_groups, disband_group, list_groups
from goqueue.broker.queue.stats import passed_over
from goqueue.broker.slices import Slices
from goqueue.edge.http.groups.bodies import (
    GroupBody,
    GroupDeletedReply,
    GroupList,
    GroupMemberBody,
    GroupSummary,
    HeartbeatReply,
    JoinBody,
    JoinReply,
    LeaveReply,
    MemberBody,
    PassedOverBody,
    PlaceBody,
    StateWord,
)
from goqueue.edge.http.groups.lag import lag_body
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.paging import ALL, After, Limit, names_in_page
from goqueue.edge.http.parts.times import format_second, format_time, parse_duration_ns
from goqueue.model.delivery import ListPassed
from goqueue.model.group_commands import (
    DescribeGroup,
    DescribeGroups,
    DescribeLag,
    DisbandGroup,
    HeartbeatAssigned,
    JoinAssigned,
    LeaveAssigned,
    ListGroups,
)
from goqueue.model.groups import GroupState, GroupView, Membership, MemberView, Sharing
from goqueue.model.ids import TopicPartition

_join_decoder = msgspec.json.Decoder(JoinBody)
member_decoder = msgspec.json.Decoder(MemberBody)
TAGS = ["groups"]
SESSION_TIMEOUT_MS = 30_000
REBALANCE_TIMEOUT_MS = 60_000
_STATE_WORDS: dict[GroupState, StateWord] = {
    GroupState.EMPTY: "empty",
    GroupState.STABLE: "stable",
    GroupState.DEAD: "dead",
}
"""All others are on the way from one assignment to the next."""

GroupInPath = Annotated[str, PathParameter(description="The group's name.")]


@get("/groups", operation_id="listGroups", summary="All groups", tags=TAGS, responses=errors(400, 503))
async def list_groups_route(
    broker: NamedDependency[Broker],
    internal: Annotated[
        bool,
        QueryParameter(description="With the broker's own, in whose names it sends dead letters back."),
    ] = False,
    limit: Limit = ALL,
    after: After = None,
) -> GroupList:
    listings = await seen_at_home(broker, list_groups, ListGroups(with_own=internal))
    page = names_in_page([listing.name for listing in listings], limit, after)
    views = await at_home(broker, describe_groups, DescribeGroups(groups=page.rows))
    summaries = await Slices(broker.clock).each(views, _summary_of)
    return GroupList([summary.id for summary in summaries], summaries, page.next)


@get(
    "/groups/{group:str}",
    operation_id="describeGroup",
    summary="A group's members and how far it is behind",
    tags=TAGS,
    responses=errors(400, 403, 404, 503),
)
async def describe_group_route(broker: NamedDependency[Broker], group: GroupInPath) -> GroupBody[str]:
    behind = await at_home(broker, group_lag, DescribeLag(group=group))
    view = await seen_at_home(broker, describe_group, DescribeGroup(group=group))
    passed = await seen_at_home(broker, passed_over, ListPassed(group=group))
    slices = Slices(broker.clock)
    members = [await _member_body(slices, member) for member in view.members]
    return GroupBody(
        id=view.name,
        group_id=view.name,
        state=state_word(view.state),
        generation=view.generation,
        kind=view.kind.value,
        protocol=view.protocol,
        topics=sorted({*_topics_of(view), *(partition.topic for partition in behind.partitions)}),
        members=members,
        lag=await lag_body(broker, behind),
        mode=view.sharing.value if view.sharing else None,
        key_order=view.key_order,
        passed_over=[
            PassedOverBody(*source, run.first, run.end, run.reason, format_time(run.time_ms))
            for source, run in passed
        ],
    )


@delete(
    "/groups/{group:str}",
    status_code=200,
    operation_id="deleteGroup",
    summary="Forget a group and its offsets",
    description="Members that came over HTTP are sent away; members that are Kafka clients are not.",
    tags=TAGS,
    responses=errors(400, 403, 404, 409, 503, 507),
)
async def delete_group_route(broker: NamedDependency[Broker], group: GroupInPath) -> GroupDeletedReply:
    await at_home(broker, disband_group, DisbandGroup(group=group))
    return GroupDeletedReply(group, group)


@post(
    "/groups/{group:str}/join",
    status_code=200,
    operation_id="joinGroup",
    summary="Become a member of a group whose partitions the broker assigns",
    tags=TAGS,
    operation_class=takes(JoinBody),
    responses=errors(400, 403, 404, 409, 413, 429, 503, 507),
)
async def join_group_route(
    request: Request[object, object, State],
    broker: NamedDependency[Broker],
    group: GroupInPath,
    body: RawBody,
) -> JoinReply:
    command = join_of(group, decode_join(body), host_of(request))
    joined = await at_home(broker, join_assigned, command)
    return JoinReply(
        member_id=joined.member_id,
        generation=joined.generation,
        leader_id=joined.leader_id,
        leader=joined.member_id if joined.leader_id == joined.member_id else "",
        partitions=[place.partition for place in joined.partitions],
        assigned_partitions=list(map(_text, joined.partitions)),
        assignment=places(joined.partitions),
        members=list(joined.members),
        rebalance_required=joined.is_rebalancing,
        mode=command.sharing.value,
    )


@post(
    "/groups/{group:str}/heartbeat",
    status_code=200,
    operation_id="heartbeatGroup",
    summary="A sign of life; 409 when the generation has passed",
    tags=TAGS,
    operation_class=takes(MemberBody),
    responses=errors(400, 403, 404, 409, 413, 503, 507),
)
async def heartbeat_route(
    broker: NamedDependency[Broker], group: GroupInPath, body: RawBody
) -> HeartbeatReply:
    told = await at_home(
        broker, heartbeat_assigned, HeartbeatAssigned(membership_of(group, decode(member_decoder, body)))
    )
    state: StateWord = "rebalancing" if told.is_rebalancing else "stable"
    return HeartbeatReply(told.generation, told.is_rebalancing, state)


@post(
    "/groups/{group:str}/leave",
    status_code=200,
    operation_id="leaveGroup",
    summary="Go for good; the others have the partitions at once",
    tags=TAGS,
    operation_class=takes(MemberBody),
    responses=errors(400, 403, 404, 409, 413, 503, 507),
)
async def leave_group_route(broker: NamedDependency[Broker], group: GroupInPath, body: RawBody) -> LeaveReply:
    await at_home(
        broker, leave_assigned, LeaveAssigned(group=group, member_id=decode(member_decoder, body).member_id)
    )
    return LeaveReply()


def decode_join(body: bytes) -> JoinBody:
    return decode(_join_decoder, body)


def join_of(group: str, body: JoinBody, client_host: str, sharing: Sharing | None = None) -> JoinAssigned:
    """What a request to join asks for."""
    return JoinAssigned(
        group=group,
        client_id=body.client_id,
        client_host=client_host,
        topics=body.topics,
        sharing=sharing or Sharing(body.mode or Sharing.EAGER.value),
        assignor=body.assignor or "sticky",
        member_id=body.member_id or "",
        session_timeout_ms=_duration_ms(body.session_timeout, SESSION_TIMEOUT_MS),
        rebalance_timeout_ms=_duration_ms(body.rebalance_timeout, REBALANCE_TIMEOUT_MS),
        key_order=bool(body.key_order),
    )


def membership_of(group: str, body: MemberBody) -> Membership:
    return Membership(group, body.member_id, max(body.generation or 0, 0))


def host_of(request: Request[object, object, State]) -> str:
    return request.client.host if request.client else ""


def state_word(state: GroupState) -> StateWord:
    """A state by the names that clients of the HTTP door know."""
    return _STATE_WORDS.get(state, "rebalancing")


def places(partitions: Iterable[TopicPartition]) -> list[PlaceBody]:
    return list(starmap(PlaceBody, partitions))


def second_or_none(time_ms: int | None) -> str | None:
    return None if time_ms is None else format_second(time_ms)


def _summary_of(view: GroupView) -> GroupSummary:
    return GroupSummary(
        id=view.name,
        state=state_word(view.state),
        members=len(view.members),
        generation=view.generation,
        topics=_topics_of(view),
        kind=view.kind.value,
    )


def _topics_of(view: GroupView) -> list[str]:
    return sorted({*view.committed_topics, *(topic for member in view.members for topic in member.topics)})


async def _member_body(slices: Slices, member: MemberView) -> GroupMemberBody[str]:
    texts = await slices.each(member.partitions, _text)
    return GroupMemberBody(
        id=member.member_id,
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assigned_partitions=texts,
        partitions=texts,
        assignment=places(member.partitions),
        joined_at=second_or_none(member.joined_ms),
        last_heartbeat=second_or_none(member.last_heartbeat_ms),
    )


def _text(source: TopicPartition) -> str:
    return f"{source.topic}-{source.partition}"


def _duration_ms(given: str | int | None, default_ms: int) -> int:
    match given:
        case None:
            return default_ms
        case int():
            return given
        case str():
            return parse_duration_ns(given) // 1_000_000


ROUTES = [
    list_groups_route,
    describe_group_route,
    delete_group_route,
    join_group_route,
    heartbeat_route,
    leave_group_route,
]
