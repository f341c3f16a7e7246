"""Groups in which the broker assigns (`group.protocol=consumer`): ConsumerGroupHeartbeat and -Describe.

Partitions go by the ids of their topics here, so one that was deleted and made anew is another one.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from kio.schema.errors import ErrorCode

from goqueue.broker.forwarding.at_home import here
from goqueue.broker.groups.consumer_heartbeat import JOIN, STEP_OUT, consumer_heartbeat
from goqueue.broker.groups.verbs import describe_group
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import coordinator_code, kafka_text
from goqueue.edge.kafka.once import each, once
from goqueue.edge.kafka.rights import group_operations
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.errors import GoQueueError, GroupNotFound, Invalid, UnsupportedAssignor
from goqueue.model.group_commands import ConsumerHeartbeat, DescribeGroup
from goqueue.model.groups import GroupKind, MemberView, Reconciliation
from goqueue.model.ids import TopicPartition

if TYPE_CHECKING:
    from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
    from kio.schema.consumer_group_heartbeat.v1.request import (
        ConsumerGroupHeartbeatRequest,
        TopicPartitions,
    )

ASSIGNORS = frozenset({"uniform", "range"})
_DESCRIBED_KINDS = frozenset({GroupKind.CONSUMER, GroupKind.HTTP})
_MILLISECOND = timedelta(milliseconds=1)
_MEMBER_ID_FROM_CLIENT = 1
_CONSUMER_MEMBER = 1
_ID_CHARACTERS_MAX = 1_000
"""Ids of members and instances come from clients and are kept in memory and journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAndPartitions:
    topic_id: UUID
    topic_name: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    topic_partitions: tuple[TopicAndPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply(Reply):
    member_id: str | None
    member_epoch: int
    heartbeat_interval: timedelta
    assignment: Assignment | None = None
    """None: as it was told before."""
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


async def consumer_group_heartbeat(
    context: Context, request: "ConsumerGroupHeartbeatRequest"
) -> HeartbeatReply:
    """A member joins, says what it has, or leaves; the reply brings what it is to have, if that is new."""
    broker = context.broker
    set_ms = broker.group_settings.of(request.group_id).consumer_heartbeat_ms
    interval = (set_ms or broker.config.groups.consumer_heartbeat_ms) * _MILLISECOND
    try:
        command = _command(context, request)
        told = await here(context.broker, consumer_heartbeat, command)
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
    return HeartbeatReply(
        member_id=told.member_id,
        member_epoch=told.generation,
        heartbeat_interval=interval,
        assignment=assignment_of(context, told.assigned) if _is_news(command, told) else None,
    )


def _is_news(command: ConsumerHeartbeat, told: Reconciliation) -> bool:
    """Whether the member must hear what it has. One that says something else may have missed a reply."""
    if command.epoch == JOIN or told.has_changed:
        return True
    return command.owned is not None and set(command.owned) != set(told.assigned)


def _command(context: Context, request: "ConsumerGroupHeartbeatRequest") -> ConsumerHeartbeat:
    _check(request)
    timeout_ms = request.rebalance_timeout // _MILLISECOND
    return ConsumerHeartbeat(
        group=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        client_id=context.client_id,
        client_host=context.client_host,
        rebalance_timeout_ms=None if timeout_ms < 0 else timeout_ms,
        topics=request.subscribed_topic_names,
        pattern=getattr(request, "subscribed_topic_regex", None),
        assignor=request.server_assignor,
        owned=None if request.topic_partitions is None else _owned(context, request.topic_partitions),
    )


def _check(request: "ConsumerGroupHeartbeatRequest") -> None:
    """What the protocol asks of a request, whatever the group is like."""
    epoch = request.member_epoch
    may_lack_id = epoch == JOIN and request.__version__ < _MEMBER_ID_FROM_CLIENT
    if not request.member_id and not may_lack_id:
        raise Invalid("a member has an id")
    if max(len(request.member_id), len(request.instance_id or "")) > _ID_CHARACTERS_MAX:
        raise Invalid(f"an id has at most {_ID_CHARACTERS_MAX} characters")
    if request.instance_id == "" or (epoch == STEP_OUT and request.instance_id is None):
        raise Invalid("a static member has an instance id")
    if epoch < STEP_OUT:
        raise Invalid(f"{epoch} is no epoch of a member")
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        raise UnsupportedAssignor(f"there is no assignor {request.server_assignor!r}; use uniform or range")
    if epoch == JOIN:
        if request.rebalance_timeout < timedelta(0):
            raise Invalid("whoever joins says how long it takes at most to let go of partitions")
        if request.topic_partitions:
            raise Invalid("whoever joins has no partitions yet")
        if not request.subscribed_topic_names and not getattr(request, "subscribed_topic_regex", None):
            raise Invalid("whoever joins subscribes to topics")


def _owned(context: Context, topics: "Iterable[TopicPartitions]") -> tuple[TopicPartition, ...]:
    names = context.broker.metadata.names
    return tuple(
        TopicPartition(names[topic.topic_id], partition)
        for topic in topics
        if topic.topic_id is not None and topic.topic_id in names
        for partition in topic.partitions
    )


def assignment_of(context: Context, partitions: Iterable[TopicPartition]) -> Assignment:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    known = context.broker.metadata.topics
    return Assignment(
        topic_partitions=tuple(
            TopicAndPartitions(topic_id=known[name].topic_id, topic_name=name, partitions=tuple(topics[name]))
            for name in known
            if name in topics
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConsumer:
    member_id: str
    instance_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: Assignment
    target_assignment: Assignment
    rack_id: str | None = None
    member_type: int = _CONSUMER_MEMBER


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConsumerGroup:
    group_id: str
    authorized_operations: int
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedConsumer, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeReply(Reply):
    groups: tuple[DescribedConsumerGroup, ...]


async def consumer_group_describe(context: Context, request: "ConsumerGroupDescribeRequest") -> DescribeReply:
    """State and members of groups that the broker assigns to, those of HTTP too; no others."""
    include = request.include_authorized_operations
    return DescribeReply(
        groups=await each(
            context,
            once(request.group_ids),
            lambda name: described(
                context, name, _DESCRIBED_KINDS, group_operations(context, name, is_asked=include)
            ),
        )
    )


def described(
    context: Context, name: str, kinds: Collection[GroupKind], operations: int
) -> DescribedConsumerGroup:
    """A group of some kinds; one of another kind is not found."""
    try:
        view = here(context.broker, describe_group, DescribeGroup(group=name))
        if view.kind not in kinds:
            raise GroupNotFound(name)
    except GoQueueError as error:
        return DescribedConsumerGroup(
            group_id=name,
            authorized_operations=operations,
            error_code=coordinator_code(error),
            error_message=kafka_text(error),
        )
    return DescribedConsumerGroup(
        group_id=view.name,
        authorized_operations=operations,
        group_state=view.state.value,
        group_epoch=view.generation,
        assignment_epoch=view.generation,
        assignor_name=view.protocol,
        members=tuple(_member(context, member) for member in view.members),
    )


def _member(context: Context, member: MemberView) -> DescribedConsumer:
    return DescribedConsumer(
        member_id=member.member_id,
        instance_id=member.instance_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=f"/{member.client_host}",
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.pattern,
        assignment=assignment_of(context, member.partitions),
        target_assignment=assignment_of(context, member.target),
    )
