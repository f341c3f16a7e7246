"""Requests with the fields of all versions, for the raw client."""

from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID

SECOND = timedelta(seconds=1)
NO_WAIT = timedelta(0)
MiB = 1 << 20


def produce(
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = 1,
    topic_id: UUID | None = None,
    transactional_id: str | None = None,
) -> dict[str, object]:
    return {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout": SECOND,
        "topic_data": (
            SimpleNamespace(
                name=topic,
                topic_id=topic_id,
                partition_data=(SimpleNamespace(index=partition, records=records),),
            ),
        ),
    }


def fetch(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    topic_id: UUID | None = None,
    max_wait: timedelta = NO_WAIT,
    min_bytes: int = 1,
    max_bytes: int = 50 * MiB,
    partition_max_bytes: int = MiB,
    isolation_level: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    leader_epoch: int = -1,
) -> dict[str, object]:
    wanted = SimpleNamespace(
        partition=partition,
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=partition_max_bytes,
        replica_directory_id=None,
        high_watermark=2**63 - 1,
    )
    return {
        "cluster_id": None,
        "replica_id": -1,
        "replica_state": SimpleNamespace(replica_id=-1, replica_epoch=7),
        "max_wait": max_wait,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": isolation_level,
        "session_id": session_id,
        "session_epoch": session_epoch,
        "topics": (SimpleNamespace(topic=topic, topic_id=topic_id, partitions=(wanted,)),),
        "forgotten_topics_data": (SimpleNamespace(topic="other", topic_id=topic_id, partitions=(1, 2)),),
        "rack_id": "rack",
    }


def list_offsets(
    topic: str, timestamp: int, *, partition: int = 0, leader_epoch: int = -1
) -> dict[str, object]:
    wanted = SimpleNamespace(
        partition_index=partition, current_leader_epoch=leader_epoch, timestamp=timestamp
    )
    return {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": (SimpleNamespace(name=topic, partitions=(wanted,)),),
        "timeout": SECOND,
    }


def metadata(*topics: str, create: bool = False, topic_id: UUID | None = None) -> dict[str, object]:
    wanted = [SimpleNamespace(name=name, topic_id=None) for name in topics]
    if topic_id is not None:
        wanted.append(SimpleNamespace(name=None, topic_id=topic_id))
    return {
        "topics": tuple(wanted) or None,
        "allow_auto_topic_creation": create,
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
    }


def create_topic(
    name: str,
    *,
    partitions: int = 1,
    replication: int = 1,
    settings: dict[str, str] | None = None,
    assignments: tuple[SimpleNamespace, ...] = (),
    validate_only: bool = False,
) -> dict[str, object]:
    topic = SimpleNamespace(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=assignments,
        configs=tuple(SimpleNamespace(name=n, value=v) for n, v in (settings or {}).items()),
    )
    return {"topics": (topic,), "timeout": SECOND, "validate_only": validate_only}


def alter_configs(
    name: str,
    setting: str,
    value: str | None,
    *,
    operation: int = 0,
    resource_type: int = 2,
    validate_only: bool = False,
) -> dict[str, object]:
    config = SimpleNamespace(name=setting, config_operation=operation, value=value)
    resource = SimpleNamespace(resource_type=resource_type, resource_name=name, configs=(config,))
    return {"resources": (resource,), "validate_only": validate_only}


def describe_configs(
    name: str, *keys: str, resource_type: int = 2, include_synonyms: bool = False
) -> dict[str, object]:
    resource = SimpleNamespace(
        resource_type=resource_type, resource_name=name, configuration_keys=tuple(keys) or None
    )
    return {
        "resources": (resource,),
        "include_synonyms": include_synonyms,
        "include_documentation": True,
    }
