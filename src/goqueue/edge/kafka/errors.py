"""One table: what each error of the house is called in Kafka's protocol.

Where there is a choice, the code is the one that makes today's clients do the right thing: refresh
their metadata, try again, or tell the application.
"""

from kio.schema.errors import ErrorCode

from goqueue.model import errors

KAFKA_CODE_BY_ERROR: dict[type[errors.GoQueueError], ErrorCode] = {
    errors.GoQueueError: ErrorCode.unknown_server_error,
    # Fix the request.
    errors.Invalid: ErrorCode.invalid_request,
    errors.InvalidName: ErrorCode.invalid_request,
    errors.InvalidTopicName: ErrorCode.invalid_topic_exception,
    errors.InvalidRule: ErrorCode.invalid_request,
    errors.InvalidClientQuota: ErrorCode.invalid_request,
    errors.UnsupportedMediaType: ErrorCode.invalid_request,  # web pages speak HTTP alone
    errors.InvalidPartitionCount: ErrorCode.invalid_partitions,
    errors.InvalidReplication: ErrorCode.invalid_replication_factor,
    errors.InvalidAssignment: ErrorCode.invalid_replica_assignment,
    errors.InvalidSetting: ErrorCode.invalid_config,
    errors.InvalidBatch: ErrorCode.invalid_record,
    errors.WrongChecksum: ErrorCode.corrupt_message,
    errors.UnsupportedFormat: ErrorCode.unsupported_for_message_format,
    errors.InvalidRecord: ErrorCode.invalid_record,
    errors.KeyRequired: ErrorCode.invalid_record,
    errors.InvalidTimestamp: ErrorCode.invalid_timestamp,
    errors.MessageTooLarge: ErrorCode.message_too_large,
    errors.RequestTooLarge: ErrorCode.message_too_large,
    errors.OffsetOutOfRange: ErrorCode.offset_out_of_range,
    errors.NotSupported: ErrorCode.unsupported_version,
    errors.InvalidSchedule: ErrorCode.invalid_request,
    errors.InvalidReceipt: ErrorCode.invalid_request,
    errors.InvalidGroupName: ErrorCode.invalid_group_id,
    errors.InvalidSessionTimeout: ErrorCode.invalid_session_timeout,
    errors.InconsistentProtocol: ErrorCode.inconsistent_group_protocol,
    errors.MetadataTooLarge: ErrorCode.offset_metadata_too_large,
    errors.UnsupportedAssignor: ErrorCode.unsupported_assignor,
    errors.InvalidTransactionTimeout: ErrorCode.invalid_transaction_timeout,
    errors.InvalidPattern: ErrorCode.invalid_regular_expression,
    errors.JobOverran: ErrorCode.invalid_request,
    errors.InvalidSchema: ErrorCode.invalid_request,
    errors.InvalidSubject: ErrorCode.invalid_request,
    errors.SchemaTooComplex: ErrorCode.invalid_request,
    errors.InvalidSchemaVersion: ErrorCode.invalid_request,
    errors.InvalidCompatibility: ErrorCode.invalid_request,
    errors.InvalidRegistryMode: ErrorCode.invalid_request,
    errors.IncompatibleSchema: ErrorCode.invalid_request,
    errors.SchemaMismatch: ErrorCode.invalid_record,
    errors.SchemaCheckTooSlow: ErrorCode.invalid_record,
    errors.InvalidTenant: ErrorCode.unknown_server_error,
    # What was named is not here: clients refresh their metadata.
    errors.NotFound: ErrorCode.unknown_topic_or_partition,
    errors.TopicNotFound: ErrorCode.unknown_topic_or_partition,
    errors.PartitionNotFound: ErrorCode.unknown_topic_or_partition,
    errors.SinkNotFound: ErrorCode.unknown_server_error,  # sinks have no place in Kafka's protocol
    errors.StageNotFound: ErrorCode.unknown_server_error,
    errors.RuleNotFound: ErrorCode.resource_not_found,
    errors.MessageNotFound: ErrorCode.offset_out_of_range,
    errors.TraceNotFound: ErrorCode.unknown_server_error,  # nor have traces
    errors.DelayedNotFound: ErrorCode.unknown_server_error,  # nor have delays and schedules
    errors.ScheduleNotFound: ErrorCode.unknown_server_error,
    errors.ReceiptNotFound: ErrorCode.invalid_record_state,
    errors.SubjectNotFound: ErrorCode.unknown_server_error,  # nor have schemas
    errors.SchemaVersionNotFound: ErrorCode.unknown_server_error,
    errors.SubjectSoftDeleted: ErrorCode.unknown_server_error,
    errors.SchemaVersionSoftDeleted: ErrorCode.unknown_server_error,
    errors.SchemaNotFound: ErrorCode.unknown_server_error,
    errors.RegistrySettingNotFound: ErrorCode.unknown_server_error,
    errors.RegistryModeNotFound: ErrorCode.unknown_server_error,
    errors.NodeNotFound: ErrorCode.broker_id_not_registered,
    errors.ReassignmentNotFound: ErrorCode.no_reassignment_in_progress,
    errors.TenantNotFound: ErrorCode.unknown_server_error,
    errors.BackupNotFound: ErrorCode.unknown_server_error,  # nor have backups
    errors.GroupNotFound: ErrorCode.group_id_not_found,
    errors.TransactionNotFound: ErrorCode.transactional_id_not_found,
    errors.ProducerNotFound: ErrorCode.invalid_producer_id_mapping,
    errors.Denied: ErrorCode.topic_authorization_failed,
    errors.NotAuthenticated: ErrorCode.sasl_authentication_failed,
    errors.InvalidIdentity: ErrorCode.unacceptable_credential,
    errors.UserNotFound: ErrorCode.resource_not_found,
    errors.UserExists: ErrorCode.duplicate_resource,
    errors.KeyNotFound: ErrorCode.resource_not_found,
    errors.KeyExists: ErrorCode.duplicate_resource,
    errors.NotAllowed: ErrorCode.cluster_authorization_failed,
    errors.TopicNotAllowed: ErrorCode.topic_authorization_failed,
    errors.GroupNotAllowed: ErrorCode.group_authorization_failed,
    errors.ClusterNotAllowed: ErrorCode.cluster_authorization_failed,
    errors.TransactionalIdNotAllowed: ErrorCode.transactional_id_authorization_failed,
    errors.HostDenied: ErrorCode.unknown_server_error,
    errors.OriginDenied: ErrorCode.unknown_server_error,
    errors.InternalTopic: ErrorCode.invalid_topic_exception,
    errors.NotPartitionOwner: ErrorCode.group_authorization_failed,
    errors.RegistryReadOnly: ErrorCode.unknown_server_error,
    errors.TopicSuspended: ErrorCode.topic_authorization_failed,
    errors.GroupSuspended: ErrorCode.group_authorization_failed,
    errors.QuotaExceeded: ErrorCode.policy_violation,
    errors.TooManyTopics: ErrorCode.policy_violation,
    errors.TooManyGroups: ErrorCode.policy_violation,
    errors.StorageQuotaExceeded: ErrorCode.policy_violation,
    errors.SystemTenant: ErrorCode.unknown_server_error,  # nor have tenants
    # The caller's view is out of date.
    errors.Fenced: ErrorCode.fenced_leader_epoch,
    errors.LeaderEpochFenced: ErrorCode.fenced_leader_epoch,
    errors.Outdated: ErrorCode.request_timed_out,  # which clients simply try again
    errors.ReassignmentOver: ErrorCode.no_reassignment_in_progress,
    errors.ElectionNotNeeded: ErrorCode.election_not_needed,
    errors.Compacted: ErrorCode.request_timed_out,
    errors.OutOfSequence: ErrorCode.out_of_order_sequence_number,
    errors.DuplicateSequence: ErrorCode.duplicate_sequence_number,
    errors.ProducerFenced: ErrorCode.invalid_producer_epoch,
    errors.InvalidTransactionState: ErrorCode.invalid_txn_state,
    errors.UnknownMember: ErrorCode.unknown_member_id,
    errors.MemberIdRequired: ErrorCode.member_id_required,
    errors.InstanceFenced: ErrorCode.fenced_instance_id,
    errors.IllegalGeneration: ErrorCode.illegal_generation,
    errors.RebalanceInProgress: ErrorCode.rebalance_in_progress,
    errors.NotRebalancing: ErrorCode.illegal_generation,
    errors.MemberEpochFenced: ErrorCode.fenced_member_epoch,
    errors.StaleMemberEpoch: ErrorCode.stale_member_epoch,
    errors.RecordNotHeld: ErrorCode.invalid_record_state,
    errors.ShareSessionNotFound: ErrorCode.share_session_not_found,
    errors.ShareSessionStale: ErrorCode.invalid_share_session_epoch,
    errors.SinkFenced: ErrorCode.invalid_producer_epoch,
    errors.SinkOfAnother: ErrorCode.invalid_producer_epoch,
    errors.LeaseLost: ErrorCode.invalid_record_state,
    errors.AlreadySettled: ErrorCode.invalid_record_state,
    # Later, or elsewhere: these are retriable for every client.
    errors.Busy: ErrorCode.request_timed_out,
    errors.WorkshopBusy: ErrorCode.request_timed_out,
    errors.NodeBusy: ErrorCode.request_timed_out,
    errors.ReassignmentInProgress: ErrorCode.reassignment_in_progress,
    errors.TopicExists: ErrorCode.topic_already_exists,
    errors.ScheduleExists: ErrorCode.unknown_server_error,
    errors.GroupNotEmpty: ErrorCode.non_empty_group,
    errors.GroupSubscribed: ErrorCode.group_subscribed_to_topic,
    errors.GroupFull: ErrorCode.group_max_size_reached,
    errors.TransactionBusy: ErrorCode.concurrent_transactions,
    errors.OffsetsUnstable: ErrorCode.unstable_offset_commit,
    errors.InstanceInUse: ErrorCode.unreleased_instance_id,
    errors.SchemaReferenced: ErrorCode.unknown_server_error,
    errors.NotSoftDeleted: ErrorCode.unknown_server_error,
    errors.VersionNotSoftDeleted: ErrorCode.unknown_server_error,
    errors.TenantExists: ErrorCode.unknown_server_error,
    errors.TenantNotEmpty: ErrorCode.unknown_server_error,
    errors.RateExceeded: ErrorCode.throttling_quota_exceeded,
    errors.TooManyConnections: ErrorCode.throttling_quota_exceeded,
    errors.BackupExists: ErrorCode.unknown_server_error,
    errors.BackupUnderWay: ErrorCode.unknown_server_error,
    errors.RestoreConflict: ErrorCode.unknown_server_error,
    errors.Unavailable: ErrorCode.leader_not_available,
    errors.Unknown: ErrorCode.request_timed_out,
    errors.NodeUnreachable: ErrorCode.request_timed_out,
    errors.AnswerLost: ErrorCode.request_timed_out,
    errors.CallFailed: ErrorCode.unknown_server_error,
    errors.StoreUnreachable: ErrorCode.request_timed_out,
    errors.CannotJoin: ErrorCode.unknown_server_error,
    errors.NoNodeReady: ErrorCode.leader_not_available,
    errors.LeaderEpochUnknown: ErrorCode.unknown_leader_epoch,
    errors.ShuttingDown: ErrorCode.not_leader_or_follower,
    errors.NotLeader: ErrorCode.not_leader_or_follower,
    errors.LeadershipLost: ErrorCode.not_leader_or_follower,
    errors.NoLeader: ErrorCode.leader_not_available,
    errors.NotCoordinator: ErrorCode.not_coordinator,
    errors.CoordinatorLoading: ErrorCode.coordinator_load_in_progress,
    errors.NotController: ErrorCode.not_controller,
    errors.PreferredLeaderAway: ErrorCode.preferred_leader_not_available,
    errors.NoEligibleLeader: ErrorCode.eligible_leaders_not_available,
    errors.NotEnoughReplicas: ErrorCode.not_enough_replicas,
    errors.NotVerified: ErrorCode.not_enough_replicas,  # which every producer tries again
    errors.NotKept: ErrorCode.not_enough_replicas,
    errors.EpochInterrupted: ErrorCode.request_timed_out,  # no Kafka client hears of sinks
    errors.NotEnoughReplicasAfterAppend: ErrorCode.not_enough_replicas_after_append,
    errors.OffsetNotAvailable: ErrorCode.offset_not_available,
    errors.QuarantineNotReady: ErrorCode.leader_not_available,
    errors.JobLost: ErrorCode.leader_not_available,
    errors.StorageFailed: ErrorCode.kafka_storage_error,
    errors.StorageFull: ErrorCode.kafka_storage_error,
    errors.PartitionDamaged: ErrorCode.kafka_storage_error,
    errors.CompactionRefused: ErrorCode.kafka_storage_error,  # only HTTP asks for it
    errors.CommitLogDamaged: ErrorCode.unknown_server_error,  # nobody is served then
    errors.JournalDamaged: ErrorCode.unknown_server_error,  # nobody is served then
    errors.NotDamaged: ErrorCode.unknown_server_error,
    errors.Corrupt: ErrorCode.corrupt_message,
}

_OF_COORDINATORS = (errors.NotCoordinator, errors.CoordinatorLoading)
_TEXT_CHARACTERS_MAX = 1_000
"""Texts quote what the client sent, and an old string field holds at most 32,767 bytes."""


def kafka_code(error: errors.GoQueueError) -> ErrorCode:
    """What to call an error in a reply. A test sees to it that the table knows every one."""
    return KAFKA_CODE_BY_ERROR.get(type(error), ErrorCode.unknown_server_error)


def coordinator_code(error: errors.GoQueueError) -> ErrorCode:
    """The same for requests about groups: what clients of a group try again is an absent coordinator."""
    if isinstance(error, errors.Unavailable) and not isinstance(error, _OF_COORDINATORS):
        return ErrorCode.coordinator_not_available
    return kafka_code(error)


def transaction_code(error: errors.GoQueueError, *, knows_fenced: bool = False) -> ErrorCode:
    """The same for requests about transactions; newer versions have a word for a fenced producer."""
    if knows_fenced and isinstance(error, errors.ProducerFenced):
        return ErrorCode.producer_fenced
    return coordinator_code(error)


def kafka_text(error: errors.GoQueueError) -> str:
    """What to say about an error in a reply."""
    return str(error)[:_TEXT_CHARACTERS_MAX]
