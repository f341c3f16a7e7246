"""Every setting of a node, in one table: its name, its default, how it is read, what it is for.

One name has three spellings, all made from the same word: LOG_SEGMENT_BYTES is the environment
variable GOQUEUE_LOG_SEGMENT_BYTES, the flag --log-segment-bytes, and in a file `log: {segment_bytes: …}`.
The names that GoQueue knows but this version does not serve are here too: silently ignoring a wish
for TLS or for authentication would leave a door open that its owner believes shut.
A module here for what each is about, and all of them in `SETTINGS`.
"""

from goqueue.node.config_table.access import *
from goqueue.node.config_table.cluster import *
from goqueue.node.config_table.doors import *
from goqueue.node.config_table.groups import *
from goqueue.node.config_table.schemas import *
from goqueue.node.config_table.setting import *
from goqueue.node.config_table.storage import *
from goqueue.node.config_table.telemetry import *
from goqueue.node.config_table.tls import *
from goqueue.node.config_table.topics import *

SETTINGS: tuple[Setting[object], ...] = (
    DATA_FOLDER,
    NODE_ID,
    KAFKA_LISTENERS,
    HTTP_LISTENERS,
    INSECURE,
    AUTH_ENABLED,
    API_ROOT_KEY,
    AUTH_ALLOW_HEALTH,
    AUTH_QUERY_KEYS,
    AUTH_SESSION_MS,
    AUTH_JWT_JWKS,
    AUTH_JWT_CA_FILE,
    AUTH_JWT_ISSUER,
    AUTH_JWT_AUDIENCE,
    AUTH_JWT_SKEW_MS,
    AUTH_JWT_NAME_CLAIM,
    AUTH_JWT_TENANT_CLAIM,
    AUTH_JWT_ROLES_CLAIM,
    AUTH_JWT_ROLES,
    *TLS.all,
    TLS_HANDSHAKE_MS,
    TLS_PRINCIPAL_RULES,
    *CLUSTER_TLS.all,
    KAFKA_ADVERTISED,
    HTTP_HOSTS,
    HTTP_CORS_ORIGINS,
    KAFKA_CONNECTIONS,
    KAFKA_MEMORY_BYTES,
    KAFKA_IDLE_MS,
    HTTP_CONNECTIONS,
    ADDRESS_CONNECTIONS,
    SEGMENT_BYTES,
    FLUSH_INTERVAL_MS,
    COMMIT_FILE_BYTES,
    COMMIT_FILES,
    RETENTION_MS,
    RETENTION_BYTES,
    UPKEEP_INTERVAL_MS,
    SCRUB_BYTES_PER_S,
    COMPACTION_INTERVAL_MS,
    COMPACTION_BYTES_PER_S,
    COMPACTION_MEMORY_BYTES,
    MESSAGE_BYTES,
    REQUEST_BYTES,
    JSON_BYTES,
    TOPIC_PARTITIONS_MAX,
    PARTITIONS_MAX,
    TOPICS_MAX,
    GROUPS_MAX,
    ACL_ENABLED,
    ACL_SUPER_USERS,
    AUDIT_ENABLED,
    AUDIT_FILE_BYTES,
    AUDIT_FILES,
    AUDIT_TOPIC,
    AUDIT_TOPIC_RETENTION_MS,
    AUDIT_DATA_SAMPLING,
    AUTO_CREATE,
    DEFAULT_PARTITIONS,
    PRODUCER_EXPIRY_MS,
    STAGE_EXPIRY_MS,
    SINK_EXPIRY_MS,
    BACKUP_COUNT_MAX,
    BACKUP_FOLDER,
    BACKUP_BYTES_PER_S,
    BACKUP_INTERVAL_MS,
    USAGE_DAYS,
    ENCRYPTION_KEYS,
    ENCRYPTION_KEY_FILE,
    GROUP_INITIAL_DELAY_MS,
    GROUP_SESSION_MS_MIN,
    GROUP_SESSION_MS_MAX,
    CONSUMER_SESSION_MS,
    CONSUMER_HEARTBEAT_MS,
    GROUP_MEMBERS_MAX,
    OFFSET_METADATA_BYTES,
    GROUP_IN_FLIGHT_MAX,
    OFFSETS_RETENTION_MINUTES,
    TRANSACTION_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS_MAX,
    PRODUCER_SESSION_MS,
    TRANSACTIONAL_ID_EXPIRY_MS,
    TRACING_ENABLED,
    TRACING_SAMPLING,
    TRACING_EVENTS_MAX,
    TRACING_SEARCH_BYTES,
    TRACE_EXPORT,
    TRACE_EXPORT_ENDPOINT,
    TRACE_EXPORT_HEADERS,
    TRACE_EXPORT_INTERVAL_MS,
    TRACE_EXPORT_SPANS_PER_SECOND,
    TRACE_EXPORT_FILES,
    METRICS_TOPICS_MAX,
    METRICS_GROUPS_MAX,
    METRICS_BY_PARTITION,
    LOGGING_LEVEL,
    LOGGING_FORMAT,
    LOGGING_REQUESTS,
    RESERVE_BYTES,
    HEALTH_DISK_WARN_PERCENT,
    HEALTH_DISK_FAIL_PERCENT,
    HEALTH_DISK_ENOUGH_BYTES,
    HEALTH_FSYNC_WARN_MS,
    HEALTH_FSYNC_FAIL_MS,
    HEALTH_LOOP_LAG_WARN_MS,
    HEALTH_LOOP_LAG_FAIL_MS,
    LOOP_STUCK_MS,
    SCHEMAS_TEXT_MAX,
    SCHEMAS_CHECK_LIMIT_MS,
    SCHEMAS_CHECKERS_MAX,
    SCHEMAS_CHECKERS_BYTES,
    WORKSHOP_PROCESSES,
    WORKSHOP_MEMORY_BYTES,
    WORKSHOP_JOB_LIMIT_MS,
    WORKSHOP_WAITING_MAX,
    WORKSHOP_WAIT_MS,
    WORKSHOP_IDLE_MS,
    CLUSTER_ENABLED,
    CLUSTER_ADOPT,
    CLUSTER_ETCD,
    CLUSTER_ETCD_CA_FILE,
    CLUSTER_ETCD_CERT_FILE,
    CLUSTER_ETCD_KEY_FILE,
    CLUSTER_ETCD_USER,
    CLUSTER_ETCD_PASSWORD,
    CLUSTER_NAME,
    PEER_LISTENER,
    CLUSTER_ADVERTISE,
    CLUSTER_CLIENT_ADVERTISE,
    CLUSTER_PEERS,
    CLUSTER_QUORUM,
    CLUSTER_RACK,
    CLUSTER_SESSION_MS,
    CLUSTER_SECRET,
    CLUSTER_REPLICA_LAG_MS,
    TOPICS_MIN_INSYNC,
    TOPICS_REPLICATION,
)

_FALSE_WORDS = frozenset({"", "false", "no", "off", "0"})

UNSERVED: tuple[Unserved, ...] = (
    Unserved(
        name="LISTENERS_GRPC", what="the gRPC door", off_values=frozenset({"", "off", "127.0.0.1:9000"})
    ),
    Unserved(name="GRPC_REFLECTION", what="the gRPC door", off_values=_FALSE_WORDS),
    Unserved(name="TRUSTED_PROXIES", what="trust in proxies"),
)

NOT_THE_BROKERS = frozenset(
    {
        *("GOQUEUE_SERVER", "GOQUEUE_CONTEXT", "GOQUEUE_API_KEY", "GOQUEUE_API_KEY_FILE"),
        *("GOQUEUE_CA_FILE", "GOQUEUE_CERT_FILE", "GOQUEUE_KEY_FILE"),
        *("GOQUEUE_ADMIN_SERVER", "GOQUEUE_ADMIN_API_KEY"),
        *("GOQUEUE_ADMIN_CA_FILE", "GOQUEUE_ADMIN_CERT_FILE", "GOQUEUE_ADMIN_KEY_FILE"),
    }
)
"""Variables of the command-line tools, which may well be set in the same shell."""
