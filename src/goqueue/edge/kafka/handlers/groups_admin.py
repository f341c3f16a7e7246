"""Consumer groups from outside: DescribeGroups, ListGroups, DeleteGroups."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.forwarding.at_home import here
from goqueue.broker.groups import verbs as groups
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import coordinator_code
from goqueue.edge.kafka.once import done_to_each, each, once
from goqueue.edge.kafka.rights import group_operations
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.errors import GoQueueError, GroupNotFound
from goqueue.model.group_commands import DeleteGroup, DescribeGroup, ListGroups
from goqueue.model.groups import GroupKind, GroupState

if TYPE_CHECKING:
    from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
    from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
    from kio.schema.list_groups.v5.request import ListGroupsRequest

_SHARE = "share"
_TYPE_OF_KIND = {
    GroupKind.CLASSIC: "classic",
    GroupKind.CONSUMER: "consumer",
    GroupKind.HTTP: "consumer",  # Kafka's tools have no word for them, and show these groups well
    GroupKind.SHARE: _SHARE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    group_id: str
    group_state: str
    authorized_operations: int
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()
    error_code: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsReply(Reply):
    groups: tuple[DescribedGroup, ...]


async def describe_groups(context: Context, request: "DescribeGroupsRequest") -> DescribeGroupsReply:
    """State and members of each group asked for."""
    include: bool = getattr(request, "include_authorized_operations", False)
    return DescribeGroupsReply(
        groups=await each(
            context,
            once(request.groups),
            lambda name: _described(context, name, group_operations(context, name, is_asked=include)),
        )
    )


def _described(context: Context, name: str, operations: int) -> DescribedGroup:
    try:
        view = here(context.broker, groups.describe_group, DescribeGroup(group=name))
        if view.kind is not GroupKind.CLASSIC:
            raise GroupNotFound(name)
    except GroupNotFound:
        # Kafka has no error for this in these versions: a group that does not exist is a dead one. So is one
        # that the broker assigns to, which ConsumerGroupDescribe tells of.
        return DescribedGroup(
            group_id=name, group_state=GroupState.DEAD.value, authorized_operations=operations
        )
    except GoQueueError as error:
        return DescribedGroup(
            group_id=name,
            group_state="",
            authorized_operations=operations,
            error_code=coordinator_code(error),
        )
    return DescribedGroup(
        group_id=view.name,
        group_state=view.state.value,
        authorized_operations=operations,
        protocol_type=view.protocol_type,
        protocol_data=view.protocol,
        members=tuple(
            DescribedMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=f"/{member.client_host}",
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in view.members
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsReply(Reply):
    groups: tuple[ListedGroup, ...] = ()
    error_code: ErrorCode = ErrorCode.none


async def list_groups(context: Context, request: "ListGroupsRequest") -> ListGroupsReply:
    """All groups, or those in given states and of given types."""
    states = {state.lower() for state in getattr(request, "states_filter", ())}
    types = {kind.lower() for kind in getattr(request, "types_filter", ())}
    try:
        listed = here(context.broker, groups.list_groups, ListGroups())
    except GoQueueError as error:
        return ListGroupsReply(error_code=coordinator_code(error))
    found = (
        ListedGroup(
            group_id=group.name,
            protocol_type=_SHARE if group.kind is GroupKind.SHARE else group.protocol_type,
            group_state=group.state.value,
            group_type=_TYPE_OF_KIND[group.kind],
        )
        for group in listed
    )
    return ListGroupsReply(
        groups=tuple(
            group
            for group in found
            if (not states or group.group_state.lower() in states)
            and (not types or group.group_type in types)
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedGroup:
    group_id: str
    error_code: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsReply(Reply):
    results: tuple[DeletedGroup, ...]


async def delete_groups(context: Context, request: "DeleteGroupsRequest") -> DeleteGroupsReply:
    """Forget groups that have no members, with their offsets."""
    return DeleteGroupsReply(
        results=await done_to_each(context, request.groups_names, lambda name: _delete(context, name))
    )


async def _delete(context: Context, name: str) -> DeletedGroup:
    try:
        await here(context.broker, groups.delete_group, DeleteGroup(group=name))
    except GoQueueError as error:
        return DeletedGroup(group_id=name, error_code=coordinator_code(error))
    return DeletedGroup(group_id=name)
