"""The table of what is served: one row an API. ApiVersions answers from it, so it tells no more and no less.

librdkafka refuses to compress when Produce does not begin at version 0, so it does; old record formats
are then refused a partition at a time, with the reason.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kio.schema.errors import ErrorCode

from goqueue.edge.kafka import fetch, offset_commit, produce
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.handlers import (
    acls,
    alter_configs,
    client_quotas,
    cluster,
    configs,
    consumer_groups,
    groups,
    groups_admin,
    groups_offsets,
    log_dirs,
    logins,
    offsets,
    producers,
    quorum,
    reassignments,
    share_fetch,
    share_groups,
    share_offsets,
    topic_partitions,
    topics,
    transactions,
    transactions_admin,
)
from goqueue.edge.kafka.later import Answer
from goqueue.edge.kafka.metering import metered
from goqueue.edge.kafka.schemas import Reply, TellingToWait, decode_request, encode_reply, has_more_items
from goqueue.edge.kafka.wire import Reader
from goqueue.model.ports import Buffer
from goqueue.model.settings import KiB

if TYPE_CHECKING:
    from kio.schema.api_versions.v4.request import ApiVersionsRequest

Serve = Callable[[Context, int, Reader], Answer | Awaitable[Answer]]
"""Version and the rest of the frame in, the body of the reply out: at once, or when it can be had."""
Handler = Callable[[Context, Any], Coroutine[Any, Any, Reply]]
"""The request's type is the row's business: each handler declares the newest version it serves."""


class ApiKey(IntEnum):
    """Kafka's numbers for the requests that are served."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    DESCRIBE_SHARE_GROUP_OFFSETS = 90


class Api(NamedTuple):
    key: ApiKey
    first_version: int
    last_version: int
    first_flexible: int
    """From here on, headers and fields may carry tagged fields."""
    serve: Serve | None
    """None for Produce alone: it is begun and finished apart, see `connection`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRange:
    api_key: int
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedFeature:
    name: str
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedFeature:
    """What all brokers of a cluster have agreed upon: clients go by this."""

    name: str
    min_version_level: int
    max_version_level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsReply(Reply):
    api_keys: tuple[ApiRange, ...]
    error_code: ErrorCode = ErrorCode.none
    supported_features: tuple[SupportedFeature, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[FinalizedFeature, ...] = ()
    zk_migration_ready: bool = False


_SUPPORTED = (SupportedFeature(name="transaction.version", min_version=0, max_version=2),)
_FINALIZED = (FinalizedFeature(name="transaction.version", min_version_level=2, max_version_level=2),)
_KNOWS_VERSION_0 = 4
"""Clients that ask in older versions stop at a feature that is supported from version 0 on."""


async def api_versions(_context: Context, request: "ApiVersionsRequest") -> ApiVersionsReply:
    """What is served, by the table below."""
    return ApiVersionsReply(
        api_keys=_ranges(),
        supported_features=_SUPPORTED if request.__version__ >= _KNOWS_VERSION_0 else (),
        finalized_features_epoch=0,
        finalized_features=_FINALIZED,
    )


async def unsupported_api_versions(_context: Context, _version: int, _reader: Reader) -> list[Buffer]:
    """The answer to a version of ApiVersions from the future: the oldest layout, which every client reads."""
    reply = ApiVersionsReply(api_keys=_ranges(), error_code=ErrorCode.unsupported_version)
    return [encode_reply(ApiKey.API_VERSIONS, 0, reply)]


def _ranges() -> tuple[ApiRange, ...]:
    return tuple(
        ApiRange(api_key=key, min_version=api.first_version, max_version=api.last_version)
        for key, api in sorted(APIS.items())
    )


def _by_schema(key: ApiKey, first: int, last: int, first_flexible: int, handler: Handler) -> Api:
    async def serve(context: Context, version: int, reader: Reader) -> list[Buffer]:
        if reader.left > _LARGE_BYTES:
            # To read 50,000 items takes 200 ms. Beside another thread the loop goes on, if slower.
            read = partial(decode_request, key, version, reader)
            request = await context.broker.threads.run(read)
        else:
            request = decode_request(key, version, reader)
        work = handler(context, request)
        reply = await (metered(context, work) if context.broker.client_quotas.entries else work)
        hold_ms = context.throttle.hold_ms
        told = TellingToWait(reply, hold_ms) if hold_ms else reply
        if has_more_items(reply, _MANY_ITEMS):
            return [await context.broker.threads.run(partial(encode_reply, key, version, told))]
        return [encode_reply(key, version, told)]

    return Api(key, first, last, first_flexible, serve)


_NEVER = 1 << 15
_LARGE_BYTES = 16 * KiB
_MANY_ITEMS = 1_000
_TABLE = (
    Api(ApiKey.PRODUCE, 0, 13, produce.FIRST_FLEXIBLE, None),
    Api(ApiKey.FETCH, 4, 18, fetch.FIRST_FLEXIBLE, fetch.fetch),
    _by_schema(ApiKey.LIST_OFFSETS, 1, 11, 6, offsets.list_offsets),
    _by_schema(ApiKey.METADATA, 0, 13, 9, cluster.metadata),
    Api(ApiKey.OFFSET_COMMIT, 2, 9, offset_commit.FIRST_FLEXIBLE, offset_commit.offset_commit),
    _by_schema(ApiKey.OFFSET_FETCH, 1, 9, 6, groups_offsets.offset_fetch),
    _by_schema(ApiKey.FIND_COORDINATOR, 0, 6, 3, cluster.find_coordinator),
    _by_schema(ApiKey.JOIN_GROUP, 0, 9, 6, groups.join_group),
    _by_schema(ApiKey.HEARTBEAT, 0, 4, 4, groups.heartbeat),
    _by_schema(ApiKey.LEAVE_GROUP, 0, 5, 4, groups.leave_group),
    _by_schema(ApiKey.SYNC_GROUP, 0, 5, 4, groups.sync_group),
    _by_schema(ApiKey.DESCRIBE_GROUPS, 0, 5, 5, groups_admin.describe_groups),
    _by_schema(ApiKey.LIST_GROUPS, 0, 5, 3, groups_admin.list_groups),
    _by_schema(ApiKey.SASL_HANDSHAKE, 0, 1, _NEVER, logins.sasl_handshake),
    _by_schema(ApiKey.API_VERSIONS, 0, 4, 3, api_versions),
    _by_schema(ApiKey.CREATE_TOPICS, 2, 7, 5, topics.create_topics),
    _by_schema(ApiKey.DELETE_TOPICS, 1, 6, 4, topics.delete_topics),
    _by_schema(ApiKey.DELETE_RECORDS, 0, 2, 2, offsets.delete_records),
    _by_schema(ApiKey.INIT_PRODUCER_ID, 0, 6, 2, producers.init_producer_id),
    _by_schema(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, 4, offsets.offset_for_leader_epoch),
    _by_schema(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, 3, transactions.add_partitions_to_txn),
    _by_schema(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, 3, transactions.add_offsets_to_txn),
    _by_schema(ApiKey.END_TXN, 0, 5, 3, transactions.end_txn),
    _by_schema(ApiKey.WRITE_TXN_MARKERS, 1, 1, 1, transactions_admin.write_txn_markers),
    _by_schema(ApiKey.TXN_OFFSET_COMMIT, 0, 5, 3, transactions.txn_offset_commit),
    _by_schema(ApiKey.DESCRIBE_ACLS, 1, 3, 2, acls.describe_acls),
    _by_schema(ApiKey.CREATE_ACLS, 1, 3, 2, acls.create_acls),
    _by_schema(ApiKey.DELETE_ACLS, 1, 3, 2, acls.delete_acls),
    _by_schema(ApiKey.DESCRIBE_CONFIGS, 1, 4, 4, configs.describe_configs),
    _by_schema(ApiKey.ALTER_CONFIGS, 0, 2, 2, alter_configs.alter_configs),
    _by_schema(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, 2, log_dirs.alter_replica_log_dirs),
    _by_schema(ApiKey.DESCRIBE_LOG_DIRS, 1, 4, 2, log_dirs.describe_log_dirs),
    _by_schema(ApiKey.SASL_AUTHENTICATE, 0, 2, 2, logins.sasl_authenticate),
    _by_schema(ApiKey.CREATE_PARTITIONS, 0, 3, 2, topics.create_partitions),
    _by_schema(ApiKey.DELETE_GROUPS, 0, 2, 2, groups_admin.delete_groups),
    _by_schema(ApiKey.ELECT_LEADERS, 0, 2, 2, reassignments.elect_leaders_of),
    _by_schema(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, 1, alter_configs.incremental_alter_configs),
    _by_schema(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, 0, reassignments.alter_partition_reassignments),
    _by_schema(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, 0, reassignments.list_partition_reassignments),
    _by_schema(ApiKey.OFFSET_DELETE, 0, 0, _NEVER, groups_offsets.offset_delete),
    _by_schema(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, 1, client_quotas.describe_client_quotas),
    _by_schema(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, 1, client_quotas.alter_client_quotas),
    _by_schema(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, 0, logins.describe_user_scram_credentials),
    _by_schema(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, 0, logins.alter_user_scram_credentials),
    _by_schema(ApiKey.DESCRIBE_QUORUM, 0, 2, 0, quorum.describe_quorum),
    _by_schema(ApiKey.DESCRIBE_CLUSTER, 0, 2, 0, cluster.describe_cluster),
    _by_schema(ApiKey.DESCRIBE_PRODUCERS, 0, 0, 0, producers.describe_producers),
    _by_schema(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, 0, transactions_admin.describe_transactions),
    _by_schema(ApiKey.LIST_TRANSACTIONS, 0, 1, 0, transactions_admin.list_transactional_ids),
    _by_schema(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, 0, consumer_groups.consumer_group_heartbeat),
    _by_schema(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, 0, consumer_groups.consumer_group_describe),
    _by_schema(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, 0, configs.list_config_resources),
    _by_schema(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, 0, topic_partitions.describe_topic_partitions),
    _by_schema(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, 0, share_groups.share_group_heartbeat),
    _by_schema(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, 0, share_groups.share_group_describe),
    _by_schema(ApiKey.SHARE_FETCH, 1, 2, 0, share_fetch.share_fetch),
    _by_schema(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, 0, share_fetch.share_acknowledge),
    _by_schema(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, 0, share_offsets.describe_share_group_offsets),
)
APIS: dict[int, Api] = {api.key: api for api in _TABLE}

UNSUPPORTED_API_VERSIONS = Api(ApiKey.API_VERSIONS, 0, 0, _NEVER, unsupported_api_versions)
"""Stands in for the row of ApiVersions when a client speaks a version that is not in it."""
