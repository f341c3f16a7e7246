"""One tree of errors, sorted by what the caller can do next.

`code` is for programs and never changes its meaning; the text is for people; facts are fields.
Each door maps the families (and a few members) to its own codes in one table.
"""

from collections.abc import Mapping, Sequence


class GoQueueError(Exception):
    """A caller's mistake or misfortune. Bugs of ours are AssertionErrors instead."""

    code: str


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

    def __init__(
        self, text: str, *, topic: str = "", partition: int = -1, offset: int = -1, next_offset: int = -1
    ) -> None:
        super().__init__(text)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.next_offset = next_offset
        """Where messages go on behind what is spoilt; -1: nobody can tell."""


class InvalidName(Invalid):
    """A name that breaks the rule for names: the text says how. Choose another."""

    code = "invalid_name"


class InvalidTopicName(InvalidName):
    """A topic name that breaks the rules for names."""

    code = "invalid_topic_name"


class InvalidPartitionCount(Invalid):
    """A number of partitions that a topic cannot have."""

    code = "invalid_partition_count"


class InvalidReplication(Invalid):
    """A number of copies that this cluster cannot keep."""

    code = "invalid_replication"


class InvalidAssignment(InvalidReplication):
    """A partition cannot be placed so: a node is unknown, leaving or named twice, or there is none."""

    code = "invalid_replica_assignment"


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


class UnsupportedMediaType(Invalid):
    """A web page sends something that does not say to be JSON or bytes."""

    code = "unsupported_media_type"


class HostDenied(Denied):
    """A request for a name that the HTTP door does not have: use its address, or list the name."""

    code = "host_denied"


class OriginDenied(Denied):
    """A request of a web page that is not of a listed origin."""

    code = "origin_denied"


class NotAuthenticated(Denied):
    """Nobody knows who asks: show a key or a password that is good."""

    code = "not_authenticated"


class InvalidIdentity(InvalidName):
    """A user or a key that cannot be."""

    code = "invalid_identity"


class UserNotFound(NotFound):
    """There is no user of that name, or not with what was asked for."""

    code = "user_not_found"

    def __init__(self, user: str) -> None:
        super().__init__(f"user {user} does not exist")
        self.user = user


class UserExists(Busy):
    """A user of that name is there already."""

    code = "user_exists"

    def __init__(self, user: str) -> None:
        super().__init__(f"user {user} already exists")
        self.user = user


class KeyNotFound(NotFound):
    """There is no key of that id."""

    code = "key_not_found"

    def __init__(self, key_id: str) -> None:
        super().__init__(f"key {key_id} does not exist")
        self.key_id = key_id


class KeyExists(Busy):
    """A key of that id is there already."""

    code = "key_exists"

    def __init__(self, key_id: str) -> None:
        super().__init__(f"key {key_id} already exists")
        self.key_id = key_id


class InvalidRule(InvalidName):
    """A rule of who may do what that nobody could go by."""

    code = "invalid_rule"


class RuleNotFound(NotFound):
    """There is no such rule."""

    code = "rule_not_found"

    def __init__(self, rule: str) -> None:
        super().__init__(f"there is no rule {rule}")
        self.rule = rule


class NotAllowed(Denied):
    """Nobody has allowed whoever asks to do this: ask an administrator for the right."""

    code = "not_allowed"

    def __init__(self, principal: str, operation: str, kind: str, name: str) -> None:
        super().__init__(f"{principal} may not {operation} {kind} {name}: ask an administrator for the right")
        self.principal = principal
        self.operation = operation
        self.kind = kind
        self.name = name


class TopicNotAllowed(NotAllowed):
    """The same, with a topic."""

    code = "topic_not_allowed"


class GroupNotAllowed(NotAllowed):
    """The same, with a consumer group."""

    code = "group_not_allowed"


class ClusterNotAllowed(NotAllowed):
    """The same, with the cluster."""

    code = "cluster_not_allowed"


class TransactionalIdNotAllowed(NotAllowed):
    """The same, with a transactional id."""

    code = "transactional_id_not_allowed"


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


class MessageNotFound(NotFound):
    """There is no message at that offset: not any more, not yet, or it was never one."""

    code = "message_not_found"

    def __init__(self, topic: str, partition: int, offset: int, why: str) -> None:
        super().__init__(f"{topic}/{partition} has no message at offset {offset}: {why}")
        self.topic = topic
        self.partition = partition
        self.offset = offset


class TraceNotFound(NotFound):
    """No message that can be found has that trace id."""

    code = "trace_not_found"

    def __init__(self, trace_id: str) -> None:
        super().__init__(
            f"no trace {trace_id} was found: its messages are gone, or a producer made the id "
            "and they were published too long ago to be looked for"
        )
        self.trace_id = trace_id


class DelayedNotFound(NotFound):
    """No message of that number is pending: it was delivered or cancelled, or never was."""

    code = "delayed_not_found"

    def __init__(self, topic: str, number: int) -> None:
        super().__init__(f"topic {topic} has no pending message {number}")
        self.topic = topic
        self.number = number


class ScheduleNotFound(NotFound):
    """The topic has no schedule of that name."""

    code = "schedule_not_found"

    def __init__(self, topic: str, name: str) -> None:
        super().__init__(f"topic {topic} has no schedule {name}")
        self.topic = topic
        self.name = name


class ScheduleExists(Busy):
    """The topic has a schedule of that name already."""

    code = "schedule_exists"

    def __init__(self, topic: str, name: str) -> None:
        super().__init__(f"topic {topic} already has a schedule {name}")
        self.topic = topic
        self.name = name


class InvalidSchedule(Invalid):
    """A cron expression or a time zone that cannot be understood, or names no time."""

    code = "invalid_schedule"


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


class SinkOfAnother(Fenced):
    """The epochs of the sink are counted by another job: write to a sink of your own."""

    code = "sink_of_another"

    def __init__(self, sink: str, writer: str) -> None:
        super().__init__(
            f"sink {sink} counts the epochs of {writer}: another job, or a new checkpoint, needs another sink"
        )
        self.sink = sink
        self.writer = writer


class EpochInterrupted(Unavailable):
    """An epoch of a sink could not be brought into the log now; nothing of it is seen."""

    code = "epoch_interrupted"

    def __init__(self, sink: str, epoch: int, reason: str) -> None:
        super().__init__(f"epoch {epoch} of sink {sink} is not in the log yet, commit it again: {reason}")
        self.sink = sink
        self.epoch = epoch


class LeaderEpochFenced(Fenced):
    """The caller speaks of a leader epoch that has passed."""

    code = "leader_epoch_fenced"


class LeaderEpochUnknown(Unavailable):
    """The caller knows of a newer leader epoch than this node."""

    code = "leader_epoch_unknown"


class NotLeader(Unavailable):
    """This node does not lead the partition: refresh your metadata, and ask the one that does."""

    code = "not_leader"

    def __init__(self, topic: str, partition: int, leader: str | None = None) -> None:
        who = f"{leader} does" if leader else "nobody does now"
        super().__init__(f"this node does not lead {topic}/{partition}; {who}")
        self.topic = topic
        self.partition = partition
        self.leader = leader


class LeadershipLost(Unavailable):
    """The partition's leader was replaced before the write counted: it may be kept, or not.

    Unlike `NotLeader` it says that something was written. Who asks again without a sequence number may have
    it twice.
    """

    code = "leadership_lost"

    def __init__(self, topic: str, partition: int, leader: str | None = None) -> None:
        who = f"; {leader} leads it now" if leader else ""
        super().__init__(f"this node has lost the lead of {topic}/{partition} before a write counted{who}")
        self.topic = topic
        self.partition = partition
        self.leader = leader


class NoLeader(Unavailable):
    """No replica of the partition can lead it now: try again in a moment."""

    code = "no_leader"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"{topic}/{partition} has no leader now")
        self.topic = topic
        self.partition = partition


class NotCoordinator(Unavailable):
    """Another node coordinates this group or transaction: find it, and ask there."""

    code = "not_coordinator"


class CoordinatorLoading(Unavailable):
    """This node has just become the coordinator and reads what it has to know: try again in a moment."""

    code = "coordinator_loading"


class NotController(Unavailable):
    """Another node decides for the cluster: find it, and ask there."""

    code = "not_controller"


class NodeNotFound(NotFound):
    """The cluster has no node of this name."""

    code = "node_not_found"

    def __init__(self, node: str) -> None:
        super().__init__(f"the cluster has no node {node}")
        self.node = node


class ReassignmentNotFound(NotFound):
    """There is no such reassignment, or the partition is not being moved."""

    code = "reassignment_not_found"


class ReassignmentInProgress(Busy):
    """The partition is being moved already: wait for the end of that, or cancel it."""

    code = "reassignment_in_progress"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"{topic}/{partition} is being moved already; wait for it, or cancel that first")
        self.topic = topic
        self.partition = partition


class ReassignmentOver(Fenced):
    """The reassignment has come to its end: there is nothing to cancel."""

    code = "reassignment_over"


class ElectionNotNeeded(Fenced):
    """The partition is led as it should be."""

    code = "election_not_needed"

    def __init__(self, topic: str, partition: int, leader: str) -> None:
        super().__init__(f"{topic}/{partition} is led by {leader}: there is nothing to elect")
        self.topic = topic
        self.partition = partition
        self.leader = leader


class PreferredLeaderAway(Unavailable):
    """The node that should lead the partition is away or not in sync."""

    code = "preferred_leader_not_available"

    def __init__(self, topic: str, partition: int, node: str) -> None:
        super().__init__(f"{node}, which should lead {topic}/{partition}, is not ready or not in sync")
        self.topic = topic
        self.partition = partition
        self.node = node


class NoEligibleLeader(Unavailable):
    """None of the partition's replicas is alive."""

    code = "eligible_leaders_not_available"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"no replica of {topic}/{partition} is alive")
        self.topic = topic
        self.partition = partition


class NotEnoughReplicas(Unavailable):
    """Fewer replicas are in sync than a write with acks=all asks for; nothing was written."""

    code = "not_enough_replicas"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"too few replicas of {topic}/{partition} are in sync; nothing was written")
        self.topic = topic
        self.partition = partition


class NotEnoughReplicasAfterAppend(Unavailable):
    """It was written here, and then too few replicas were in sync: it may come to count, or not."""

    code = "not_enough_replicas_after_append"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"too few replicas of {topic}/{partition} are in sync; what was written may be lost")
        self.topic = topic
        self.partition = partition


class OffsetNotAvailable(Unavailable):
    """A new leader does not know yet how far messages count: try again in a moment."""

    code = "offset_not_available"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"the leader of {topic}/{partition} is new and does not know its commit mark yet")
        self.topic = topic
        self.partition = partition


class NotSupported(Invalid):
    """A request that this version does not serve."""

    code = "not_supported"


class StorageFailed(Unavailable):
    """The disk refused a write or an fsync; nothing after the last acknowledged message is certain."""

    code = "storage_failed"


class Outdated(Fenced):
    """What is agreed has changed since this was decided on: look at it again."""

    code = "metadata_outdated"

    def __init__(self, key: str, revision: int) -> None:
        super().__init__(f"{key} has changed meanwhile; the store is at revision {revision}")
        self.key = key
        self.revision = revision


class Compacted(Fenced):
    """The store no longer knows what changed behind a revision: load it anew."""

    code = "metadata_compacted"

    def __init__(self, after: int) -> None:
        super().__init__(f"what changed behind revision {after} is no longer known")


class Unknown(Unavailable):
    """The store gave no answer: the change may have been made, or not."""

    code = "metadata_unknown"

    def __init__(self, reason: str) -> None:
        super().__init__(f"nobody knows whether the change was made: {reason}")


class NodeUnreachable(Unavailable):
    """There is no connection to the node that should answer this; it was not asked."""

    code = "node_unreachable"

    def __init__(self, node: str) -> None:
        super().__init__(f"node {node} cannot be reached")
        self.node = node


class AnswerLost(Unavailable):
    """The node that should answer this was asked and did not: it may have been done, or not."""

    code = "answer_lost"

    def __init__(self, node: str, why: str) -> None:
        super().__init__(f"nobody knows whether node {node} has done it: {why}")
        self.node = node


class CallFailed(Unavailable):
    """The node that should answer this has failed at it: its log tells more."""

    code = "call_failed"


class NodeBusy(Busy):
    """Too much is under way to the node that should answer this: try again in a moment."""

    code = "node_busy"

    def __init__(self, node: str) -> None:
        super().__init__(f"too much is under way to node {node}: try again in a moment")
        self.node = node


class StoreUnreachable(Unavailable):
    """What is agreed cannot be asked for or changed now: none of the store's members answers."""

    code = "store_unreachable"

    def __init__(self, endpoints: Sequence[str], reason: str) -> None:
        where = f" ({', '.join(endpoints)})" if endpoints else ""
        super().__init__(f"the store of what is agreed{where} does not answer: {reason}")


class NoNodeReady(Unavailable):
    """No node of the cluster is ready to hold anything: try again in a moment."""

    code = "no_node_ready"

    def __init__(self) -> None:
        super().__init__("no node of the cluster is ready; try again in a moment")


class CannotJoin(Fenced):
    """This node cannot be part of the cluster as it is: its folder, its id or the cluster is wrong."""

    code = "cannot_join"


class PartitionDamaged(Unavailable):
    """Stored messages are lost; it is not written to until an operator accepts that, or repairs it."""

    code = "partition_damaged"

    def __init__(self, topic: str, partition: int, damage: str) -> None:
        super().__init__(
            f"{topic}/{partition} is damaged and takes nothing: {damage}; "
            f"to go on without what is lost: goqueue-admin partition accept {topic}/{partition}"
        )
        self.topic = topic
        self.partition = partition


class JournalDamaged(Corrupt):
    """A journal of the broker has lost something: without it the broker would break its word."""

    code = "journal_damaged"

    def __init__(self, topic: str, partition: int, damage: str) -> None:
        super().__init__(
            f"the journal {topic}/{partition} is damaged: {damage}",
            topic=topic,
            partition=partition,
        )


class CommitLogDamaged(Corrupt):
    """The commit log has lost a round: what was acknowledged may be missing in any partition."""

    code = "commit_log_damaged"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"the commit log is damaged: {problem} in {path}; "
            "`goqueue-admin repair` tells what is left and goes on with that"
        )
        self.path = path


class NotDamaged(Fenced):
    """There is no loss to accept."""

    code = "not_damaged"

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"{topic}/{partition} is not damaged: there is no loss to accept")
        self.topic = topic
        self.partition = partition


class StorageFull(Unavailable):
    """No space is left on the disk: free some, or shorten retention."""

    code = "storage_full"


class ShuttingDown(Unavailable):
    """The broker is stopping: try again when it is back."""

    code = "shutting_down"

    def __init__(self) -> None:
        super().__init__("the broker is stopping; try again later or elsewhere")


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


class InvalidReceipt(Invalid):
    """A receipt handle that no poll has given out: its shape is wrong."""

    code = "invalid_receipt"

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:100]!r} is not a receipt handle")


class ReceiptNotFound(NotFound):
    """A receipt of a delivery that is not known (any more)."""

    code = "receipt_not_found"

    def __init__(self, receipt: object) -> None:
        super().__init__(f"receipt {receipt} is not known")


class LeaseLost(Fenced):
    """The lease ran out, or the message was given back: poll again."""

    code = "lease_lost"

    def __init__(self, receipt: object) -> None:
        super().__init__(f"the lease of receipt {receipt} has ended; its message is delivered again")


class AlreadySettled(Fenced):
    """The message was settled before: it can only be acknowledged once more."""

    code = "already_settled"

    def __init__(self, receipt: object) -> None:
        super().__init__(f"the message of receipt {receipt} is settled")


class InvalidTransactionTimeout(Invalid):
    """A time-out for transactions that is not above 0, or above the broker's limit."""

    code = "invalid_transaction_timeout"


class TransactionNotFound(NotFound):
    """There is no transaction by that id."""

    code = "transaction_not_found"

    def __init__(self, transaction: str) -> None:
        super().__init__(f"there is no transaction {transaction}")
        self.transaction = transaction


class ProducerNotFound(NotFound):
    """No producer of that id holds the transactional id: initialise one first."""

    code = "producer_not_found"

    def __init__(self, producer_id: int, transactional_id: str = "") -> None:
        whose = f" of {transactional_id}" if transactional_id else ""
        super().__init__(f"producer {producer_id}{whose} is not known: initialise one first")
        self.producer_id = producer_id


class InvalidTransactionState(Fenced):
    """The transaction is not in a state for this: none is open, or one is already."""

    code = "invalid_transaction_state"


class NotVerified(Unavailable):
    """Whether the transaction of a batch is open could not be asked; nothing was written: try again."""

    code = "not_verified"

    def __init__(self, topic: str, partition: int, reason: str) -> None:
        super().__init__(f"the transaction that writes to {topic}/{partition} cannot be asked for: {reason}")
        self.topic = topic
        self.partition = partition


class NotKept(Unavailable):
    """The keeper of the delays did not say whether it has a batch's delayed messages: send it again."""

    code = "not_kept"

    def __init__(self, topic: str, partition: int, reason: str) -> None:
        super().__init__(f"what comes later to {topic}/{partition} may not be kept: {reason}")
        self.topic = topic
        self.partition = partition


class TransactionBusy(Busy):
    """The last transaction of this id is still being finished: try again at once."""

    code = "transaction_busy"

    def __init__(self, transactional_id: str) -> None:
        super().__init__(f"the last transaction of {transactional_id} is being finished")
        self.transactional_id = transactional_id


class OffsetsUnstable(Busy):
    """Offsets of the group are part of a transaction that is not decided: ask again."""

    code = "offsets_unstable"

    def __init__(self, group: str) -> None:
        super().__init__(f"a transaction holds offsets of group {group} that are not decided")
        self.group = group


class JobOverran(Invalid):
    """Work that was asked for takes more time or memory than one request may: ask for less."""

    code = "job_overran"


class WorkshopBusy(Busy):
    """Too much work waits for the helper processes: try again in a moment."""

    code = "workshop_busy"

    def __init__(self, waiting: int) -> None:
        super().__init__(f"{waiting} jobs wait for the helper processes: try again in a moment")
        self.waiting = waiting


class JobLost(Unavailable):
    """The helper process that did the work has ended: try again."""

    code = "job_lost"


class InvalidSchema(Invalid):
    """A schema that cannot be read, or refers to what is not there."""

    code = "invalid_schema"


class InvalidSubject(InvalidName):
    """A subject of the schema registry without a name, or with one that breaks the rule for names."""

    code = "invalid_subject"


class SchemaTooComplex(InvalidSchema):
    """A schema that takes more time or memory to understand, or to compare, than one request may."""

    code = "schema_too_complex"


class InvalidSchemaVersion(Invalid):
    """A version is a number from 1 on, or `latest`."""

    code = "invalid_schema_version"


class InvalidCompatibility(Invalid):
    """Not the name of a compatibility level."""

    code = "invalid_compatibility"


class InvalidRegistryMode(Invalid):
    """Not the name of a mode, or one that cannot be taken now."""

    code = "invalid_registry_mode"


class IncompatibleSchema(Invalid):
    """The schema breaks what the subject promises to its readers or writers."""

    code = "incompatible_schema"

    def __init__(self, subject: str, problems: list[str]) -> None:
        super().__init__(f"the schema does not fit subject {subject}: {'; '.join(problems)}")
        self.problems = problems


class SchemaMismatch(InvalidRecord):
    """A message that is not as its topic's schemas ask: the text names the place."""

    code = "schema_mismatch"

    def __init__(self, problems: Mapping[int, str]) -> None:
        """`problems`: what is wrong, by the index of the message."""
        first, text = next(iter(problems.items()))
        others = f" (and {len(problems) - 1} more messages)" if len(problems) > 1 else ""
        super().__init__(text + others, record_index=first)
        self.problems = dict(problems)


class SchemaCheckTooSlow(SchemaMismatch):
    """Its topic's schema takes too long on this message, or on one that was sent with it."""

    code = "schema_check_too_slow"


class QuarantineNotReady(Unavailable):
    """The topic for messages that do not fit is being created: send again in a moment."""

    code = "quarantine_not_ready"

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} is being created for messages that do not fit")
        self.topic = topic


class RegistryReadOnly(Denied):
    """The subject's mode lets nobody change it."""

    code = "registry_read_only"


class SchemaReferenced(Busy):
    """Other schemas are built on this one: delete them first."""

    code = "schema_referenced"


class SubjectNotFound(NotFound):
    """The schema registry has no such subject, or all its versions are deleted."""

    code = "subject_not_found"

    def __init__(self, subject: str, text: str = "does not exist") -> None:
        super().__init__(f"subject {subject} {text}")
        self.subject = subject


class SchemaVersionNotFound(NotFound):
    """The subject has no such version, or it is deleted."""

    code = "schema_version_not_found"

    def __init__(self, subject: str, version: int | str, text: str = "") -> None:
        super().__init__(text or f"subject {subject} has no version {version}")
        self.subject = subject


class SubjectSoftDeleted(SubjectNotFound):
    """The subject is deleted already: what is left is to delete it for good."""

    code = "subject_soft_deleted"

    def __init__(self, subject: str) -> None:
        super().__init__(subject, "is deleted already: permanent=true deletes it for good")


class SchemaVersionSoftDeleted(SchemaVersionNotFound):
    """The version is deleted already: what is left is to delete it for good."""

    code = "schema_version_soft_deleted"

    def __init__(self, subject: str, version: int | str) -> None:
        what = f"version {version} of subject {subject}"
        super().__init__(subject, version, f"{what} is deleted already: permanent=true deletes it for good")


class SchemaNotFound(NotFound):
    """No such id, or the schema is not registered under the subject."""

    code = "schema_not_found"


class NotSoftDeleted(Busy):
    """What is to go for good is deleted the reversible way first."""

    code = "not_soft_deleted"


class VersionNotSoftDeleted(NotSoftDeleted):
    """The same of a version."""

    code = "version_not_soft_deleted"


class RegistrySettingNotFound(NotFound):
    """The subject has no setting of its own."""

    code = "registry_setting_not_found"


class RegistryModeNotFound(RegistrySettingNotFound):
    """The subject has no mode of its own."""

    code = "registry_mode_not_found"


class RecordNotHeld(Fenced):
    """A share consumer settles what it does not have, or no longer."""

    code = "record_not_held"


class ShareSessionNotFound(NotFound):
    """The broker knows of no such share session: open one with epoch 0."""

    code = "share_session_not_found"


class ShareSessionStale(Fenced):
    """A request of a share session came out of turn: open another one."""

    code = "share_session_stale"


class BackupNotFound(NotFound):
    """There is no backup of that id."""

    code = "backup_not_found"

    def __init__(self, backup_id: str) -> None:
        super().__init__(f"there is no backup {backup_id}; `goqueue-admin backup list` shows those there are")
        self.backup_id = backup_id


class BackupExists(Busy):
    """A backup of that id is kept already."""

    code = "backup_exists"

    def __init__(self, backup_id: str) -> None:
        super().__init__(f"there is a backup {backup_id} already; delete it first")
        self.backup_id = backup_id


class RestoreConflict(Busy):
    """A backup speaks of things that are here already and are different. Nothing was changed."""

    code = "restore_conflict"

    def __init__(self, backup_id: str, conflicts: Sequence[str]) -> None:
        super().__init__(
            f"backup {backup_id} was not restored, and nothing was changed: {'; '.join(conflicts)}. "
            "Leave these as they are with skip_existing, or take them away first"
        )
        self.backup_id = backup_id
        self.conflicts = tuple(conflicts)


class InvalidTenant(Invalid):
    """A tenant whose id, name or quotas cannot be."""

    code = "invalid_tenant"


class TenantNotFound(NotFound):
    """There is no tenant of that id."""

    code = "tenant_not_found"

    def __init__(self, tenant: str) -> None:
        super().__init__(f"tenant {tenant} does not exist")
        self.tenant = tenant


class TenantExists(Busy):
    """A tenant of that id is there already."""

    code = "tenant_exists"

    def __init__(self, tenant: str) -> None:
        super().__init__(f"tenant {tenant} already exists")
        self.tenant = tenant


class TenantNotEmpty(Busy):
    """The tenant has topics: delete them first, or insist and leave them to nobody."""

    code = "tenant_not_empty"

    def __init__(self, tenant: str, topic_count: int) -> None:
        super().__init__(f"tenant {tenant} has {topic_count} topics; delete them first, or force it")
        self.tenant = tenant


class SystemTenant(Denied):
    """The broker's own tenant cannot be changed."""

    code = "system_tenant"

    def __init__(self) -> None:
        super().__init__("tenant __system is the broker's own and cannot be changed")


class TopicSuspended(Denied):
    """The topic's tenant is suspended or disabled: its data stays, and nobody gets at it."""

    code = "topic_suspended"

    def __init__(self, topic: str, tenant: str, status: str) -> None:
        super().__init__(f"topic {topic} belongs to tenant {tenant}, which is {status}")
        self.topic = topic
        self.tenant = tenant


class GroupSuspended(Denied):
    """The group's tenant is suspended or disabled: nobody reads by it."""

    code = "group_suspended"

    def __init__(self, group: str, tenant: str, status: str) -> None:
        super().__init__(f"group {group} belongs to tenant {tenant}, which is {status}")
        self.group = group
        self.tenant = tenant


class QuotaExceeded(Denied):
    """The tenant's quotas do not allow it: use less, or have them raised."""

    code = "quota_exceeded"

    def __init__(self, text: str, *, tenant: str) -> None:
        super().__init__(text)
        self.tenant = tenant


class StorageQuotaExceeded(QuotaExceeded):
    """The tenant has stored as much as it may: delete something, or shorten retention."""

    code = "storage_quota_exceeded"


class RateExceeded(Busy):
    """The tenant goes faster than it may: try again after the time that is told."""

    code = "rate_exceeded"

    def __init__(self, text: str, *, retry_after_ms: int) -> None:
        super().__init__(text)
        self.retry_after_ms = retry_after_ms
