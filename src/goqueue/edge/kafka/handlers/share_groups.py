"""Share groups: ShareGroupHeartbeat and ShareGroupDescribe."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.groups import describe_group
from goqueue.broker.share_groups import JOIN, LEAVE, share_heartbeat
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import coordinator_code, kafka_text
from goqueue.edge.kafka.handlers.cluster import OPERATIONS_NOT_ASKED
from goqueue.edge.kafka.handlers.consumer_groups import Assignment, assignment_of
from goqueue.edge.kafka.handlers.groups_admin import GROUP_OPERATIONS
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.errors import GoQueueError, GroupNotFound, Invalid
from goqueue.model.groups import GroupKind, MemberView, ShareHeartbeat

if TYPE_CHECKING:
    from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
    from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply(Reply):
    member_id: str | None
    member_epoch: int
    heartbeat_interval: timedelta
    assignment: Assignment | None = None
    """None: as it was told before."""
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


async def share_group_heartbeat(context: Context, request: "ShareGroupHeartbeatRequest") -> HeartbeatReply:
    """A share consumer joins, is still there, or leaves."""
    interval = context.broker.config.groups.consumer_heartbeat_ms * _MILLISECOND
    try:
        _check(request)
        told = await share_heartbeat(
            context.broker,
            ShareHeartbeat(
                group=request.group_id,
                member_id=request.member_id,
                epoch=request.member_epoch,
                client_id=context.client_id,
                client_host=context.client_host,
                topics=request.subscribed_topic_names,
            ),
        )
    except GoQueueError as error:
        return HeartbeatReply(
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval=interval,
            error_code=coordinator_code(error),
            error_message=kafka_text(error),
        )
    if told is None:
        return HeartbeatReply(
            member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval=interval
        )
    is_news = request.member_epoch == JOIN or told.has_changed
    return HeartbeatReply(
        member_id=told.member_id,
        member_epoch=told.generation,
        heartbeat_interval=interval,
        assignment=assignment_of(context, told.assigned) if is_news else None,
    )


def _check(request: "ShareGroupHeartbeatRequest") -> None:
    if not request.member_id:
        raise Invalid("a member has an id")
    if request.member_epoch < LEAVE:
        raise Invalid(f"{request.member_epoch} is no epoch of a member")
    if request.member_epoch == JOIN and not request.subscribed_topic_names:
        raise Invalid("whoever joins subscribes to topics")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedShareMember:
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    assignment: Assignment
    rack_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedShareGroup:
    group_id: str
    authorized_operations: int
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedShareMember, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeReply(Reply):
    groups: tuple[DescribedShareGroup, ...]


async def share_group_describe(context: Context, request: "ShareGroupDescribeRequest") -> DescribeReply:
    """State and members of share groups; of no others."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else OPERATIONS_NOT_ASKED
    return DescribeReply(groups=tuple(_described(context, name, operations) for name in request.group_ids))


def _described(context: Context, name: str, operations: int) -> DescribedShareGroup:
    try:
        view = describe_group(context.broker, name)
        if view.kind is not GroupKind.SHARE:
            raise GroupNotFound(name)
    except GoQueueError as error:
        return DescribedShareGroup(
            group_id=name,
            authorized_operations=operations,
            error_code=coordinator_code(error),
            error_message=kafka_text(error),
        )
    return DescribedShareGroup(
        group_id=view.name,
        authorized_operations=operations,
        group_state=view.state.value,
        group_epoch=view.generation,
        assignment_epoch=view.generation,
        assignor_name=view.protocol,
        members=tuple(_member(context, member) for member in view.members),
    )


def _member(context: Context, member: MemberView) -> DescribedShareMember:
    return DescribedShareMember(
        member_id=member.member_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=f"/{member.client_host}",
        subscribed_topic_names=member.topics,
        assignment=assignment_of(context, member.partitions),
    )
