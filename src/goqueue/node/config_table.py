"""Every setting of a node, in one table: its name, its default, how it is read, what it is for.

One name has three spellings, all made from the same word: LOG_SEGMENT_BYTES is the environment
variable GOQUEUE_LOG_SEGMENT_BYTES, the flag --log-segment-bytes, and in a file `log: {segment_bytes: …}`.
The names that GoQueue knows but this version does not serve are here too: silently ignoring a wish
for TLS or for authentication would leave a door open that its owner believes shut.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from ssl import TLSVersion
from typing import Generic, TypeVar

from goqueue.edge.principal_rules import PrincipalRules
from goqueue.edge.tls import ClientAuth
from goqueue.edge.token_claims import SKEW_MS_MAX
from goqueue.model.access import Role
from goqueue.model.settings import KiB
from goqueue.node.config_values import (
    Address,
    Listening,
    StoreEndpoints,
    address,
    addresses,
    advertised,
    client_auth,
    file_path,
    folder,
    host_names,
    key_set,
    listeners,
    logging_level,
    node_id,
    off_or_whole_number,
    one_of,
    origins,
    principals,
    role_values,
    root_key,
    share,
    short_name,
    size,
    store_endpoints,
    switch,
    tls_version,
    whole_number,
    words,
)
from goqueue.node.sealing import read_keys
from goqueue.node.tracing import config as export_config

T_co = TypeVar("T_co", covariant=True)

PREFIX = "GOQUEUE_"
CONFIG_VARIABLE = "GOQUEUE_CONFIG"
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting(Generic[T_co]):
    name: str
    default: str
    """As a user would write it; read by the same reader as everything else."""
    read: Callable[[str], T_co]
    help: str
    flag_alias: str | None = None
    """Another spelling of the flag, which people know from elsewhere."""
    is_bare: bool = False
    """The flag alone, without a value, is enough."""

    @property
    def variable(self) -> str:
        return variable_of(self.name)

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @property
    def file_key(self) -> str:
        return file_key_of(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """A setting of GoQueue's that this version does not serve; only its off values are accepted."""

    name: str
    what: str
    off_values: frozenset[str] = frozenset({""})


def variable_of(name: str) -> str:
    return PREFIX + name


def flag_of(name: str) -> str:
    return "--" + name.lower().replace("_", "-")


def file_key_of(name: str) -> str:
    """`section.key`: the first word is the section of the file."""
    return name.lower().replace("_", ".", 1)


DATA_FOLDER: Setting[Path] = Setting(
    name="BROKER_DATADIR",
    default="./data",
    read=folder,
    help="The folder that holds everything stored. Its parent must exist. Also `--data-dir`.",
    flag_alias="--data-dir",
)
NODE_ID: Setting[str] = Setting(
    name="BROKER_NODEID",
    default="node-1",
    read=node_id,
    help="The name of this node. The number in it is the node id that Kafka clients see.",
)
KAFKA_LISTENERS: Setting[tuple[Listening, ...]] = Setting(
    name="LISTENERS_KAFKA",
    default="127.0.0.1:9092",
    read=listeners,
    help="Where Kafka clients connect, host:port. `:9092` is every interface, port 0 any free port, "
    "`off` no such door. Several are separated by commas, each with its protocol and, behind an @, where "
    "clients are told to come back: `PLAINTEXT://127.0.0.1:9092,SSL://:9093@broker.example:9093`.",
)
HTTP_LISTENERS: Setting[tuple[Listening, ...]] = Setting(
    name="LISTENERS_HTTP",
    default="127.0.0.1:8080",
    read=listeners,
    help="Where the HTTP API is served, host:port, or `off`; in the same form.",
)
INSECURE: Setting[bool] = Setting(
    name="INSECURE",
    default="false",
    read=switch,
    help="Whether doors may be open to other machines that use neither TLS nor authentication.",
    is_bare=True,
)
KAFKA_ADVERTISED: Setting[Address | None] = Setting(
    name="KAFKA_ADVERTISED",
    default="",
    read=advertised,
    help="The host:port that Kafka clients are told to connect to, when it is not the one listened on "
    "(containers, port forwarding).",
)
HTTP_HOSTS: Setting[tuple[str, ...]] = Setting(
    name="HTTP_HOSTS",
    default="",
    read=host_names,
    help="Host names by which the HTTP door may be called, separated by commas, `*` for any. Empty: on a "
    "loopback address the names of this machine, elsewhere any. Given, others are refused on any address.",
)
HTTP_CORS_ORIGINS: Setting[tuple[str, ...]] = Setting(
    name="HTTP_CORS_ORIGINS",
    default="",
    read=origins,
    help="Origins of web pages that may use the HTTP door, like `https://dashboard.example`, separated by "
    "commas, `*` for all. Empty: the broker's own page alone.",
)
KAFKA_CONNECTIONS: Setting[int] = Setting(
    name="KAFKA_CONNECTIONS",
    default="10000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The most connections of Kafka clients at a time.",
)
KAFKA_MEMORY_BYTES: Setting[int] = Setting(
    name="KAFKA_MEMORY_BYTES",
    default="1GiB",
    read=size(least=1, most=_INT64_MAX),
    help="The most that requests of all Kafka clients take while they are read and answered.",
)
KAFKA_IDLE_MS: Setting[int] = Setting(
    name="KAFKA_IDLE_MS",
    default="600000",
    read=whole_number(least=0, most=_INT32_MAX),
    help="A Kafka connection without a request for so long is closed (`connections.max.idle.ms`); 0: never.",
)
HTTP_CONNECTIONS: Setting[int] = Setting(
    name="HTTP_CONNECTIONS",
    default="10000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The most connections of HTTP clients at a time.",
)
ADDRESS_CONNECTIONS: Setting[int] = Setting(
    name="LIMITS_ADDRESS_CONNECTIONS",
    default="5000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The most connections from one address to each door. One more is closed at once and counted.",
)
SEGMENT_BYTES: Setting[int] = Setting(
    name="LOG_SEGMENT_BYTES",
    default="64MiB",
    read=size(least=4 * KiB, most=_INT32_MAX),
    help="A segment file of the log is closed and the next begun at this size. Default of new topics.",
)
FLUSH_INTERVAL_MS: Setting[int] = Setting(
    name="LOG_FLUSH_INTERVAL_MS",
    default="1000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="A message published with acks=leader is on the disk at the latest after this time. acks=all "
    "never waits for it.",
)
COMMIT_FILE_BYTES: Setting[int] = Setting(
    name="LOG_COMMIT_FILE_BYTES",
    default="16MiB",
    read=size(least=64 * 1024, most=_INT32_MAX),
    help="How large a file of the commit log becomes. A start after a crash reads all of them.",
)
COMMIT_FILES: Setting[int] = Setting(
    name="LOG_COMMIT_FILES",
    default="8",
    read=whole_number(least=0, most=1_000),
    help="How many files the commit log may have. When all are in use, and always with 0, each partition's "
    "own file is synced instead.",
)
RETENTION_MS: Setting[int] = Setting(
    name="LOG_RETENTION_MS",
    default="604800000",
    read=whole_number(least=-1, most=_INT64_MAX),
    help="How long messages are kept, -1 for ever. Default of new topics (7 days).",
)
RETENTION_BYTES: Setting[int] = Setting(
    name="LOG_RETENTION_BYTES",
    default="-1",
    read=size(least=-1, most=_INT64_MAX),
    help="How much of a partition is kept, -1 all. Default of new topics.",
)
UPKEEP_INTERVAL_MS: Setting[int] = Setting(
    name="LOG_UPKEEP_INTERVAL_MS",
    default="5000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How often retention is applied and recovery points are noted.",
)
SCRUB_BYTES_PER_S: Setting[int] = Setting(
    name="LOG_SCRUB_BYTES_PER_S",
    default="8MiB",
    read=size(least=0, most=_INT32_MAX),
    help="How fast sealed segments are read back and checked for bytes that have gone bad; 0: never.",
)
COMPACTION_INTERVAL_MS: Setting[int] = Setting(
    name="LOG_COMPACTION_INTERVAL_MS",
    default="15000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How often partitions of compacted topics are looked at.",
)
COMPACTION_BYTES_PER_S: Setting[int] = Setting(
    name="LOG_COMPACTION_BYTES_PER_S",
    default="32MiB",
    read=size(least=0, most=_INT32_MAX),
    help="How fast compaction reads and writes; 0: nothing is compacted.",
)
COMPACTION_MEMORY_BYTES: Setting[int] = Setting(
    name="LOG_COMPACTION_MEMORY_BYTES",
    default="128MiB",
    read=size(least=64 * 1024, most=_INT32_MAX),
    help="Memory for the keys of one round of compaction, about 52 bytes each; more keys take more rounds.",
)
MESSAGE_BYTES: Setting[int] = Setting(
    name="LIMITS_MESSAGE_BYTES",
    default="16MiB",
    read=size(least=1, most=_INT32_MAX),
    help="The largest message that is taken in; a larger one is refused.",
)
REQUEST_BYTES: Setting[int] = Setting(
    name="LIMITS_REQUEST_BYTES",
    default="64MiB",
    read=size(least=1, most=_INT32_MAX),
    help="The largest request that is taken in at any door.",
)
JSON_BYTES: Setting[int] = Setting(
    name="LIMITS_JSON_BYTES",
    default="4MiB",
    read=size(least=1, most=_INT32_MAX),
    help="The largest JSON body that the HTTP door reads. It is read in one go while all others wait, "
    "1 to 4 ms a MiB: larger messages go through Kafka, a client's producer or `POST /batches`.",
)
TOPIC_PARTITIONS_MAX: Setting[int] = Setting(
    name="LIMITS_TOPIC_PARTITIONS",
    default="10000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The most partitions a topic may have.",
)
PARTITIONS_MAX: Setting[int] = Setting(
    name="LIMITS_PARTITIONS",
    default="100000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The most partitions that all topics may have together.",
)
ACL_ENABLED: Setting[bool] = Setting(
    name="ACL_ENABLED",
    default="false",
    read=switch,
    help="Whether it is asked what somebody may do: what no rule and no role allows is refused then.",
)
ACL_SUPER_USERS: Setting[tuple[str, ...]] = Setting(
    name="ACL_SUPER_USERS",
    default="",
    read=principals,
    help="Who may do everything, whatever rules say: a comma list such as User:root,User:ops.",
)
AUDIT_ENABLED: Setting[bool] = Setting(
    name="AUDIT_ENABLED",
    default="false",
    read=switch,
    help="Whether it is written down who was refused and who changed what: in `audit` in the data folder.",
)
AUDIT_FILE_BYTES: Setting[int] = Setting(
    name="AUDIT_FILE_BYTES",
    default="16MiB",
    read=size(least=1024, most=_INT32_MAX),
    help="A file of the audit log that has so much is followed by another.",
)
AUDIT_FILES: Setting[int] = Setting(
    name="AUDIT_FILES",
    default="20",
    read=whole_number(least=1, most=100_000),
    help="So many files of the audit log are kept.",
)
AUTO_CREATE: Setting[bool] = Setting(
    name="TOPICS_AUTO_CREATE",
    default="true",
    read=switch,
    help="Whether a topic comes into being when a Kafka client first names it.",
)
DEFAULT_PARTITIONS: Setting[int] = Setting(
    name="TOPICS_PARTITIONS",
    default="3",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How many partitions a topic gets when its creator does not say.",
)
PRODUCER_EXPIRY_MS: Setting[int] = Setting(
    name="PRODUCERS_EXPIRY_MS",
    default="86400000",
    read=whole_number(least=1, most=_INT64_MAX),
    help="How long an idempotent producer's sequence numbers are remembered after its last batch.",
)
USAGE_DAYS: Setting[int] = Setting(
    name="TENANTS_USAGE_DAYS",
    default="35",
    read=whole_number(least=1, most=400),
    help="For how many days it is kept what tenants have used by hour.",
)
STAGE_EXPIRY_MS: Setting[int] = Setting(
    name="SINKS_STAGE_EXPIRY_MS",
    default="3600000",
    read=whole_number(least=1, most=_INT64_MAX),
    help="How long a stage of an exactly-once sink is kept for a commit that may never come.",
)
SINK_EXPIRY_MS: Setting[int] = Setting(
    name="SINKS_EXPIRY_MS",
    default="7776000000",
    read=whole_number(least=1, most=_INT64_MAX),
    help="How long the last epoch of an exactly-once sink is remembered after its last commit (90 days).",
)
BACKUP_COUNT_MAX: Setting[int] = Setting(
    name="BACKUP_COUNT_MAX",
    default="7",
    read=whole_number(least=1, most=100_000),
    help="How many backups of metadata are kept; a new one takes the place of the oldest.",
)
ENCRYPTION_KEYS: Setting[tuple[bytes, ...]] = Setting(
    name="ENCRYPTION_KEYS",
    default="",
    read=read_keys,
    help="Keys for backups, between commas: each 32 bytes in base64 or hex. The first encrypts, all decrypt. "
    "Empty: backups are written as they are.",
)
ENCRYPTION_KEY_FILE: Setting[Path | None] = Setting(
    name="ENCRYPTION_KEY_FILE",
    default="",
    read=file_path,
    help="A file with such keys, one a line, in place of the former.",
)
GROUP_INITIAL_DELAY_MS: Setting[int] = Setting(
    name="GROUPS_INITIAL_DELAY_MS",
    default="1000",
    read=whole_number(least=0, most=_INT32_MAX),
    help="How long the first member of an empty consumer group waits for others, so that a start is one "
    "rebalance.",
)
GROUP_SESSION_MS_MIN: Setting[int] = Setting(
    name="GROUPS_SESSION_MS_MIN",
    default="1000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The shortest session time-out that a member of a group may ask for.",
)
GROUP_SESSION_MS_MAX: Setting[int] = Setting(
    name="GROUPS_SESSION_MS_MAX",
    default="1800000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The longest session time-out that a member of a group may ask for.",
)
CONSUMER_SESSION_MS: Setting[int] = Setting(
    name="GROUPS_CONSUMER_SESSION_MS",
    default="45000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="After how long a silent Kafka client with `group.protocol=consumer` is no longer a member.",
)
CONSUMER_HEARTBEAT_MS: Setting[int] = Setting(
    name="GROUPS_CONSUMER_HEARTBEAT_MS",
    default="5000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How often such a client is told to send a heartbeat.",
)
GROUP_MEMBERS_MAX: Setting[int] = Setting(
    name="GROUPS_MEMBERS",
    default="2000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The most members a consumer group may have.",
)
OFFSET_METADATA_BYTES: Setting[int] = Setting(
    name="GROUPS_OFFSET_METADATA_BYTES",
    default="4KiB",
    read=size(least=0, most=_INT32_MAX),
    help="The longest text that is kept with a committed offset.",
)
GROUP_IN_FLIGHT_MAX: Setting[int] = Setting(
    name="GROUPS_IN_FLIGHT_MAX",
    default="1000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="Messages that one consumer may have out with leases; a poll for more waits.",
)
OFFSETS_RETENTION_MINUTES: Setting[int] = Setting(
    name="GROUPS_OFFSETS_RETENTION_MINUTES",
    default="10080",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How long the offsets of a group without members are kept after its last commit or member "
    "(7 days). A group with members keeps them.",
)
TRANSACTION_TIMEOUT_MS: Setting[int] = Setting(
    name="TRANSACTIONS_TIMEOUT_MS",
    default="60000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How long a transaction may stay open when its producer does not say; then it is aborted.",
)
TRANSACTION_TIMEOUT_MS_MAX: Setting[int] = Setting(
    name="TRANSACTIONS_TIMEOUT_MS_MAX",
    default="900000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The longest time that a producer may ask for.",
)
PRODUCER_SESSION_MS: Setting[int] = Setting(
    name="TRANSACTIONS_SESSION_MS",
    default="30000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How long a producer over HTTP that sends heartbeats may be silent; then its open transaction is "
    "aborted. One that never sends any has its transaction's time-out alone.",
)
TRANSACTIONAL_ID_EXPIRY_MS: Setting[int] = Setting(
    name="TRANSACTIONS_ID_EXPIRY_MS",
    default="604800000",
    read=whole_number(least=1, most=_INT64_MAX),
    help="How long a transactional id is remembered after its last transaction (7 days).",
)
TRACING_ENABLED: Setting[bool] = Setting(
    name="TRACING_ENABLED",
    default="true",
    read=switch,
    help="Whether what happens to messages is recorded. What log and journals tell of a message can be asked "
    "for without it.",
)
TRACING_SAMPLING: Setting[float] = Setting(
    name="TRACING_SAMPLING",
    default="1",
    read=share,
    help="Which part of the messages is traced, 0 to 1: with 0.01 one of every hundred offsets. A topic may "
    "say otherwise with `goqueue.tracing.sampling`.",
)
TRACING_EVENTS_MAX: Setting[int] = Setting(
    name="TRACING_EVENTS_MAX",
    default="100000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="Events of traces that are kept in memory, about 250 bytes each; an event tells of a whole batch.",
)
TRACING_SEARCH_BYTES: Setting[int] = Setting(
    name="TRACING_SEARCH_BYTES",
    default="256MiB",
    read=size(least=0, most=_INT64_MAX),
    help="So much of what was published last is looked through for a trace id that a producer made.",
)
TRACE_EXPORT: Setting[tuple[str, ...]] = Setting(
    name="TRACING_EXPORT",
    default="none",
    read=export_config.exporters,
    help="Where spans of sampled messages go besides the memory: any of `file`, `stdout`, `otlp-http`, "
    "`otlp-grpc`, separated by commas, or `none`.",
)
TRACE_EXPORT_ENDPOINT: Setting[str] = Setting(
    name="TRACING_EXPORT_ENDPOINT",
    default="",
    read=export_config.endpoint,
    help="The URL of the collector for OTLP. Empty: this machine, port 4318 for HTTP and 4317 for gRPC.",
)
TRACE_EXPORT_HEADERS: Setting[dict[str, str]] = Setting(
    name="TRACING_EXPORT_HEADERS",
    default="",
    read=export_config.headers,
    help="Headers for the collector, `name=value`, separated by commas: an API key or a tenant.",
)
TRACE_EXPORT_INTERVAL_MS: Setting[int] = Setting(
    name="TRACING_EXPORT_INTERVAL_MS",
    default="1000",
    read=whole_number(least=10, most=10_000),
    help="How often new spans are handed to the exporters.",
)
TRACE_EXPORT_SPANS_PER_SECOND: Setting[int] = Setting(
    name="TRACING_EXPORT_SPANS_PER_SECOND",
    default="1000",
    read=whole_number(least=1, most=20_000),
    help="The most spans that leave in a second. When there are more, fewer messages are told of, each with "
    "all its spans; the others are counted as dropped in /traces/stats.",
)
TRACE_EXPORT_FILES: Setting[int] = Setting(
    name="TRACING_EXPORT_FILES",
    default="10",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How many files of 10 MiB the exporter `file` keeps in `traces/` of the data folder.",
)
METRICS_TOPICS_MAX: Setting[int] = Setting(
    name="METRICS_TOPICS_MAX",
    default="1000",
    read=whole_number(least=0, most=_INT32_MAX),
    help="So many topics have metrics of their own; those of the others are summed up under `_other`.",
)
METRICS_GROUPS_MAX: Setting[int] = Setting(
    name="METRICS_GROUPS_MAX",
    default="1000",
    read=whole_number(least=0, most=_INT32_MAX),
    help="The same for consumer groups, and for pairs of a group and a topic.",
)
METRICS_BY_PARTITION: Setting[bool] = Setting(
    name="METRICS_BY_PARTITION",
    default="false",
    read=switch,
    help="Whether offsets, sizes and lag are told of each partition instead of summed over a topic.",
)
LOGGING_LEVEL: Setting[int] = Setting(
    name="LOGGING_LEVEL",
    default="info",
    read=logging_level,
    help="The least important log line that is written: debug, info, warning or error.",
)
LOGGING_FORMAT: Setting[str] = Setting(
    name="LOGGING_FORMAT",
    default="text",
    read=one_of("text", "json"),
    help="How log lines look: `text` for people, `json` for programs, one object a line.",
)
LOGGING_REQUESTS: Setting[bool] = Setting(
    name="LOGGING_REQUESTS",
    default="false",
    read=switch,
    help="Whether a line is logged for each HTTP request, with its status, its time and its request id.",
)
RESERVE_BYTES: Setting[int] = Setting(
    name="LOG_RESERVE_BYTES",
    default="4MiB",
    read=size(least=0, most=_INT32_MAX),
    help="Space that is kept on the data disk so that a broker whose disk is full can start, and can delete.",
)
HEALTH_DISK_WARN_PERCENT: Setting[int] = Setting(
    name="HEALTH_DISK_WARN_PERCENT",
    default="85",
    read=whole_number(least=1, most=100),
    help="How full the data disk is when `/readyz` begins to warn.",
)
HEALTH_DISK_FAIL_PERCENT: Setting[int] = Setting(
    name="HEALTH_DISK_FAIL_PERCENT",
    default="90",
    read=whole_number(least=1, most=100),
    help="How full it is when the broker counts as not ready, unless enough bytes are free all the same.",
)
HEALTH_DISK_ENOUGH_BYTES: Setting[int] = Setting(
    name="HEALTH_DISK_ENOUGH_BYTES",
    default="5GiB",
    read=size(least=0, most=_INT64_MAX),
    help="So many free bytes are enough, however full the disk is.",
)
HEALTH_FSYNC_WARN_MS: Setting[int] = Setting(
    name="HEALTH_FSYNC_WARN_MS",
    default="100",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How long flushes to the disk take (p99 of a minute) when `/readyz` begins to warn.",
)
HEALTH_FSYNC_FAIL_MS: Setting[int] = Setting(
    name="HEALTH_FSYNC_FAIL_MS",
    default="5000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How long they take when the broker counts as not ready.",
)
HEALTH_LOOP_LAG_WARN_MS: Setting[int] = Setting(
    name="HEALTH_LOOP_LAG_WARN_MS",
    default="100",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How late the broker's loop runs (p99 of a minute) when `/readyz` begins to warn.",
)
HEALTH_LOOP_LAG_FAIL_MS: Setting[int] = Setting(
    name="HEALTH_LOOP_LAG_FAIL_MS",
    default="2000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How late it runs when the broker counts as not ready.",
)
LOOP_STUCK_MS: Setting[int] = Setting(
    name="HEALTH_LOOP_STUCK_MS",
    default="60000",
    read=off_or_whole_number(least=15_000, most=_INT32_MAX),
    help="A loop that has not turned for so long ends the process: the stacks of all threads go to "
    "standard error, the exit code is 14, and a supervisor can start the broker anew. 0 is off. Linux only.",
)
SCHEMAS_TEXT_MAX: Setting[int] = Setting(
    name="SCHEMAS_TEXT_MAX",
    default="1048576",
    read=whole_number(least=1, most=4 * KiB * KiB),
    help="The most characters of a schema.",
)
SCHEMAS_CHECK_LIMIT_MS: Setting[int] = Setting(
    name="SCHEMAS_CHECK_LIMIT_MS",
    default="1000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="The CPU time to check a message where nobody can tell how long it takes; then it is refused.",
)
SCHEMAS_CHECKERS_MAX: Setting[int] = Setting(
    name="SCHEMAS_CHECKERS_MAX",
    default="1000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="Schemas that are kept ready to check messages; the one used longest ago goes first.",
)
SCHEMAS_CHECKERS_BYTES: Setting[int] = Setting(
    name="SCHEMAS_CHECKERS_BYTES",
    default="32MiB",
    read=size(least=1, most=_INT64_MAX),
    help="The same by the size of what they are made from.",
)
WORKSHOP_PROCESSES: Setting[int] = Setting(
    name="WORKSHOP_PROCESSES",
    default="2",
    read=whole_number(least=1, most=64),
    help="The most helper processes, which do what may take long: schemas are understood and compared "
    "there. They are started when there is work for them.",
)
WORKSHOP_MEMORY_BYTES: Setting[int] = Setting(
    name="WORKSHOP_MEMORY_BYTES",
    default="512MiB",
    read=size(least=128 * KiB * KiB, most=_INT64_MAX),
    help="The address space of a helper process.",
)
WORKSHOP_JOB_LIMIT_MS: Setting[int] = Setting(
    name="WORKSHOP_JOB_LIMIT_MS",
    default="5000",
    read=whole_number(least=100, most=_INT32_MAX),
    help="The CPU time of one job of a helper process; then it is killed and the request refused.",
)
WORKSHOP_WAITING_MAX: Setting[int] = Setting(
    name="WORKSHOP_WAITING_MAX",
    default="64",
    read=whole_number(least=0, most=_INT32_MAX),
    help="Jobs that may wait for a helper process; more are answered with `workshop_busy`.",
)
WORKSHOP_WAIT_MS: Setting[int] = Setting(
    name="WORKSHOP_WAIT_MS",
    default="10000",
    read=whole_number(least=1, most=_INT32_MAX),
    help="How long a job waits for a helper process before it is answered so, too.",
)
WORKSHOP_IDLE_MS: Setting[int] = Setting(
    name="WORKSHOP_IDLE_MS",
    default="60000",
    read=whole_number(least=0, most=_INT32_MAX),
    help="How long a helper process without work stays.",
)
CLUSTER_ENABLED: Setting[bool] = Setting(
    name="CLUSTER_ENABLED",
    default="false",
    read=switch,
    help="Whether this node is one of several. The other settings of a cluster mean nothing without it.",
)
CLUSTER_ADOPT: Setting[bool] = Setting(
    name="CLUSTER_ADOPT",
    default="false",
    read=switch,
    help="Whether the data folder of a node that was alone becomes that of the first node of a cluster, with "
    "all it holds. It does so once, and cannot be undone; without it such a folder is refused.",
)
CLUSTER_ETCD: Setting[StoreEndpoints] = Setting(
    name="CLUSTER_ETCD",
    default="127.0.0.1:2379",
    read=store_endpoints,
    help="The members of etcd through which nodes agree, host:port, separated by commas; with `https://` "
    "before each of them over TLS.",
)
CLUSTER_ETCD_CA_FILE: Setting[Path | None] = Setting(
    name="CLUSTER_ETCD_CA_FILE",
    default="",
    read=file_path,
    help="Who vouches for etcd: certificates in PEM form. Empty: well-known authorities.",
)
CLUSTER_ETCD_CERT_FILE: Setting[Path | None] = Setting(
    name="CLUSTER_ETCD_CERT_FILE",
    default="",
    read=file_path,
    help="The certificate that is shown to etcd, where it asks for one, in PEM form.",
)
CLUSTER_ETCD_KEY_FILE: Setting[Path | None] = Setting(
    name="CLUSTER_ETCD_KEY_FILE", default="", read=file_path, help="Its key, without a password."
)
CLUSTER_ETCD_USER: Setting[str] = Setting(
    name="CLUSTER_ETCD_USER",
    default="",
    read=str.strip,
    help="As whom nodes log in to etcd: it may read and write keys below `/goqueue/{name}/`. Empty: nobody.",
)
CLUSTER_ETCD_PASSWORD: Setting[str] = Setting(
    name="CLUSTER_ETCD_PASSWORD", default="", read=str, help="Its password."
)
CLUSTER_NAME: Setting[str] = Setting(
    name="CLUSTER_NAME",
    default="goqueue",
    read=short_name,
    help="Several clusters may share an etcd: each has its keys below `/goqueue/{name}/`.",
)
PEER_LISTENER: Setting[Address] = Setting(
    name="LISTENERS_INTERNAL",
    default="127.0.0.1:7000",
    read=address,
    help="Where other nodes of the cluster connect, host:port. Beyond this machine only with a secret.",
)
CLUSTER_ADVERTISE: Setting[Address | None] = Setting(
    name="CLUSTER_ADVERTISE",
    default="",
    read=advertised,
    help="The host:port by which other nodes reach this one, when it is not the one listened on.",
)
CLUSTER_CLIENT_ADVERTISE: Setting[Address | None] = Setting(
    name="CLUSTER_CLIENT_ADVERTISE",
    default="",
    read=advertised,
    help="The host:port of the HTTP door that others are told, when it is not the one listened on.",
)
CLUSTER_PEERS: Setting[tuple[Address, ...]] = Setting(
    name="CLUSTER_PEERS",
    default="",
    read=addresses,
    help="Other nodes, host:port, separated by commas. It may be left empty: nodes find each other through "
    "etcd.",
)
CLUSTER_QUORUM: Setting[int] = Setting(
    name="CLUSTER_QUORUM",
    default="2",
    read=whole_number(least=1, most=10_000),
    help="When so many nodes are ready, the topics are made that the cluster needs for itself; they get more "
    "copies as others come. Before, there are no groups. `goqueue up --nodes 1` says 1.",
)
CLUSTER_RACK: Setting[str] = Setting(
    name="CLUSTER_RACK",
    default="",
    read=str.strip,
    help="What this node shares with others that fail together: a machine, a rack, a zone. Copies of a "
    "partition lie in different ones.",
)
CLUSTER_SESSION_MS: Setting[int] = Setting(
    name="CLUSTER_SESSION_MS",
    default="2000",
    read=whole_number(least=1_000, most=60_000),
    help="A node that etcd has not heard of for so long is not alive; whole seconds, rounded up.",
)
CLUSTER_SECRET: Setting[str] = Setting(
    name="CLUSTER_SECRET",
    default="",
    read=str,
    help="Known to all nodes and to nobody else, at least 16 characters: who does not know it is no node.",
)
TOPICS_REPLICATION: Setting[int] = Setting(
    name="TOPICS_REPLICATION",
    default="0",
    read=whole_number(least=0, most=100),
    help="In a cluster: how many copies a topic gets when its creator does not say. 0: three, or as many as "
    "there are nodes.",
)

TOPICS_MIN_INSYNC: Setting[int] = Setting(
    name="TOPICS_MIN_INSYNC",
    default="0",
    read=whole_number(least=0, most=100),
    help="In a cluster: `min.insync.replicas` of topics whose creator does not say; no more than there are "
    "copies. 0: 2 where there are three copies or more, else 1.",
)
CLUSTER_REPLICA_LAG_MS: Setting[int] = Setting(
    name="CLUSTER_REPLICA_LAG_MS",
    default="10000",
    read=whole_number(least=1_000, most=3_600_000),
    help="A copy that has not caught up for so long is not waited for any more (Kafka's "
    "replica.lag.time.max.ms).",
)


AUTH_ENABLED: Setting[bool] = Setting(
    name="AUTH_ENABLED",
    default="false",
    read=switch,
    help="Whether listeners of Kafka and HTTP that name no protocol ask who comes: for a key, or a user's "
    "password.",
)
API_ROOT_KEY: Setting[str] = Setting(
    name="API_ROOT_KEY",
    default="",
    read=root_key,
    help="A key with all rights, at least 16 characters, known as `root`. Empty: where somebody is asked and "
    "nobody is known yet, a first key is made and printed once.",
)
AUTH_ALLOW_HEALTH: Setting[bool] = Setting(
    name="AUTH_ALLOW_HEALTH",
    default="true",
    read=switch,
    help="Whether /health, /healthz, /livez, /readyz and /version answer to whoever asks.",
)
AUTH_QUERY_KEYS: Setting[bool] = Setting(
    name="AUTH_QUERY_KEYS",
    default="false",
    read=switch,
    help="Whether a key may stand in an address, `?api_key=`, which proxies and browsers keep.",
)
AUTH_SESSION_MS: Setting[int] = Setting(
    name="AUTH_SESSION_MS",
    default="0",
    read=whole_number(least=0, most=_INT32_MAX),
    help="A Kafka client that has logged in does so again within this time (KIP-368); 0: never.",
)
AUTH_JWT_JWKS: Setting[str] = Setting(
    name="AUTH_JWT_JWKS",
    default="",
    read=key_set,
    help="Where the keys are by which an issuer signs tokens (JWT): an address with `https://`, or "
    "a file. Empty: no tokens are taken. Kafka clients show them by OAUTHBEARER, others as they show keys.",
)
AUTH_JWT_CA_FILE: Setting[Path | None] = Setting(
    name="AUTH_JWT_CA_FILE",
    default="",
    read=file_path,
    help="Who vouches for that address: certificates in PEM form. Empty: whom the system trusts.",
)
AUTH_JWT_ISSUER: Setting[str] = Setting(
    name="AUTH_JWT_ISSUER",
    default="",
    read=str.strip,
    help="The issuer, as tokens name it (`iss`).",
)
AUTH_JWT_AUDIENCE: Setting[tuple[str, ...]] = Setting(
    name="AUTH_JWT_AUDIENCE",
    default="",
    read=words,
    help="For whom tokens must be made (`aud`): one of these, separated by commas.",
)
AUTH_JWT_SKEW_MS: Setting[int] = Setting(
    name="AUTH_JWT_SKEW_MS",
    default="30000",
    read=whole_number(least=0, most=SKEW_MS_MAX),
    help="By so much the clock of the issuer may differ.",
)
AUTH_JWT_NAME_CLAIM: Setting[str] = Setting(
    name="AUTH_JWT_NAME_CLAIM",
    default="sub",
    read=str.strip,
    help="The claim that says what the holder of a token is called here; `a.b` is b inside a.",
)
AUTH_JWT_TENANT_CLAIM: Setting[str] = Setting(
    name="AUTH_JWT_TENANT_CLAIM",
    default="",
    read=str.strip,
    help="The claim that names the tenant of the holder; tokens without it are refused then. Empty: none.",
)
AUTH_JWT_ROLES_CLAIM: Setting[str] = Setting(
    name="AUTH_JWT_ROLES_CLAIM",
    default="",
    read=str.strip,
    help="The claim, of roles or groups, that gives the holder roles. Empty: none does.",
)
AUTH_JWT_ROLES: Setting[dict[str, Role]] = Setting(
    name="AUTH_JWT_ROLES",
    default="",
    read=role_values,
    help="Which role each value of that claim stands for: `kafka-ops=operator,devs=developer`. Others stand "
    "for none. Empty: the values are our roles' names.",
)


class TlsTable:
    """The settings of the certificate of some doors."""

    def __init__(self, prefix: str, whose: str, checks: str) -> None:
        self.enabled: Setting[bool] = Setting(
            name=f"{prefix}_ENABLED",
            default="false",
            read=switch,
            help=f"Whether TLS is spoken {whose}.",
        )
        self.cert_file: Setting[Path | None] = Setting(
            name=f"{prefix}_CERT_FILE",
            default="",
            read=file_path,
            help="The certificate that is shown there, in PEM form, with those between it and its root. It "
            "is read anew when it changes, and on SIGHUP.",
        )
        self.key_file: Setting[Path | None] = Setting(
            name=f"{prefix}_KEY_FILE", default="", read=file_path, help="Its key, without a password."
        )
        self.ca_file: Setting[Path | None] = Setting(
            name=f"{prefix}_CA_FILE",
            default="",
            read=file_path,
            help=f"Who vouches for {checks}: certificates in PEM form.",
        )
        self.self_signed: Setting[bool] = Setting(
            name=f"{prefix}_SELF_SIGNED",
            default="false",
            read=switch,
            help="Whether the broker makes a certificate for itself, in `tls/` of the data folder. Its "
            "fingerprint is printed at the start."
            if prefix == "TLS"
            else "Not served: nodes could not tell such certificates from those of others.",
        )
        self.client_auth: Setting[ClientAuth] = Setting(
            name=f"{prefix}_CLIENT_AUTH",
            default="none" if prefix == "TLS" else "require",
            read=client_auth,
            help=f"Whether {checks} show certificates: `none`, `request` or `verify` (who shows one is "
            "checked), `require` or `require-verify` (all must).",
        )
        self.min_version: Setting[TLSVersion] = Setting(
            name=f"{prefix}_MIN_VERSION",
            default="1.2",
            read=tls_version,
            help="The oldest TLS that is spoken there: 1.2 or 1.3.",
        )

    @property
    def all(self) -> tuple[Setting[object], ...]:
        return (
            self.enabled,
            self.cert_file,
            self.key_file,
            self.ca_file,
            self.self_signed,
            self.client_auth,
            self.min_version,
        )


TLS = TlsTable("TLS", "by listeners of Kafka and HTTP that name no protocol", "clients")
CLUSTER_TLS = TlsTable("CLUSTER_TLS", "between nodes", "other nodes")
TLS_HANDSHAKE_MS: Setting[int] = Setting(
    name="TLS_HANDSHAKE_MS",
    default="10000",
    read=whole_number(least=100, most=600_000),
    help="A handshake that is not done after this is given up.",
)
TLS_PRINCIPAL_RULES: Setting[PrincipalRules] = Setting(
    name="TLS_PRINCIPAL_RULES",
    default="DEFAULT",
    read=PrincipalRules,
    help="What the owner of a certificate is called, as Kafka's ssl.principal.mapping.rules say it: "
    "`RULE:pattern/replacement/` with `L` or `U` behind it, and `DEFAULT`, separated by commas.",
)

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
    ACL_ENABLED,
    ACL_SUPER_USERS,
    AUDIT_ENABLED,
    AUDIT_FILE_BYTES,
    AUDIT_FILES,
    AUTO_CREATE,
    DEFAULT_PARTITIONS,
    PRODUCER_EXPIRY_MS,
    STAGE_EXPIRY_MS,
    SINK_EXPIRY_MS,
    BACKUP_COUNT_MAX,
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
