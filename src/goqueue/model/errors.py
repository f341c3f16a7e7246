"""One tree of errors, sorted by what the caller can do next.

`code` is for programs and never changes its meaning; the text is for people; facts are fields.
Each door maps the families (and a few members) to its own codes in one table.
"""

from typing import ClassVar


class GoQueueError(Exception):
    """A caller's mistake or misfortune. Bugs of ours are AssertionErrors instead."""

    code: ClassVar[str]


class Invalid(GoQueueError):
    """Fix the request."""

    code = "invalid"


class NotFound(GoQueueError):
    """What was named is not here."""

    code = "not_found"


class Denied(GoQueueError):
    """The caller may not do this."""

    code = "denied"


class Fenced(GoQueueError):
    """The caller's view is out of date: refresh it."""

    code = "fenced"


class Busy(GoQueueError):
    """Later."""

    code = "busy"


class Unavailable(GoQueueError):
    """Elsewhere, or later."""

    code = "unavailable"


class Corrupt(GoQueueError):
    """Stop and look: stored bytes are not what was written."""

    code = "corrupt"

    def __init__(self, text: str, *, topic: str = "", partition: int = -1, offset: int = -1) -> None:
        super().__init__(text)
        self.topic = topic
        self.partition = partition
        self.offset = offset


class InvalidTopicName(Invalid):
    """A topic name that breaks the rules for names."""

    code = "invalid_topic_name"


class InvalidPartitionCount(Invalid):
    """A number of partitions that a topic cannot have."""

    code = "invalid_partition_count"


class InvalidReplication(Invalid):
    """A number of copies that this cluster cannot keep."""

    code = "invalid_replication"


class InvalidSetting(Invalid):
    """A topic setting that is unknown or has a value out of range."""

    code = "invalid_setting"


class InvalidBatch(Invalid):
    """A record batch whose length or shape is wrong."""

    code = "invalid_batch"


class WrongChecksum(InvalidBatch):
    """A record batch whose bytes do not match its CRC-32C."""

    code = "wrong_checksum"


class UnsupportedFormat(InvalidBatch):
    """A record batch of a format other than v2."""

    code = "unsupported_format"


class InvalidTimestamp(InvalidBatch):
    """A time that is no time in milliseconds: more than 292 years from 1970."""

    code = "invalid_timestamp"


class InvalidRecord(InvalidBatch):
    """A record inside a batch that asks for something impossible."""

    code = "invalid_record"

    def __init__(self, text: str, *, record_index: int = 0) -> None:
        super().__init__(text)
        self.record_index = record_index


class MessageTooLarge(Invalid):
    """A message, or a batch of them, above the topic's limit."""

    code = "message_too_large"


class RequestTooLarge(Invalid):
    """A request above the limit of the doors."""

    code = "request_too_large"


class OffsetOutOfRange(Invalid):
    """The offset lies before the log's start or after its end."""

    code = "offset_out_of_range"

    def __init__(self, offset: int, *, start_offset: int, end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside {start_offset}..{end_offset}")
        self.offset = offset
        self.start_offset = start_offset
        self.end_offset = end_offset


class TopicNotFound(NotFound):
    """There is no topic of that name or id."""

    code = "topic_not_found"

    def __init__(self, topic: object) -> None:
        super().__init__(f"topic {topic} does not exist")
        self.topic = topic


class PartitionNotFound(NotFound):
    """The topic has no partition of that number."""

    code = "partition_not_found"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"topic {topic} has no partition {partition}")
        self.topic = topic
        self.partition = partition


class SinkNotFound(NotFound):
    """No sink of that name has a generation: take one first."""

    code = "sink_not_found"

    def __init__(self, sink: str) -> None:
        super().__init__(f"sink {sink} is not known: take a generation first")
        self.sink = sink


class StageNotFound(NotFound):
    """A stage that was never written, was dropped, or has expired."""

    code = "stage_not_found"

    def __init__(self, sink: str, epoch: int, stage_id: str) -> None:
        super().__init__(f"sink {sink} has no stage {stage_id} for epoch {epoch}")
        self.sink = sink
        self.epoch = epoch
        self.stage_id = stage_id


class TopicExists(Busy):
    """A topic of that name is there already (or is just being deleted)."""

    code = "topic_exists"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} already exists")
        self.topic = topic


class InternalTopic(Denied):
    """Topics of the broker's own cannot be written or changed by clients."""

    code = "internal_topic"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} belongs to the broker")
        self.topic = topic


class OutOfSequence(Fenced):
    """An idempotent producer skipped a sequence number: something before it is missing."""

    code = "out_of_sequence"


class DuplicateSequence(Fenced):
    """An old batch came again, too old to tell where it was stored; it is in the log."""

    code = "duplicate_sequence"


class ProducerFenced(Fenced):
    """A newer epoch of the same producer has taken over."""

    code = "producer_fenced"


class SinkFenced(Fenced):
    """Another writer has taken a newer generation of the same sink."""

    code = "sink_fenced"

    def __init__(self, sink: str, given: int, newest: int) -> None:
        super().__init__(f"sink {sink} is at generation {newest}; generation {given} may not write to it")
        self.sink = sink
        self.generation = newest


class LeaderEpochFenced(Fenced):
    """The caller speaks of a leader epoch that has passed."""

    code = "leader_epoch_fenced"


class LeaderEpochUnknown(Unavailable):
    """The caller knows of a newer leader epoch than this node."""

    code = "leader_epoch_unknown"


class NotSupported(Invalid):
    """A request that this version does not serve."""

    code = "not_supported"


class StorageFailed(Unavailable):
    """The disk refused a write or an fsync; nothing after the last acknowledged message is certain."""

    code = "storage_failed"


class StorageFull(Unavailable):
    """No space is left on the disk: free some, or shorten retention."""

    code = "storage_full"


class ShuttingDown(Unavailable):
    """The broker is stopping: try again when it is back."""

    code = "shutting_down"

    def __init__(self) -> None:
        super().__init__("the broker is stopping; try again later or elsewhere")


class InvalidGroupName(Invalid):
    """A consumer group needs a name."""

    code = "invalid_group_name"

    def __init__(self) -> None:
        super().__init__("a consumer group needs a name")


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
