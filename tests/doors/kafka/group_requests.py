"""Requests about groups with the fields of all versions, and a member that speaks them."""

from collections.abc import Iterable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import ApiKey
from tests.doors.kafka.raw_client import RawClient

SESSION = timedelta(seconds=10)
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff"


def join(
    group: str,
    member_id: str = "",
    *,
    instance_id: str | None = None,
    protocols: Iterable[str] = ("range",),
    metadata: bytes = SUBSCRIPTION,
    session: timedelta = SESSION,
) -> dict[str, object]:
    return {
        "group_id": group,
        "session_timeout": session,
        "rebalance_timeout": SESSION,
        "member_id": member_id,
        "group_instance_id": instance_id,
        "protocol_type": "consumer",
        "protocols": tuple(SimpleNamespace(name=name, metadata=metadata) for name in protocols),
        "reason": None,
    }


def sync(
    group: str, member_id: str, generation: int, assignments: dict[str, bytes] | None = None
) -> dict[str, object]:
    return {
        "group_id": group,
        "generation_id": generation,
        "member_id": member_id,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": tuple(
            SimpleNamespace(member_id=name, assignment=assignment)
            for name, assignment in (assignments or {}).items()
        ),
    }


def heartbeat(group: str, member_id: str, generation: int) -> dict[str, object]:
    return {
        "group_id": group,
        "generation_id": generation,
        "member_id": member_id,
        "group_instance_id": None,
    }


def leave(group: str, *member_ids: str) -> dict[str, object]:
    members = tuple(SimpleNamespace(member_id=m, group_instance_id=None, reason="done") for m in member_ids)
    return {"group_id": group, "member_id": member_ids[0], "members": members}


def commit(
    group: str,
    topic: str,
    offsets: dict[int, int],
    *,
    member_id: str = "",
    generation: int = -1,
    metadata: str | None = "",
    leader_epoch: int = -1,
) -> dict[str, object]:
    partitions = tuple(
        SimpleNamespace(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        for partition, offset in offsets.items()
    )
    return {
        "group_id": group,
        "generation_id_or_member_epoch": generation,
        "member_id": member_id,
        "group_instance_id": None,
        "retention_time": timedelta(milliseconds=-1),
        "topics": (SimpleNamespace(name=topic, partitions=partitions),),
    }


def fetch(group: str, topics: dict[str, tuple[int, ...]] | None) -> dict[str, object]:
    wanted = None
    if topics is not None:
        wanted = tuple(SimpleNamespace(name=n, partition_indexes=p) for n, p in topics.items())
    one = SimpleNamespace(group_id=group, member_id=None, member_epoch=-1, topics=wanted)
    return {"group_id": group, "topics": wanted, "groups": (one,), "require_stable": True}


def join_alone(raw: RawClient, group: str, version: int = 9, **fields: Any) -> Any:
    """Become the only member of a group; the reply of the join."""
    reply = raw.ask(ApiKey.JOIN_GROUP, version, **join(group, **fields))
    if reply.error_code is ErrorCode.member_id_required:
        reply = raw.ask(ApiKey.JOIN_GROUP, version, **join(group, reply.member_id, **fields))
    assert reply.error_code is ErrorCode.none
    return reply


def stable_alone(raw: RawClient, group: str, **fields: Any) -> Any:
    """The same, with an assignment."""
    joined = join_alone(raw, group, **fields)
    assignments = {joined.member_id: b"all"}
    synced = raw.ask(ApiKey.SYNC_GROUP, 5, **sync(group, joined.member_id, joined.generation_id, assignments))
    assert (synced.error_code, synced.assignment) == (ErrorCode.none, b"all")
    return joined
