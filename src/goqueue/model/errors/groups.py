"""Errors about groups and their members."""

from goqueue.model.errors.families import Busy, Denied, Fenced, Invalid, InvalidName, NotFound


class InvalidGroupName(InvalidName):
    """A consumer group without a name, or with one that breaks the rule for names."""

    code = "invalid_group_name"


class InvalidSessionTimeout(Invalid):
    """A session time-out outside the bounds of this broker."""

    code = "invalid_session_timeout"


class InconsistentProtocol(Invalid):
    """A member that knows no way to assign which all others of its group know too."""

    code = "inconsistent_protocol"


class MetadataTooLarge(Invalid):
    """The text that goes with a committed offset is above the limit."""

    code = "metadata_too_large"


class GroupNotFound(NotFound):
    """There is no consumer group of that name."""

    code = "group_not_found"

    def __init__(self, group: str) -> None:
        super().__init__(f"group {group} does not exist")
        self.group = group


class GroupNotEmpty(Busy):
    """The group has members: what was asked can only be done to an empty one."""

    code = "group_not_empty"

    def __init__(self, group: str) -> None:
        super().__init__(f"group {group} has members")
        self.group = group


class GroupSubscribed(Busy):
    """Members of the group are subscribed to the topic, so its offsets stay."""

    code = "group_subscribed"

    def __init__(self, group: str, topic: str) -> None:
        super().__init__(f"members of group {group} are subscribed to topic {topic}")
        self.group = group
        self.topic = topic


class GroupFull(Busy):
    """The group has as many members as it may have."""

    code = "group_full"


class TooManyGroups(Busy):
    """The node has as many consumer groups as it may have: delete some, or have the limit raised."""

    code = "too_many_groups"


class UnknownMember(Fenced):
    """The group has no such member (any more): join it anew."""

    code = "unknown_member"

    def __init__(self, group: str, member_id: str) -> None:
        super().__init__(f"group {group} has no member {member_id!r}")
        self.group = group
        self.member_id = member_id


class MemberIdRequired(Fenced):
    """A new member has been given an id: join again with it."""

    code = "member_id_required"

    def __init__(self, member_id: str) -> None:
        super().__init__(f"join again as {member_id}")
        self.member_id = member_id


class InstanceFenced(Fenced):
    """Another process has joined under the same instance id and taken the place."""

    code = "instance_fenced"


class IllegalGeneration(Fenced):
    """The group is in another generation than the member believes: join again."""

    code = "illegal_generation"


class RebalanceInProgress(Fenced):
    """The group is being assigned anew: join again."""

    code = "rebalance_in_progress"

    def __init__(self, group: str) -> None:
        super().__init__(f"group {group} is rebalancing")
        self.group = group


class UnsupportedAssignor(Invalid):
    """A way to assign partitions that the broker does not know, or not the one this group uses."""

    code = "unsupported_assignor"


class InvalidPattern(Invalid):
    """A pattern for topic names that is no regular expression, or one that could take for ever to match."""

    code = "invalid_pattern"


class NotPartitionOwner(Denied):
    """The partition is not assigned to the member, so its offset is not its business."""

    code = "not_partition_owner"

    def __init__(self, group: str, member_id: str, partition: object) -> None:
        super().__init__(f"partition {partition} is not assigned to member {member_id!r} of group {group}")
        self.group = group
        self.member_id = member_id


class NotRebalancing(Fenced):
    """The member was not asked to let go of the partitions that it says it has let go of."""

    code = "not_rebalancing"


class MemberEpochFenced(Fenced):
    """The member is not in the epoch that it believes to be in: give up all partitions and join again."""

    code = "member_epoch_fenced"


class StaleMemberEpoch(Fenced):
    """The member's epoch has moved on since: try again with the one that the last heartbeat told."""

    code = "stale_member_epoch"


class InstanceInUse(Busy):
    """Another process has this instance id and has not let go of it."""

    code = "instance_in_use"
