"""Share groups: ShareGroupHeartbeat and ShareGroupDescribe."""

from datetime import timedelta
from typing import TYPE_CHECKING

from goqueue.broker.forwarding.at_home import here
from goqueue.broker.queue.share_groups import JOIN, LEAVE, share_heartbeat
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import coordinator_code, kafka_text
from goqueue.edge.kafka.handlers.consumer_groups import (
    DescribeReply,
    HeartbeatReply,
    assignment_of,
    described,
)
from goqueue.edge.kafka.once import each, once
from goqueue.edge.kafka.rights import group_operations
from goqueue.model.errors import GoQueueError, Invalid
from goqueue.model.group_commands import ShareHeartbeat
from goqueue.model.groups import GroupKind

if TYPE_CHECKING:
    from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
    from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest


_MILLISECOND = timedelta(milliseconds=1)


async def share_group_heartbeat(context: Context, request: "ShareGroupHeartbeatRequest") -> HeartbeatReply:
    """A share consumer joins, is still there, or leaves."""
    broker = context.broker
    set_ms = broker.group_settings.of(request.group_id).share_heartbeat_ms
    interval = (set_ms or broker.config.groups.consumer_heartbeat_ms) * _MILLISECOND
    try:
        _check(request)
        told = await here(
            context.broker,
            share_heartbeat,
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


async def share_group_describe(context: Context, request: "ShareGroupDescribeRequest") -> DescribeReply:
    """State and members of share groups; of no others."""
    include = request.include_authorized_operations
    kinds = (GroupKind.SHARE,)
    return DescribeReply(
        groups=await each(
            context,
            once(request.group_ids),
            lambda name: described(context, name, kinds, group_operations(context, name, is_asked=include)),
        )
    )
