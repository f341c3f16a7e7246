"""The table of what each command needs to be allowed, and of what is left out of answers about many things.

Doors ask `admit` once for a command, before it is run or passed on. A command that stands in neither table
cannot be asked for through a door: it is what nodes say to each other.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from goqueue.core.groups.patterns import reach_of
from goqueue.core.schemas.settings import GLOBAL
from goqueue.model import access as rights
from goqueue.model import (
    backups,
    client_quotas,
    commands,
    delays,
    delivery,
    group_settings,
    moving,
    sinks,
    telemetry,
    topics,
    whole_backups,
)
from goqueue.model import group_commands as groups
from goqueue.model import identity_commands as identity
from goqueue.model import schema_commands as schemas
from goqueue.model import tenant_commands as tenants
from goqueue.model import transaction_commands as transactions
from goqueue.model.access import THE_CLUSTER, Need, Operation, ResourceKind
from goqueue.model.errors import TopicNotFound, TraceNotFound
from goqueue.model.ids import TopicPartition
from goqueue.records.entries import read_entries

_RECEIPT_COLONS = 4
Needs = Callable[[Any], Iterable[Need]]
Shown = Callable[[Any, Callable[[Need], bool]], Any]
"""Of an answer and of what the one who asked may do: what of it they are shown."""


def needs_of(command: object) -> Iterable[Need]:
    """What a command needs to be allowed."""
    return NEEDS[type(command)](command)


def shown_of(command: object, reply: Any, lets: Callable[[Need], bool]) -> Any:
    """What of an answer somebody is shown."""
    shown = SHOWN.get(type(command))
    return reply if shown is None else shown(reply, lets)


def topic_need(operation: Operation, name: str) -> Need:
    return Need(operation, ResourceKind.TOPIC, name)


def group_need(operation: Operation, name: str) -> Need:
    return Need(operation, ResourceKind.GROUP, name)


def id_need(operation: Operation, name: str) -> Need:
    return Need(operation, ResourceKind.TRANSACTIONAL_ID, name)


def subject_need(operation: Operation, name: str) -> Need:
    return Need(operation, ResourceKind.SUBJECT, name)


def cluster_need(operation: Operation) -> Need:
    return Need(operation, ResourceKind.CLUSTER, THE_CLUSTER)


def _nothing(command: object) -> tuple[Need, ...]:
    """Whoever has come in may ask this; what they may not see is left out of the answer."""
    return ()


def _cluster(operation: Operation) -> Needs:
    return lambda command: (cluster_need(operation),)


def _topic(operation: Operation, field: str = "topic") -> Needs:
    return lambda command: (topic_need(operation, getattr(command, field)),)


def _source(operation: Operation, field: str = "source") -> Needs:
    return lambda command: (topic_need(operation, getattr(command, field).topic),)


def _topics(operation: Operation, places: Iterable[TopicPartition]) -> Iterable[Need]:
    return (topic_need(operation, topic) for topic in dict.fromkeys(place.topic for place in places))


def _group(operation: Operation) -> Needs:
    return lambda command: (group_need(operation, command.group),)


def _member(command: Any) -> Iterable[Need]:
    return (group_need(Operation.READ, command.who.group),)


def _transaction(command: Any) -> Iterable[Need]:
    return (id_need(Operation.WRITE, command.transactional_id),)


def _subject(operation: Operation) -> Needs:
    return lambda command: (subject_need(operation, command.subject),)


def _schema(operation: Operation) -> Needs:
    def needs(command: Any) -> Iterable[Need]:
        # What a schema is built on is read to understand it.
        references = (subject_need(Operation.READ, each.subject) for each in command.schema.references)
        return (subject_need(operation, command.subject), *references)

    return needs


def _registered(command: schemas.RegisterSchema) -> Iterable[Need]:
    needs = tuple(_schema(Operation.WRITE)(command))
    if command.schema_id is not None:
        # Ids are those of all subjects: whoever may choose them can use them up, and find out who has which.
        needs = (*needs, subject_need(Operation.ALTER, GLOBAL))
    return needs


def _sink(operation: Operation) -> Needs:
    return lambda command: (id_need(operation, command.sink),)


def _entries(command: Any) -> Iterable[Need]:
    return _topics(Operation.WRITE, (entry.target for entry in read_entries(command.entries)))


def _read(command: commands.Read) -> Iterable[Need]:
    return _topics(Operation.READ, (part.source for part in command.partitions))


def _offsets_of(command: commands.FindOffsets | commands.WatchOffsets) -> Iterable[Need]:
    named = (topic_need(Operation.DESCRIBE, topic) for topic in command.topics)
    return (*named, *_topics(Operation.DESCRIBE, command.only or ()))


def _joined(command: groups.JoinAssigned) -> Iterable[Need]:
    wanted = (topic_need(Operation.READ, topic) for topic in command.topics)
    return (group_need(Operation.READ, command.group), *wanted)


def _subscribed(command: groups.ConsumerHeartbeat) -> Iterable[Need]:
    needs = _shared(command)
    if command.pattern:
        # Who may see all that begins like that may ask for some of it; one name alone is not all of it.
        needs = (*needs, topic_need(Operation.DESCRIBE, reach_of(command.pattern)))
    return needs


def _shared(command: groups.ConsumerHeartbeat | groups.ShareHeartbeat) -> Iterable[Need]:
    named = (topic_need(Operation.DESCRIBE, topic) for topic in command.topics or ())
    return (group_need(Operation.READ, command.group), *named)


def _poll(command: delivery.Poll) -> Iterable[Need]:
    return (group_need(Operation.READ, command.group), *_topics(Operation.READ, command.sources or ()))


def _receipts(command: delivery.Settle | transactions.AddReceiptsToTransaction) -> Iterable[Need]:
    # By the word alone: there may be very many, and what is no receipt is told of one by one, later.
    names = {text.partition(":")[0] for text in command.receipts if text.count(":") == _RECEIPT_COLONS}
    return (topic_need(Operation.READ, name) for name in names)


def _commits(command: groups.CommitOffsets) -> Iterable[Need]:
    return (
        group_need(Operation.READ, command.who.group),
        *(topic_need(Operation.READ, commit.topic) for commit in command.commits),
    )


def _fetched(command: groups.FetchOffsets) -> Iterable[Need]:
    wanted = (topic_need(Operation.DESCRIBE, topic) for topic, _ in command.wanted or ())
    return (group_need(Operation.DESCRIBE, command.group), *wanted)


def _forgotten(command: groups.DeleteOffsets) -> Iterable[Need]:
    unwanted = (topic_need(Operation.READ, topic) for topic, _ in command.unwanted)
    return (group_need(Operation.DELETE, command.group), *unwanted)


def _reset(command: groups.ResetOffsets) -> Iterable[Need]:
    wanted = (topic_need(Operation.READ, topic) for topic in command.topics or ())
    return (group_need(Operation.READ, command.group), *wanted)


def _created(command: topics.CreateTopic | topics.EnsureTopic) -> Iterable[Need]:
    return (topic_need(Operation.CREATE, command.name),)


def _shown_written(command: commands.ShowWritten) -> Iterable[Need]:
    return _topics(Operation.DESCRIBE, command.sources or ())


def _published_once(command: transactions.PublishOnce) -> Iterable[Need]:
    return (topic_need(Operation.WRITE, command.topic),)


def _producer(command: transactions.InitProducer) -> Iterable[Need]:
    return (id_need(Operation.WRITE, command.transactional_id),)


def _added(command: transactions.AddPartitionsToTransaction) -> Iterable[Need]:
    return (*_transaction(command), *_topics(Operation.WRITE, command.targets))


def _pended(command: transactions.PendOffsets) -> Iterable[Need]:
    commits = (topic_need(Operation.READ, commit.topic) for commit in command.commits)
    return (*_transaction(command), group_need(Operation.READ, command.who.group), *commits)


def _staged(command: sinks.StageBatches) -> Iterable[Need]:
    return (id_need(Operation.WRITE, command.sink), *_entries(command))


def _redriven(command: delivery.Redrive) -> Iterable[Need]:
    name = command.topic
    return (
        topic_need(Operation.READ, name + delivery.DEAD_LETTER_SUFFIX),
        topic_need(Operation.WRITE, name),
    )


def _dead_letters(command: delivery.BrowseDeadLetters) -> Iterable[Need]:
    return (topic_need(Operation.READ, command.topic + delivery.DEAD_LETTER_SUFFIX),)


def _traced(command: telemetry.TraceQuery) -> Iterable[Need]:
    return (topic_need(Operation.READ, command.topic),) if command.topic else ()


def _grown(command: groups.DescribeRebalances) -> Iterable[Need]:
    asked = command.group
    return (group_need(Operation.DESCRIBE, asked),) if asked else (cluster_need(Operation.DESCRIBE),)


def _of_groups(command: groups.DescribeGroups) -> Iterable[Need]:
    return (group_need(Operation.DESCRIBE, group) for group in command.groups)


_SEES_CLUSTER = _cluster(Operation.DESCRIBE)
_RUNS_CLUSTER = _cluster(Operation.CLUSTER_ACTION)
_GIVES_RIGHTS = _cluster(Operation.ALTER)
"""More than running it: whoever may do this can give themselves everything else."""
_SEES_TOPIC = _topic(Operation.DESCRIBE, "name")
_READS_TOPIC = _topic(Operation.READ)
_WRITES_TOPIC = _topic(Operation.WRITE)
_SEES_GROUP = _group(Operation.DESCRIBE)
_READS_GROUP = _group(Operation.READ)

NEEDS: Mapping[type, Needs] = {
    # Messages.
    commands.Publish: _WRITES_TOPIC,
    commands.Append: _source(Operation.WRITE, "target"),
    commands.AppendEntries: _entries,
    commands.Read: _read,
    commands.ReadMessages: _source(Operation.READ),
    commands.ReadFrames: _source(Operation.READ),
    commands.SplitRange: _source(Operation.DESCRIBE),
    commands.FindOffset: _source(Operation.DESCRIBE),
    commands.FindEpochEnd: _source(Operation.DESCRIBE),
    commands.FindOffsets: _offsets_of,
    commands.WatchOffsets: _offsets_of,
    commands.ShowWritten: _shown_written,
    # Topics.
    topics.CreateTopic: _created,
    topics.EnsureTopic: _created,
    topics.DeleteTopic: _topic(Operation.DELETE, "name"),
    topics.AddPartitions: _topic(Operation.ALTER, "name"),
    topics.AlterSettings: _topic(Operation.ALTER_CONFIGS, "name"),
    topics.DescribeSettings: _topic(Operation.DESCRIBE_CONFIGS, "name"),
    topics.DescribeTopic: _SEES_TOPIC,
    topics.DescribeGrowth: _SEES_TOPIC,
    topics.DescribeCopy: _source(Operation.DESCRIBE),
    topics.DeleteRecords: _source(Operation.DELETE, "target"),
    topics.CompactPartition: _source(Operation.ALTER, "target"),
    topics.AcceptLoss: _RUNS_CLUSTER,
    topics.ListTopics: _nothing,
    topics.FindTopic: _nothing,
    # Groups and the queue.
    groups.JoinGroup: _READS_GROUP,
    groups.SyncGroup: _READS_GROUP,
    groups.JoinAssigned: _joined,
    groups.ConsumerHeartbeat: _subscribed,
    groups.ShareHeartbeat: _shared,
    groups.Heartbeat: _member,
    groups.HeartbeatAssigned: _member,
    groups.RevokePartitions: _member,
    groups.LeaveGroup: _READS_GROUP,
    groups.LeaveAssigned: _READS_GROUP,
    groups.CommitOffsets: _commits,
    groups.FetchOffsets: _fetched,
    groups.ListUnstable: _SEES_GROUP,
    groups.DeleteOffsets: _forgotten,
    groups.ResetOffsets: _reset,
    groups.DescribeGroup: _SEES_GROUP,
    groups.DescribeGroups: _of_groups,
    groups.DescribeAssignment: _SEES_GROUP,
    groups.DescribeSharing: _SEES_GROUP,
    groups.DescribeRebalances: _grown,
    groups.DescribeLag: _SEES_GROUP,
    groups.DeleteGroup: _group(Operation.DELETE),
    groups.DisbandGroup: _group(Operation.DELETE),
    groups.ListGroups: _nothing,
    delivery.Poll: _poll,
    delivery.Acquire: lambda command: _poll(command.wanted),
    delivery.Settle: _receipts,
    delivery.SettleRuns: _member,
    delivery.CommitPolled: _member,
    delivery.KnowMember: _member,
    delivery.ReleaseAll: _member,
    delivery.ReadBatches: _source(Operation.READ),
    delivery.ListPassed: _SEES_GROUP,
    delivery.BrowseDeadLetters: _dead_letters,
    delivery.Redrive: _redriven,
    delivery.DescribeReliability: _SEES_CLUSTER,
    delivery.DescribeLanes: _SEES_CLUSTER,
    # Delays.
    delays.CreateSchedule: _WRITES_TOPIC,
    delays.PauseSchedule: _WRITES_TOPIC,
    delays.ResumeSchedule: _WRITES_TOPIC,
    delays.EndSchedule: _WRITES_TOPIC,
    delays.DescribeSchedule: _READS_TOPIC,
    delays.ListSchedules: _READS_TOPIC,
    delays.ListDelayed: _READS_TOPIC,
    delays.GetDelayed: _READS_TOPIC,
    delays.CancelDelayed: _WRITES_TOPIC,
    delays.MoveDelayed: _WRITES_TOPIC,
    delays.CountDelayed: _SEES_CLUSTER,
    # Transactions and sinks.
    transactions.TakeProducerId: _nothing,
    transactions.DemandProducer: _WRITES_TOPIC,
    transactions.InitProducer: _producer,
    transactions.HearProducer: _transaction,
    transactions.PublishOnce: _published_once,
    transactions.BeginTransaction: _transaction,
    transactions.AddPartitionsToTransaction: _added,
    transactions.VerifyPartition: _transaction,
    transactions.AddGroupToTransaction: lambda command: (
        *_transaction(command),
        group_need(Operation.READ, command.group),
    ),
    transactions.AddReceiptsToTransaction: lambda command: (*_transaction(command), *_receipts(command)),
    transactions.PendOffsets: _pended,
    transactions.EndTransaction: _transaction,
    transactions.EndAndBump: _transaction,
    transactions.AbortTransaction: _RUNS_CLUSTER,
    transactions.AbortOpenIn: _RUNS_CLUSTER,
    transactions.DescribeTransaction: lambda command: (
        id_need(Operation.DESCRIBE, command.transactional_id),
    ),
    transactions.DescribeProducers: _source(Operation.READ),
    transactions.ListTransactions: _nothing,
    transactions.CountTransactions: _SEES_CLUSTER,
    sinks.StageBatches: _staged,
    sinks.EndEpoch: _sink(Operation.WRITE),
    sinks.CommitEpoch: _sink(Operation.WRITE),
    sinks.AbortStages: _sink(Operation.WRITE),
    sinks.TakeGeneration: _sink(Operation.WRITE),
    sinks.DescribeSink: _sink(Operation.DESCRIBE),
    sinks.ForgetSink: _sink(Operation.WRITE),
    sinks.ListSinks: _nothing,
    # The schema registry.
    schemas.TellSchema: _nothing,
    schemas.RegisterSchema: _registered,
    schemas.FindSchema: _schema(Operation.READ),
    schemas.CompareSchema: _schema(Operation.READ),
    schemas.DescribeProtobuf: _nothing,
    schemas.DeleteSchemaVersion: _subject(Operation.DELETE),
    schemas.DeleteSubject: _subject(Operation.DELETE),
    schemas.SetCompatibility: _subject(Operation.ALTER),
    schemas.SetValidation: _subject(Operation.ALTER),
    schemas.SetRegistryMode: _subject(Operation.ALTER),
    # Traces.
    telemetry.TraceMessage: _source(Operation.READ),
    telemetry.FindTrace: _nothing,
    telemetry.TraceQuery: _traced,
    telemetry.CountTraces: _SEES_CLUSTER,
    telemetry.FindTraceparents: _source(Operation.READ),
    # The cluster.
    moving.Reassign: _RUNS_CLUSTER,
    moving.CancelReassignment: _RUNS_CLUSTER,
    moving.CancelMove: _RUNS_CLUSTER,
    moving.DescribeReassignment: _SEES_CLUSTER,
    moving.ListReassignments: _SEES_CLUSTER,
    moving.ListMoving: _SEES_CLUSTER,
    moving.Decommission: _RUNS_CLUSTER,
    moving.CancelDecommission: _RUNS_CLUSTER,
    moving.DescribeDecommission: _SEES_CLUSTER,
    moving.ElectLeaders: _RUNS_CLUSTER,
    backups.CreateBackup: _RUNS_CLUSTER,
    backups.RestoreBackup: _RUNS_CLUSTER,
    backups.ListBackups: _RUNS_CLUSTER,
    backups.GetBackup: _RUNS_CLUSTER,
    backups.FetchBackup: _RUNS_CLUSTER,
    backups.BringBackup: _RUNS_CLUSTER,
    backups.DeleteBackup: _RUNS_CLUSTER,
    whole_backups.BeginWholeBackup: _RUNS_CLUSTER,
    whole_backups.ListWholeBackups: _RUNS_CLUSTER,
    whole_backups.DeleteWholeBackup: _RUNS_CLUSTER,
    tenants.CreateTenant: _RUNS_CLUSTER,
    tenants.ChangeTenant: _RUNS_CLUSTER,
    tenants.DeleteTenant: _RUNS_CLUSTER,
    tenants.SetQuotas: _RUNS_CLUSTER,
    tenants.SetStatus: _RUNS_CLUSTER,
    tenants.ResetUsage: _RUNS_CLUSTER,
    tenants.GetTenant: _SEES_CLUSTER,
    tenants.ListTenants: _SEES_CLUSTER,
    tenants.ListTenantTopics: _SEES_CLUSTER,
    tenants.ListTenantGroups: _SEES_CLUSTER,
    tenants.DescribeUsage: _SEES_CLUSTER,
    tenants.DescribeUsageHours: _SEES_CLUSTER,
    tenants.PublishWait: _nothing,
    tenants.ConsumeWait: _nothing,
    tenants.LimitReads: _nothing,
    # Permissions themselves.
    identity.CreateUser: _GIVES_RIGHTS,
    identity.ChangePassword: _GIVES_RIGHTS,
    identity.AlterScram: _GIVES_RIGHTS,
    identity.SetUserDisabled: _GIVES_RIGHTS,
    identity.DeleteUser: _GIVES_RIGHTS,
    identity.ListUsers: _SEES_CLUSTER,
    identity.CreateKey: _GIVES_RIGHTS,
    identity.RotateKey: _GIVES_RIGHTS,
    identity.RevokeKey: _GIVES_RIGHTS,
    identity.ListKeys: _GIVES_RIGHTS,
    client_quotas.AlterClientQuota: _cluster(Operation.ALTER_CONFIGS),
    client_quotas.ListClientQuotas: _cluster(Operation.DESCRIBE_CONFIGS),
    group_settings.AlterGroupSettings: _group(Operation.ALTER_CONFIGS),
    group_settings.DescribeGroupSettings: _group(Operation.DESCRIBE_CONFIGS),
    group_settings.ListGroupSettings: _nothing,
    rights.AddRules: _GIVES_RIGHTS,
    rights.RemoveRules: _GIVES_RIGHTS,
    rights.ListRules: _SEES_CLUSTER,
    rights.BindRole: _GIVES_RIGHTS,
    rights.UnbindRole: _GIVES_RIGHTS,
    rights.ListBindings: _SEES_CLUSTER,
}


def _named(reply: Any, lets: Callable[[Need], bool], *, kind: ResourceKind, name: str) -> Any:
    """Of views those that tell of what somebody may see."""
    return [view for view in reply if lets(Need(Operation.DESCRIBE, kind, str(getattr(view, name))))]


def _watched(reply: Any, lets: Callable[[Need], bool]) -> Any:
    return {at: ends for at, ends in reply.items() if lets(topic_need(Operation.DESCRIBE, at.topic))}


def _sinks(reply: Any, lets: Callable[[Need], bool]) -> Any:
    return [sink for sink in reply if lets(id_need(Operation.DESCRIBE, sink))]


def _trace(reply: telemetry.Trace, lets: Callable[[Need], bool]) -> telemetry.Trace:
    if not lets(topic_need(Operation.READ, reply.source.topic)):
        raise TraceNotFound(reply.context.trace_id)
    return reply


def _traces(reply: telemetry.TracesFound, lets: Callable[[Need], bool]) -> telemetry.TracesFound:
    seen = [trace for trace in reply.traces if lets(topic_need(Operation.READ, trace.source.topic))]
    return reply._replace(traces=seen)


def _topic_found(reply: topics.TopicView, lets: Callable[[Need], bool]) -> topics.TopicView:
    if not lets(topic_need(Operation.DESCRIBE, reply.name)):
        raise TopicNotFound(str(reply.topic_id))
    return reply


SHOWN: Mapping[type, Shown] = {
    topics.FindTopic: _topic_found,
    topics.ListTopics: partial(_named, kind=ResourceKind.TOPIC, name="name"),
    groups.ListGroups: partial(_named, kind=ResourceKind.GROUP, name="name"),
    transactions.ListTransactions: partial(
        _named, kind=ResourceKind.TRANSACTIONAL_ID, name="transactional_id"
    ),
    sinks.ListSinks: _sinks,
    telemetry.FindTrace: _trace,
    telemetry.TraceQuery: _traces,
    commands.WatchOffsets: _watched,
}
