"""The whole configuration of a node, checked before anything is started.

This is the only place that reads flags, environment and files. Everything wrong is told at once: a
person who fixes a configuration should not have to start the broker once for each mistake.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from goqueue.edge.admission import ConnectionLimits
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.tls import ClientAuth
from goqueue.model.settings import (
    MINUTE_MS,
    AccessConfig,
    AuditConfig,
    BrokerConfig,
    CommitLogConfig,
    GroupConfig,
    HealthConfig,
    Limits,
    MetricsConfig,
    SchemaConfig,
    TopicSettings,
    TracingConfig,
    TransactionConfig,
    WorkshopConfig,
)
from goqueue.node import config_table as table
from goqueue.node.config_doors import ListenerConfig, TlsWish, read_listeners, read_tls
from goqueue.node.config_etcd import EtcdAccess, read_etcd
from goqueue.node.config_sources import Given, read_sources
from goqueue.node.config_table import Setting
from goqueue.node.config_tokens import TokenWish, read_tokens
from goqueue.node.config_values import Address
from goqueue.node.sealing import EncryptionConfig
from goqueue.node.tracing.config import TraceExportConfig

T = TypeVar("T")
SECRET_CHARACTERS_MIN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """What a node needs to know to be one of several."""

    name: str
    etcd: tuple[Address, ...]
    etcd_access: EtcdAccess
    peer_listener: Address
    peer_advertised: Address | None
    http_advertised: Address | None
    rack: str
    session_ms: int
    quorum: int
    secret: str
    replica_lag_ms: int
    adopts: bool = False
    """The folder of a node that was alone becomes that of the cluster's first node."""
    tls: TlsWish | None = None
    """None: nodes talk to each other in the clear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """What one node needs to know to start."""

    data_folder: Path
    logging_level: int
    is_logging_json: bool
    reserve_bytes: int
    loop_stuck_ms: int
    """A loop that has not turned for so long ends the process; 0: it does not."""
    workshop: WorkshopConfig
    broker: BrokerConfig
    kafka_listeners: tuple[ListenerConfig, ...]
    kafka: KafkaConfig
    http_listeners: tuple[ListenerConfig, ...]
    http: HttpConfig
    tls: TlsWish | None
    """None: no listener of Kafka or HTTP speaks TLS."""
    auth: AuthConfig
    tokens: TokenWish | None
    """None: no tokens are taken."""
    encryption: EncryptionConfig
    backup_folder: Path | None
    """Where whole backups go; None: into the data folder."""
    trace_export: TraceExportConfig
    cluster: ClusterConfig | None = None
    """None: this node is alone."""

    @property
    def asks_who(self) -> bool:
        """Whether any door asks who comes."""
        return any(listener.protocol.asks_who for listener in (*self.kafka_listeners, *self.http_listeners))


class ConfigProblems(Exception):
    """Everything that is wrong with a configuration."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"{len(problems)} problems in the settings")
        self.problems = tuple(problems)


def load_config(arguments: Sequence[str], environment: Mapping[str, str]) -> NodeConfig:
    """The configuration that flags, environment and file ask for. Raises ConfigProblems."""
    sources = read_sources(arguments, environment)
    reader = _Reader(sources.given, [*sources.problems])
    reader.refuse_unserved()
    config = _build(reader)
    if reader.problems:
        raise ConfigProblems(reader.problems)
    return config


class _Reader:
    """Reads one setting after the other and remembers what was wrong with any of them."""

    def __init__(self, given: Mapping[str, Given], problems: list[str]) -> None:
        self.problems = problems
        self._given = given

    def __call__(self, setting: Setting[T]) -> T:
        """The value asked for. A wrong one is noted and the default stands in, so that reading goes on."""
        given = self._given.get(setting.name)
        if given is not None:
            try:
                return setting.read(given.text)
            except ValueError as problem:
                self.note(setting, str(problem))
        return setting.read(setting.default)

    def note(self, setting: Setting[T], problem: str) -> None:
        given = self._given.get(setting.name)
        self.problems.append(f"{given.place if given else setting.variable}: {problem}")

    def built(self, build: Callable[[], T], stand_in: T, *, told_at: Setting[object]) -> T:
        """A settings object, which checks how its values go together; a refusal is told at one of them."""
        try:
            return build()
        except ValueError as problem:
            self.note(told_at, str(problem))
            return stand_in

    def refuse_unserved(self) -> None:
        for unserved in table.UNSERVED:
            given = self._given.get(unserved.name)
            # The value is not repeated: it may be a key.
            if given is not None and given.text.strip().lower() not in unserved.off_values:
                self.problems.append(
                    f"{given.place}: {unserved.what} is not available in this version; remove this setting"
                )


def _build(reader: _Reader) -> NodeConfig:
    kafka_listeners, http_listeners = read_listeners(reader)
    listeners = (*kafka_listeners, *http_listeners)
    tls = read_tls(reader, table.TLS, is_needed=any(listener.protocol.has_tls for listener in listeners))
    shows_certificates = tls is not None and tls.client_auth is not ClientAuth.NONE
    asks_who = shows_certificates or any(listener.protocol.asks_who for listener in listeners)
    broker = _broker(reader, asks_who=asks_who)
    return NodeConfig(
        data_folder=_data_folder(reader),
        logging_level=reader(table.LOGGING_LEVEL),
        is_logging_json=reader(table.LOGGING_FORMAT) == "json",
        reserve_bytes=reader(table.RESERVE_BYTES),
        loop_stuck_ms=reader(table.LOOP_STUCK_MS),
        workshop=_workshop(reader),
        broker=broker,
        kafka_listeners=kafka_listeners,
        kafka=_kafka(reader, broker.limits),
        http_listeners=http_listeners,
        http=_http(reader, broker.limits),
        trace_export=_trace_export(reader),
        auth=AuthConfig(root_key=reader(table.API_ROOT_KEY), session_ms=reader(table.AUTH_SESSION_MS)),
        tokens=read_tokens(reader, asks_who=any(listener.protocol.asks_who for listener in listeners)),
        backup_folder=reader(table.BACKUP_FOLDER),
        encryption=reader.built(
            lambda: EncryptionConfig(reader(table.ENCRYPTION_KEYS), reader(table.ENCRYPTION_KEY_FILE)),
            EncryptionConfig(),
            told_at=table.ENCRYPTION_KEY_FILE,
        ),
        tls=tls,
        cluster=_cluster(reader, [listener.address for listener in listeners]),
    )


def _broker(reader: _Reader, *, asks_who: bool) -> BrokerConfig:
    message_bytes = reader(table.MESSAGE_BYTES)
    limits, topic_defaults = _limits(reader, message_bytes), _topic_defaults(reader, message_bytes)
    groups, transactions = _groups(reader), _transactions(reader)
    tracing, metrics, health = _tracing(reader), _metrics(reader), _health(reader)
    commit_log = reader.built(
        lambda: CommitLogConfig(
            file_bytes=reader(table.COMMIT_FILE_BYTES), files_max=reader(table.COMMIT_FILES)
        ),
        CommitLogConfig(),
        told_at=table.COMMIT_FILES,
    )
    return reader.built(
        lambda: BrokerConfig(
            node_id=reader(table.NODE_ID),
            auto_create_topics=reader(table.AUTO_CREATE),
            default_partitions=reader(table.DEFAULT_PARTITIONS),
            replication=reader(table.TOPICS_REPLICATION),
            topic_defaults=topic_defaults,
            limits=limits,
            groups=groups,
            transactions=transactions,
            tracing=tracing,
            metrics=metrics,
            health=health,
            schemas=_schemas(reader),
            commit_log=commit_log,
            access=_access(reader, asks_who=asks_who),
            flush_interval_ms=reader(table.FLUSH_INTERVAL_MS),
            upkeep_interval_ms=reader(table.UPKEEP_INTERVAL_MS),
            scrub_bytes_per_s=reader(table.SCRUB_BYTES_PER_S),
            compaction_interval_ms=reader(table.COMPACTION_INTERVAL_MS),
            compaction_bytes_per_s=reader(table.COMPACTION_BYTES_PER_S),
            compaction_memory_bytes=reader(table.COMPACTION_MEMORY_BYTES),
            producer_expiry_ms=reader(table.PRODUCER_EXPIRY_MS),
            stage_expiry_ms=reader(table.STAGE_EXPIRY_MS),
            sink_expiry_ms=reader(table.SINK_EXPIRY_MS),
            backup_count_max=reader(table.BACKUP_COUNT_MAX),
            usage_days=reader(table.USAGE_DAYS),
            backup_bytes_per_s=reader(table.BACKUP_BYTES_PER_S),
            backup_interval_ms=reader(table.BACKUP_INTERVAL_MS),
        ),
        BrokerConfig(),
        told_at=table.DEFAULT_PARTITIONS,
    )


def _access(reader: _Reader, *, asks_who: bool) -> AccessConfig:
    audit = AuditConfig(
        is_on=reader(table.AUDIT_ENABLED),
        file_bytes=reader(table.AUDIT_FILE_BYTES),
        files_max=reader(table.AUDIT_FILES),
        has_topic=reader(table.AUDIT_TOPIC),
        topic_retention_ms=reader(table.AUDIT_TOPIC_RETENTION_MS),
        data_sampling=reader(table.AUDIT_DATA_SAMPLING),
    )
    return AccessConfig(
        is_on=reader(table.ACL_ENABLED),
        super_users=reader(table.ACL_SUPER_USERS),
        audit=audit,
        knows_who=asks_who,
    )


def _schemas(reader: _Reader) -> SchemaConfig:
    return SchemaConfig(
        text_max=reader(table.SCHEMAS_TEXT_MAX),
        check_limit_ms=reader(table.SCHEMAS_CHECK_LIMIT_MS),
        checkers_max=reader(table.SCHEMAS_CHECKERS_MAX),
        checkers_bytes=reader(table.SCHEMAS_CHECKERS_BYTES),
    )


def _workshop(reader: _Reader) -> WorkshopConfig:
    return WorkshopConfig(
        process_count=reader(table.WORKSHOP_PROCESSES),
        memory_bytes=reader(table.WORKSHOP_MEMORY_BYTES),
        job_limit_ms=reader(table.WORKSHOP_JOB_LIMIT_MS),
        waiting_max=reader(table.WORKSHOP_WAITING_MAX),
        wait_ms=reader(table.WORKSHOP_WAIT_MS),
        idle_ms=reader(table.WORKSHOP_IDLE_MS),
    )


def _limits(reader: _Reader, message_bytes: int) -> Limits:
    return reader.built(
        lambda: Limits(
            message_bytes=message_bytes,
            request_bytes=reader(table.REQUEST_BYTES),
            partitions_per_topic=reader(table.TOPIC_PARTITIONS_MAX),
            partitions=reader(table.PARTITIONS_MAX),
            topics=reader(table.TOPICS_MAX),
        ),
        Limits(),
        told_at=table.MESSAGE_BYTES,
    )


def _topic_defaults(reader: _Reader, message_bytes: int) -> TopicSettings:
    return TopicSettings(
        retention_ms=reader(table.RETENTION_MS),
        retention_bytes=reader(table.RETENTION_BYTES),
        segment_bytes=reader(table.SEGMENT_BYTES),
        max_message_bytes=message_bytes,
        min_insync_replicas=reader(table.TOPICS_MIN_INSYNC),
    )


def _groups(reader: _Reader) -> GroupConfig:
    return reader.built(
        lambda: GroupConfig(
            initial_delay_ms=reader(table.GROUP_INITIAL_DELAY_MS),
            session_ms_min=reader(table.GROUP_SESSION_MS_MIN),
            session_ms_max=reader(table.GROUP_SESSION_MS_MAX),
            consumer_session_ms=reader(table.CONSUMER_SESSION_MS),
            consumer_heartbeat_ms=reader(table.CONSUMER_HEARTBEAT_MS),
            members_max=reader(table.GROUP_MEMBERS_MAX),
            groups_max=reader(table.GROUPS_MAX),
            metadata_bytes_max=reader(table.OFFSET_METADATA_BYTES),
            in_flight_max=reader(table.GROUP_IN_FLIGHT_MAX),
            offsets_retention_ms=reader(table.OFFSETS_RETENTION_MINUTES) * MINUTE_MS,
        ),
        GroupConfig(),
        told_at=table.GROUP_SESSION_MS_MIN,
    )


def _transactions(reader: _Reader) -> TransactionConfig:
    return reader.built(
        lambda: TransactionConfig(
            timeout_ms=reader(table.TRANSACTION_TIMEOUT_MS),
            timeout_ms_max=reader(table.TRANSACTION_TIMEOUT_MS_MAX),
            session_ms=reader(table.PRODUCER_SESSION_MS),
            id_expiry_ms=reader(table.TRANSACTIONAL_ID_EXPIRY_MS),
        ),
        TransactionConfig(),
        told_at=table.TRANSACTION_TIMEOUT_MS,
    )


def _tracing(reader: _Reader) -> TracingConfig:
    return TracingConfig(
        is_enabled=reader(table.TRACING_ENABLED),
        sampling=reader(table.TRACING_SAMPLING),
        events_max=reader(table.TRACING_EVENTS_MAX),
        search_bytes=reader(table.TRACING_SEARCH_BYTES),
    )


def _metrics(reader: _Reader) -> MetricsConfig:
    return MetricsConfig(
        topics_max=reader(table.METRICS_TOPICS_MAX),
        groups_max=reader(table.METRICS_GROUPS_MAX),
        by_partition=reader(table.METRICS_BY_PARTITION),
    )


def _health(reader: _Reader) -> HealthConfig:
    """Pair by pair, so that a problem is told at a setting that it is about."""
    disk = reader.built(
        lambda: HealthConfig(
            disk_warn_percent=reader(table.HEALTH_DISK_WARN_PERCENT),
            disk_fail_percent=reader(table.HEALTH_DISK_FAIL_PERCENT),
            disk_enough_bytes=reader(table.HEALTH_DISK_ENOUGH_BYTES),
        ),
        HealthConfig(),
        told_at=table.HEALTH_DISK_WARN_PERCENT,
    )
    flushes = reader.built(
        lambda: replace(
            disk,
            fsync_warn_ms=reader(table.HEALTH_FSYNC_WARN_MS),
            fsync_fail_ms=reader(table.HEALTH_FSYNC_FAIL_MS),
        ),
        disk,
        told_at=table.HEALTH_FSYNC_WARN_MS,
    )
    return reader.built(
        lambda: replace(
            flushes,
            loop_lag_warn_ms=reader(table.HEALTH_LOOP_LAG_WARN_MS),
            loop_lag_fail_ms=reader(table.HEALTH_LOOP_LAG_FAIL_MS),
        ),
        flushes,
        told_at=table.HEALTH_LOOP_LAG_WARN_MS,
    )


def _trace_export(reader: _Reader) -> TraceExportConfig:
    return reader.built(
        lambda: TraceExportConfig(
            exporters=reader(table.TRACE_EXPORT),
            endpoint=reader(table.TRACE_EXPORT_ENDPOINT),
            headers=reader(table.TRACE_EXPORT_HEADERS),
            interval_ms=reader(table.TRACE_EXPORT_INTERVAL_MS),
            spans_per_second=reader(table.TRACE_EXPORT_SPANS_PER_SECOND),
            files_max=reader(table.TRACE_EXPORT_FILES),
        ),
        TraceExportConfig(),
        told_at=table.TRACE_EXPORT_ENDPOINT,
    )


def _cluster(reader: _Reader, others: Sequence[Address]) -> ClusterConfig | None:
    peers = reader(table.PEER_LISTENER)
    reader(table.CLUSTER_PEERS)  # only checked: nodes find each other through the store
    etcd, etcd_access = read_etcd(reader)
    config = ClusterConfig(
        name=reader(table.CLUSTER_NAME),
        etcd=etcd,
        etcd_access=etcd_access,
        peer_listener=peers,
        peer_advertised=reader(table.CLUSTER_ADVERTISE),
        http_advertised=reader(table.CLUSTER_CLIENT_ADVERTISE),
        rack=reader(table.CLUSTER_RACK),
        session_ms=reader(table.CLUSTER_SESSION_MS),
        quorum=reader(table.CLUSTER_QUORUM),
        secret=reader(table.CLUSTER_SECRET),
        replica_lag_ms=reader(table.CLUSTER_REPLICA_LAG_MS),
        adopts=reader(table.CLUSTER_ADOPT),
        tls=read_tls(
            reader,
            table.CLUSTER_TLS,
            is_needed=reader(table.CLUSTER_ENABLED) and reader(table.CLUSTER_TLS.enabled),
        ),
    )
    if not reader(table.CLUSTER_ENABLED):
        return None
    if reader(table.CLUSTER_TLS.self_signed):
        reader.note(
            table.CLUSTER_TLS.self_signed,
            "nodes cannot check each other's certificates then; have them made by one authority, and name it "
            f"with {table.CLUSTER_TLS.ca_file.variable}",
        )
    for other in others:
        if peers.clashes_with(other):
            reader.note(table.PEER_LISTENER, f"{peers} is taken by another door; give each its own port")
    if config.secret and len(config.secret) < SECRET_CHARACTERS_MIN:
        reader.note(table.CLUSTER_SECRET, f"it has fewer than {SECRET_CHARACTERS_MIN} characters")
    elif not config.secret and not peers.is_loopback:
        reader.note(
            table.CLUSTER_SECRET,
            f"other machines can reach {table.PEER_LISTENER.variable}={peers}; nodes need a secret then",
        )
    return config


def _http(reader: _Reader, limits: Limits) -> HttpConfig:
    advertised = reader(table.KAFKA_ADVERTISED)
    return HttpConfig(
        body_bytes=limits.request_bytes,
        json_bytes=reader(table.JSON_BYTES),
        hosts=reader(table.HTTP_HOSTS),
        advertised_host=advertised.host if advertised else None,
        cors_origins=reader(table.HTTP_CORS_ORIGINS),
        connections=_connections(reader, table.HTTP_CONNECTIONS),
        are_probes_open=reader(table.AUTH_ALLOW_HEALTH),
        takes_query_keys=reader(table.AUTH_QUERY_KEYS),
        is_logging_requests=reader(table.LOGGING_REQUESTS),
    )


def _data_folder(reader: _Reader) -> Path:
    folder = reader(table.DATA_FOLDER)
    if folder.exists():
        if not folder.is_dir():
            reader.note(table.DATA_FOLDER, f"{folder} is not a directory; name a folder, or move it away")
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            reader.note(
                table.DATA_FOLDER, f"{folder} cannot be written by this user; change its owner or mode"
            )
    elif not folder.absolute().parent.is_dir():
        reader.note(table.DATA_FOLDER, f"the parent of {folder} does not exist; create it first")
    return folder


def _connections(reader: _Reader, in_all: Setting[int]) -> ConnectionLimits:
    return ConnectionLimits(connections_max=reader(in_all), per_address_max=reader(table.ADDRESS_CONNECTIONS))


def _kafka(reader: _Reader, limits: Limits) -> KafkaConfig:
    return reader.built(
        lambda: KafkaConfig(
            limits=limits,
            held_bytes_max=reader(table.KAFKA_MEMORY_BYTES),
            connections=_connections(reader, table.KAFKA_CONNECTIONS),
            idle_ms=reader(table.KAFKA_IDLE_MS) or None,
        ),
        KafkaConfig(),
        told_at=table.KAFKA_MEMORY_BYTES,
    )
