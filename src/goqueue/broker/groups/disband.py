"""disband_group: forget a group although members that came over HTTP may still believe to be in it."""

from contextlib import suppress

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import leave_assigned
from goqueue.broker.groups.verbs import delete_group, describe_group
from goqueue.model.errors import GroupNotFound, UnknownMember
from goqueue.model.groups import GroupKind


async def disband_group(broker: Broker, group: str) -> None:
    """Send its HTTP members away, and forget the group with its offsets. Kafka clients are not sent away."""
    view = describe_group(broker, group)
    if view.kind is GroupKind.HTTP:
        for member in view.members:
            with suppress(GroupNotFound, UnknownMember):  # it may go by itself meanwhile
                await leave_assigned(broker, group, member.member_id)
    try:
        await delete_group(broker, group)
    except GroupNotFound:
        # With its last member a group ends by itself when it has no offsets.
        if not view.members:
            raise
