"""Members of consumer groups, by Kafka's classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

What members tell each other (subscriptions, assignments) passes through unread, so groups of other
kinds than consumers work too.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.forwarding.at_home import here
from goqueue.broker.groups import verbs as groups
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import coordinator_code
from goqueue.edge.kafka.once import each
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.errors import GoQueueError, MemberIdRequired
from goqueue.model.group_commands import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from goqueue.model.groups import NO_GENERATION, Leaver, Membership

if TYPE_CHECKING:
    from kio.schema.heartbeat.v4.request import HeartbeatRequest
    from kio.schema.join_group.v9.request import JoinGroupRequest
    from kio.schema.leave_group.v5.request import LeaveGroupRequest
    from kio.schema.sync_group.v5.request import SyncGroupRequest

_MILLISECOND = timedelta(milliseconds=1)
_MEMBER_ID_REQUIRED = 4
_MAY_SKIP_ASSIGNMENT = 9
_SEVERAL_LEAVERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupReply(Reply):
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str = ""
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[GroupMember, ...] = ()
    error_code: ErrorCode = ErrorCode.none


async def join_group(context: Context, request: "JoinGroupRequest") -> JoinGroupReply:
    """Take part in the next generation. The reply waits until it begins."""
    session_timeout_ms = request.session_timeout // _MILLISECOND
    rebalance_timeout: timedelta = getattr(request, "rebalance_timeout", request.session_timeout)
    command = JoinGroup(
        group=request.group_id,
        member_id=request.member_id,
        instance_id=getattr(request, "group_instance_id", None),
        client_id=context.client_id,
        client_host=context.client_host,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout // _MILLISECOND,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
        is_id_required=request.__version__ >= _MEMBER_ID_REQUIRED,
        may_skip_assignment=request.__version__ >= _MAY_SKIP_ASSIGNMENT,
    )
    try:
        joined = await here(context.broker, groups.join_group, command)
    except MemberIdRequired as error:
        return JoinGroupReply(member_id=error.member_id, error_code=coordinator_code(error))
    except GoQueueError as error:
        return JoinGroupReply(member_id=request.member_id, error_code=coordinator_code(error))
    return JoinGroupReply(
        member_id=joined.member_id,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        skip_assignment=joined.skips_assignment,
        members=tuple(
            GroupMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in joined.members
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupReply(Reply):
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
    error_code: ErrorCode = ErrorCode.none


async def sync_group(context: Context, request: "SyncGroupRequest") -> SyncGroupReply:
    """Bring assignments, as the leader, and learn one's own."""
    command = SyncGroup(
        group=request.group_id,
        member_id=request.member_id,
        instance_id=getattr(request, "group_instance_id", None),
        generation=request.generation_id,
        protocol_type=getattr(request, "protocol_type", None),
        protocol=getattr(request, "protocol_name", None),
        assignments=[(given.member_id, bytes(given.assignment)) for given in request.assignments],
    )
    try:
        synced = await here(context.broker, groups.sync_group, command)
    except GoQueueError as error:
        return SyncGroupReply(error_code=coordinator_code(error))
    return SyncGroupReply(
        protocol_type=synced.protocol_type, protocol_name=synced.protocol, assignment=synced.assignment
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply(Reply):
    error_code: ErrorCode = ErrorCode.none


async def heartbeat(context: Context, request: "HeartbeatRequest") -> HeartbeatReply:
    """A sign of life of a member; the reply tells it to join again when the group rebalances."""
    instance_id: str | None = getattr(request, "group_instance_id", None)
    who = Membership(request.group_id, request.member_id, request.generation_id, instance_id)
    try:
        here(context.broker, groups.heartbeat, Heartbeat(who))
    except GoQueueError as error:
        return HeartbeatReply(error_code=coordinator_code(error))
    return HeartbeatReply()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftMember:
    member_id: str
    group_instance_id: str | None
    error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupReply(Reply):
    members: tuple[LeftMember, ...] = ()
    error_code: ErrorCode = ErrorCode.none


async def leave_group(context: Context, request: "LeaveGroupRequest") -> LeaveGroupReply:
    """Members go for good: up to version 2 one, whose error is the reply's, then several."""
    is_alone = request.__version__ < _SEVERAL_LEAVERS
    if is_alone:
        member_id: str = getattr(request, "member_id", "")
        leavers: tuple[Leaver, ...] = (Leaver(member_id),)
    else:
        leavers = await each(
            context, request.members, lambda member: Leaver(member.member_id, member.group_instance_id)
        )
    try:
        errors = await here(
            context.broker, groups.leave_group, LeaveGroup(group=request.group_id, leavers=leavers)
        )
    except GoQueueError as error:
        return LeaveGroupReply(error_code=coordinator_code(error))
    left = await each(context, zip(leavers, errors, strict=True), _left)
    return LeaveGroupReply(error_code=left[0].error_code) if is_alone else LeaveGroupReply(members=left)


def _left(outcome: tuple[Leaver, GoQueueError | None]) -> LeftMember:
    leaver, error = outcome
    return LeftMember(
        member_id=leaver.member_id,
        group_instance_id=leaver.instance_id,
        error_code=ErrorCode.none if error is None else coordinator_code(error),
    )
