"""The one table of what nodes do for each other: a command, its verb, what comes back, and how it is asked.

A command that is not here is answered by whichever node a client asks. One line brings a verb to its home:
`Passed(verb, type of the reply)` goes to the one node that answers for the command's place. Where several
do, `gather` asks each for its own and puts the answers together.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from goqueue.broker.access import identities
from goqueue.broker.access import verbs as access
from goqueue.broker.access.client_quotas import alter_client_quota
from goqueue.broker.backup import verbs as backups
from goqueue.broker.backup.store import KeptBackup
from goqueue.broker.backup.taking import take_share
from goqueue.broker.broker import Broker
from goqueue.broker.compaction.verbs import compact_partition
from goqueue.broker.delays import deliveries, schedules
from goqueue.broker.delays import verbs as delayed
from goqueue.broker.delays.keeping import keep_delayed
from goqueue.broker.forwarding import backups as backups_of_all
from goqueue.broker.forwarding import gathering, joining, stories
from goqueue.broker.forwarding.bulk import append_in_shares
from goqueue.broker.forwarding.gathering import Gather, at_one_or_everywhere, everywhere, where_it_is
from goqueue.broker.forwarding.settling import settle_in_shares
from goqueue.broker.forwarding.shares import publish_in_shares
from goqueue.broker.groups import assigned
from goqueue.broker.groups import verbs as groups
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.groups.offsets import Refusals, commit_offsets, delete_offsets, fetch_offsets
from goqueue.broker.groups.reset_offsets import reset_offsets
from goqueue.broker.groups.settings import alter_group_settings
from goqueue.broker.health.damage import accept_loss
from goqueue.broker.moving.reassigning import describe_copies
from goqueue.broker.queue import share_groups, stats
from goqueue.broker.queue.auto_commit import commit_polled
from goqueue.broker.queue.moving import append_moved
from goqueue.broker.queue.poll import poll
from goqueue.broker.queue.redrive import browse, redrive
from goqueue.broker.queue.settle import settle
from goqueue.broker.read import frames
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.read.read import read_messages
from goqueue.broker.read.show_written import show_written
from goqueue.broker.remote.leader import confirm_epoch, read_committed, tell_marks
from goqueue.broker.schemas import verbs as schemas
from goqueue.broker.schemas.quarantine import keep_aside
from goqueue.broker.sinks import copies
from goqueue.broker.sinks import verbs as sinks
from goqueue.broker.sinks.promised import append_staged
from goqueue.broker.tenants import verbs as tenants
from goqueue.broker.topics import verbs as topics
from goqueue.broker.topics.agreed import catch_up
from goqueue.broker.tracing import verbs as tracing
from goqueue.broker.tracing.story import hear_of_traces
from goqueue.broker.transactions import verbs as transactions
from goqueue.broker.transactions.carrying import decide_offsets, mark_transaction, seal_transaction
from goqueue.broker.transactions.hanging import answers_for
from goqueue.broker.transactions.joining import find_producers, join_transaction
from goqueue.broker.transactions.views import describe_transaction, list_transactions, transaction_stats
from goqueue.broker.write.append_entries import append_entries
from goqueue.broker.write.kept_batches import find_marks, keep_batches
from goqueue.broker.write.publish import publish
from goqueue.broker.write.publish_once import publish_once
from goqueue.model import access as rights
from goqueue.model import backups as backup
from goqueue.model import client_quotas, delays, delivery, group_settings
from goqueue.model import commands as messages
from goqueue.model import group_commands as group
from goqueue.model import groups as told
from goqueue.model import identity_commands as identity
from goqueue.model import schema_commands as registry
from goqueue.model import sinks as sink
from goqueue.model import telemetry as traces
from goqueue.model import tenant_commands as tenant
from goqueue.model import topics as topic
from goqueue.model import transaction_calls as calls
from goqueue.model import transaction_commands as producer
from goqueue.model.errors import BackupNotFound, GoQueueError, TransactionNotFound
from goqueue.model.identity import ApiKey
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.marks import ConfirmEpoch, MarksTold, ReadCommitted, TellMarks
from goqueue.model.moving import CopiesView, DescribeCopies
from goqueue.model.schemas import SchemaVersion
from goqueue.model.tenants import Tenant, TenantUsage, UsageHour
from goqueue.model.transactions import ProducerEpoch, PublishedOnce, TransactionStats, TransactionView

Verb = Callable[[Broker, Any], Awaitable[Any] | Any]


class Passed(NamedTuple):
    """A verb that nodes run for each other."""

    verb: Verb
    reply: Any
    """The type of what it gives."""
    gather: Gather | None = None
    """How several nodes are asked; None: one of them is."""
    is_patient: bool = False
    """Its gathering tries again by itself, what was not run and nothing else."""
    is_asked_once: bool = False
    """It may have been done when the answer is lost: whoever asked decides whether to ask again."""
    is_told_to_all: bool = False
    """What it changes every node is to know before it is answered."""
    afterwards: Callable[[Broker], Awaitable[None]] | None = None
    """What the node that was asked waits for, so that who asked finds there what was changed."""


def _once(verb: Verb, reply: Any) -> Passed:
    return Passed(verb, reply, is_asked_once=True)


def _agreed(verb: Verb, reply: Any) -> Passed:
    return Passed(verb, reply, is_asked_once=True, is_told_to_all=True)


async def _registry_read(broker: Broker) -> None:
    if broker.schemas.sharing is not None:
        await broker.schemas.sharing.catch_up()


_MESSAGES: Mapping[type, Passed] = {
    messages.Publish: Passed(publish, messages.Published, publish_in_shares, is_patient=True),
    messages.AppendEntries: Passed(
        append_entries, list[messages.EntryPlaced], append_in_shares, is_patient=True
    ),
    messages.KeepAside: _once(keep_aside, None),
    messages.ReadMessages: Passed(read_messages, messages.MessagesRead),
    messages.ReadFrames: Passed(frames.read_frames, messages.BatchesRead, gathering.read_nearest),
    messages.SplitRange: Passed(frames.split_points, list[int]),
    messages.FindOffset: Passed(find_offset, messages.FoundOffset),
    messages.FindOffsets: Passed(frames.offsets_at, dict[TopicPartition, int], gathering.find_in_all),
    messages.WatchOffsets: Passed(
        frames.watch_offsets, dict[TopicPartition, messages.OffsetRange], gathering.watch_all
    ),
    messages.ShowWritten: Passed(show_written, None, gathering.show_all_written),
    TellMarks: Passed(tell_marks, MarksTold),
    ConfirmEpoch: Passed(confirm_epoch, bool),
    ReadCommitted: Passed(read_committed, messages.BatchesRead),
}
_TOPICS: Mapping[type, Passed] = {
    topic.CreateTopic: _agreed(topics.create_topic, topic.TopicView),
    topic.EnsureTopic: _agreed(topics.ensure_topic, topic.TopicView),
    topic.DeleteTopic: _agreed(topics.delete_topic, None),
    topic.AddPartitions: _agreed(topics.add_partitions, topic.TopicView),
    topic.AlterSettings: _agreed(topics.alter_settings, topic.TopicView),
    topic.DescribeGrowth: Passed(topics.is_growing, bool),
    topic.DescribeTopic: Passed(topics.describe_topic, topic.TopicView, gathering.describe_by_leaders),
    topic.ListTopics: Passed(topics.list_topics, list[topic.TopicView], gathering.list_by_leaders),
    topic.DeleteRecords: Passed(topics.delete_records, int),
    topic.CompactPartition: Passed(compact_partition, topic.PartitionCompacted),
    topic.AcceptLoss: _once(accept_loss, topic.LossAccepted),
    topic.CatchUp: Passed(catch_up, None),
    DescribeCopies: Passed(describe_copies, CopiesView),
}
_GROUPS: Mapping[type, Passed] = {
    group.JoinAssigned: _once(assigned.join_assigned, told.AssignedMember),
    group.HeartbeatAssigned: Passed(assigned.heartbeat_assigned, told.Reconciliation),
    group.RevokePartitions: _once(assigned.revoke_partitions, told.Reconciliation),
    group.LeaveAssigned: _once(assigned.leave_assigned, None),
    group.DescribeAssignment: Passed(assigned.assignment_of, told.AssignedMember),
    group.DescribeSharing: Passed(assigned.sharing_of, tuple[told.Sharing, bool] | None),
    group.DescribeRebalances: Passed(
        assigned.rebalance_stats, told.RebalanceStats, at_one_or_everywhere(joining.joined_rebalances)
    ),
    group.DescribeLag: Passed(group_lag, told.GroupLag),
    group.FetchOffsets: Passed(fetch_offsets, list[told.TopicCommit]),
    group.CommitOffsets: Passed(commit_offsets, Refusals),
    group.DeleteOffsets: _once(delete_offsets, dict[TopicName, GoQueueError]),
    group.ResetOffsets: _once(reset_offsets, list[told.OffsetReset]),
    group.DescribeGroup: Passed(groups.describe_group, told.GroupView),
    group.DescribeGroups: Passed(groups.describe_groups, list[told.GroupView], gathering.describe_all_groups),
    group.ListGroups: Passed(groups.list_groups, list[told.GroupListing], gathering.list_all_groups),
    group.DeleteGroup: _once(groups.delete_group, None),
    group.DisbandGroup: _once(groups.disband_group, None),
}
_QUEUE: Mapping[type, Passed] = {
    delivery.Poll: _once(poll, delivery.Polled),
    delivery.CommitPolled: _once(commit_polled, None),
    delivery.Settle: Passed(settle, delivery.SettleOutcome, settle_in_shares, is_patient=True),
    delivery.Acquire: _once(share_groups.acquire, list[delivery.AcquiredPart]),
    delivery.KnowMember: Passed(share_groups.know_member, None),
    delivery.SettleRuns: _once(share_groups.settle_runs, None),
    delivery.ReleaseAll: Passed(share_groups.release_all, None),
    delivery.ListPassed: Passed(stats.passed_over, list[tuple[TopicPartition, delivery.PassedRun]]),
    delivery.BrowseDeadLetters: Passed(browse, delivery.DeadLetters),
    delivery.AppendMoved: Passed(append_moved, list[delivery.MovedTo]),
    delivery.Redrive: _once(redrive, delivery.Redriven),
    delivery.DescribeReliability: Passed(
        stats.reliability_stats, stats.ReliabilityStats, everywhere(joining.joined_reliability)
    ),
    delivery.DescribeLanes: Passed(stats.lane_stats, stats.AllLanes, everywhere(joining.joined_lanes)),
}
_SCHEMAS: Mapping[type, Passed] = {
    registry.RegisterSchema: Passed(schemas.register_schema, SchemaVersion, afterwards=_registry_read),
    registry.DeleteSchemaVersion: Passed(
        schemas.delete_schema_version, int, is_asked_once=True, afterwards=_registry_read
    ),
    registry.DeleteSubject: Passed(
        schemas.delete_subject, list[int], is_asked_once=True, afterwards=_registry_read
    ),
    registry.SetCompatibility: Passed(schemas.set_compatibility, None, afterwards=_registry_read),
    registry.SetValidation: Passed(schemas.set_validation, None, afterwards=_registry_read),
    registry.SetRegistryMode: Passed(schemas.set_registry_mode, None, afterwards=_registry_read),
    registry.RestoreSchemas: Passed(
        schemas.restore_schemas, int, is_asked_once=True, afterwards=_registry_read
    ),
    registry.FollowRegistry: Passed(schemas.follow_registry, registry.RegistryNews),
}
_DELAYS: Mapping[type, Passed] = {
    delays.KeepDelayed: _once(keep_delayed, list[delays.Postponed]),
    delays.FindMarks: Passed(find_marks, list[delays.ProducerMark]),
    delays.KeepBatches: _once(keep_batches, list[int]),
    delays.NoteDeliveries: Passed(deliveries.note_deliveries, None),
    delays.FindDelivered: Passed(deliveries.find_delivered, delays.DeliveredFound),
    delays.DeliverDue: Passed(deliveries.deliver_due, int),
    delays.ListDelayed: Passed(delayed.list_delayed, list[delays.DelayedView]),
    delays.GetDelayed: Passed(delayed.get_delayed, delays.DelayedView),
    delays.CancelDelayed: _once(delayed.cancel_delayed, None),
    delays.MoveDelayed: _once(delayed.move_delayed, delays.DelayedView),
    delays.CountDelayed: Passed(delayed.delay_stats, delays.DelayStats),
    delays.CreateSchedule: _once(schedules.create_schedule, delays.ScheduleView),
    delays.ListSchedules: Passed(schedules.schedule_names, list[str]),
    delays.DescribeSchedule: Passed(schedules.describe_schedule, delays.ScheduleView),
    delays.PauseSchedule: Passed(schedules.pause_schedule, delays.ScheduleView),
    delays.ResumeSchedule: Passed(schedules.resume_schedule, delays.ScheduleView),
    delays.EndSchedule: _once(schedules.end_schedule, None),
}
_TENANTS: Mapping[type, Passed] = {
    tenant.CreateTenant: _agreed(tenants.create_tenant, Tenant),
    tenant.RestoreTenant: _agreed(tenants.restore_tenant, None),
    tenant.ChangeTenant: _agreed(tenants.change_tenant, Tenant),
    tenant.SetQuotas: _agreed(tenants.set_quotas, Tenant),
    tenant.SetStatus: _agreed(tenants.set_status, Tenant),
    tenant.DeleteTenant: _agreed(tenants.delete_tenant, None),
    tenant.ListTenantGroups: Passed(tenants.tenant_groups, list[str], everywhere(joining.joined_names)),
    tenant.DescribeUsage: Passed(tenants.tenant_usage, TenantUsage, everywhere(joining.joined_usage)),
    tenant.DescribeUsageHours: Passed(
        tenants.usage_hours, dict[int, UsageHour], everywhere(joining.joined_hours)
    ),
    tenant.ResetUsage: Passed(tenants.reset_usage, TenantUsage, everywhere(joining.joined_usage)),
    tenant.TellHoldings: Passed(
        tenants.tell_holdings, dict[str, tenant.Holding], everywhere(joining.joined_holdings)
    ),
}
_ACCESS: Mapping[type, Passed] = {
    rights.AddRules: _agreed(access.add_rules, None),
    rights.RemoveRules: _agreed(access.remove_rules, list[rights.Rule]),
    rights.BindRole: _agreed(access.bind_role, None),
    rights.UnbindRole: _agreed(access.unbind_role, None),
    client_quotas.AlterClientQuota: _agreed(alter_client_quota, None),
    group_settings.AlterGroupSettings: _agreed(alter_group_settings, None),
    identity.CreateUser: _agreed(identities.create_user, None),
    identity.ChangePassword: _agreed(identities.change_password, None),
    identity.AlterScram: _agreed(identities.alter_scram, None),
    identity.SetUserDisabled: _agreed(identities.set_user_disabled, None),
    identity.DeleteUser: _agreed(identities.delete_user, None),
    identity.CreateKey: _agreed(identities.create_key, None),
    identity.RotateKey: _agreed(identities.rotate_key, ApiKey),
    identity.RevokeKey: _agreed(identities.revoke_key, None),
}
_TRACING: Mapping[type, Passed] = {
    traces.TraceMessage: Passed(tracing.trace_of, traces.Trace, stories.trace_by_leader),
    traces.FindTrace: Passed(tracing.trace_by_id, traces.Trace, stories.find_everywhere),
    traces.TraceQuery: Passed(tracing.find_traces, traces.TracesFound, stories.search_everywhere),
    traces.HearOfTraces: Passed(hear_of_traces, list[traces.Heard]),
    traces.CountTraces: Passed(
        tracing.trace_stats, traces.TraceStats, everywhere(joining.joined_trace_stats)
    ),
}

_TRANSACTIONS: Mapping[type, Passed] = {
    producer.InitProducer: Passed(transactions.init_transactional, ProducerEpoch),
    producer.HearProducer: Passed(transactions.hear_producer, str),
    producer.PublishOnce: Passed(
        publish_once, PublishedOnce, gathering.publish_once_at_leader, is_asked_once=True
    ),
    producer.BeginTransaction: _once(transactions.begin_transaction, str),
    producer.AddPartitionsToTransaction: Passed(transactions.add_partitions, None),
    producer.AddGroupToTransaction: Passed(transactions.add_group, None),
    producer.AddReceiptsToTransaction: Passed(transactions.add_receipts, None),
    producer.PendOffsets: Passed(transactions.pend_offsets, Refusals),
    producer.EndTransaction: Passed(transactions.end_transaction, None),
    producer.AbortTransaction: Passed(
        transactions.abort_transaction,
        TransactionView,
        where_it_is(TransactionNotFound),
        is_asked_once=True,
    ),
    producer.DescribeTransaction: Passed(describe_transaction, TransactionView),
    producer.ListTransactions: Passed(
        list_transactions, list[TransactionView], everywhere(joining.joined_transactions)
    ),
    producer.CountTransactions: Passed(
        transaction_stats, TransactionStats, everywhere(joining.joined_transaction_stats)
    ),
}
_AMONG_COORDINATORS: Mapping[type, Passed] = {
    calls.JoinTransaction: Passed(join_transaction, str),
    calls.SealTransaction: Passed(seal_transaction, list[int]),
    calls.MarkTransaction: Passed(mark_transaction, None),
    calls.DecideOffsets: Passed(decide_offsets, None),
    calls.FindProducers: Passed(find_producers, dict[int, str]),
    calls.AnswersFor: Passed(answers_for, bool),
}

_SINKS: Mapping[type, Passed] = {
    sink.TakeGeneration: Passed(sinks.take_generation, sink.SinkView),
    sink.StageBatches: Passed(sinks.stage, sink.Staged),
    sink.CommitEpoch: Passed(sinks.commit_epoch, sink.EpochEnded),
    sink.AbortStages: Passed(sinks.abort_stages, int),
    sink.DescribeSink: Passed(sinks.describe_sink, sink.SinkView),
    sink.ForgetSink: _once(sinks.forget_sink, None),
    sink.ListSinks: Passed(sinks.list_sinks, list[str], everywhere(joining.joined_names)),
    sink.KeepStage: Passed(copies.keep_stage, None),
    sink.FetchStage: Passed(copies.fetch_stage, sink.StageFound | None),
    sink.DropStages: Passed(copies.drop_stages, None),
    sink.AppendStaged: Passed(append_staged, list[int], append_in_shares, is_patient=True),
}
_BACKUPS: Mapping[type, Passed] = {
    backup.TakeShare: Passed(take_share, backup.Backup, backups_of_all.take_everywhere),
    backup.CreateBackup: _once(backups.create_backup, KeptBackup),
    backup.BringBackup: _once(backups.bring_backup, KeptBackup),
    backup.ListBackups: Passed(
        backups.list_backups, list[backup.BackupListing], everywhere(backups_of_all.joined_listings)
    ),
    backup.GetBackup: Passed(backups.get_backup, KeptBackup, where_it_is(BackupNotFound)),
    backup.FetchBackup: Passed(backups.backup_document, bytes, where_it_is(BackupNotFound)),
    backup.DeleteBackup: Passed(backups.delete_backup, None, where_it_is(BackupNotFound), is_asked_once=True),
}

PASSED_ON: Mapping[type, Passed] = {
    **_MESSAGES,
    **_TOPICS,
    **_GROUPS,
    **_QUEUE,
    **_SCHEMAS,
    **_DELAYS,
    **_TENANTS,
    **_ACCESS,
    **_TRACING,
    **_TRANSACTIONS,
    **_AMONG_COORDINATORS,
    **_SINKS,
    **_BACKUPS,
}
