"""Consumer groups from outside: who is in them, how far they are, and where they go on."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from goqueue.client.call import Call, body_of, json_of, path, query_of
from goqueue.client.times import time_text

OffsetMap = dict[str, dict[str, int]]
"""Topic, then the partition's number as text, then an offset."""


class GroupSummary(msgspec.Struct, frozen=True):
    id: str
    state: str
    members: int
    generation: int
    topics: list[str]
    kind: str


class Place(msgspec.Struct, frozen=True):
    """A partition of a topic."""

    topic: str
    partition: int


class GroupMember(msgspec.Struct, frozen=True):
    member_id: str
    client_id: str
    client_host: str
    assignment: list[Place]
    joined_at: datetime | None = None
    last_heartbeat: datetime | None = None


class OpenTransaction(msgspec.Struct, frozen=True):
    """A transaction that readers of committed messages wait for."""

    transaction_id: str
    transactional_id: str
    producer_id: int
    epoch: int
    first_offset: int
    started_at: datetime
    open_seconds: float


class PartitionLag(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far behind; -1 stands for what cannot be told, or was never committed."""

    topic: str
    partition: int
    offset: int
    end_offset: int
    lag: int
    lag_seconds: float
    held_back_by: OpenTransaction | None = None


class GroupLag(msgspec.Struct, frozen=True):
    """Messages that are there to be read, and how long ago the first of them was stored."""

    group_id: str
    total: int
    max_seconds: float
    partitions: list[PartitionLag]


class PassedOver(msgspec.Struct, frozen=True):
    """Messages that a queue group had to leave out, because nobody can read them."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    reason: str
    at: datetime


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group, its members, and how far it is behind."""

    group_id: str
    state: str
    generation: int
    kind: str
    protocol: str
    topics: list[str]
    members: list[GroupMember]
    lag: GroupLag
    mode: str | None = None
    key_order: bool = False
    passed_over: list[PassedOver] = []


class GroupOffsets(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a group has read: the offsets it reads next."""

    group_id: str
    offsets: OffsetMap
    generation: int | None = None
    updated_at: datetime | None = None


class OffsetRefused(msgspec.Struct, frozen=True):
    """Why one offset was not taken."""

    topic: str
    partition: int
    error: str
    code: str


class OffsetsCommitted(msgspec.Struct, frozen=True):
    """What was committed; `errors` has what was not."""

    offsets: OffsetMap
    errors: list[OffsetRefused] = []


class OffsetReset(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    old_offset: int
    """-1: none was committed."""
    new_offset: int


class OffsetsReset(msgspec.Struct, frozen=True):
    """Where a group was and where it reads on, or would after a dry run."""

    group_id: str
    dry_run: bool
    reset_count: int
    partitions: list[OffsetReset]


class _GroupList(msgspec.Struct):
    details: list[GroupSummary]


def list_groups(*, internal: bool = False) -> Call[list[GroupSummary]]:
    """All groups, of members over HTTP and of Kafka clients; with the broker's own, if wanted."""
    decode = json_of(_GroupList)
    query = query_of(internal="true" if internal else None)
    return Call(method="GET", path="/groups", query=query, decode=lambda reply: decode(reply).details)


def describe(group: str) -> Call[Group]:
    """A group's members and how far it is behind."""
    return Call(method="GET", path=path("groups", group), decode=json_of(Group))


def delete(group: str) -> Call[None]:
    """Forget a group and its offsets."""
    return Call(method="DELETE", path=path("groups", group), decode=lambda reply: None, is_repeatable=False)


def lag(group: str) -> Call[GroupLag]:
    """How far a group is behind, in messages and in seconds."""
    return Call(method="GET", path=path("groups", group, "lag"), decode=json_of(GroupLag))


def offsets(group: str, *, topic: str | None = None) -> Call[GroupOffsets]:
    """What a group has committed; nothing where there is no such group."""
    return Call(
        method="GET",
        path=path("groups", group, "offsets"),
        decode=json_of(GroupOffsets),
        query=query_of(topic=topic),
    )


def commit_offsets(
    group: str, offsets: Mapping[str, Mapping[int, int] | Mapping[str, int]]
) -> Call[OffsetsCommitted]:
    """Keep with a group without members where it is to read on: topic, partition, next offset."""
    return Call(
        method="POST",
        path=path("groups", group, "offsets"),
        decode=json_of(OffsetsCommitted),
        body=body_of(offsets=_offset_map(offsets)),
    )


def reset_offsets(
    group: str,
    *,
    to: Literal["earliest", "latest"] | datetime | Mapping[str, Mapping[int, int]],
    topics: Sequence[str] | None = None,
    partition: int | None = None,
    dry_run: bool = False,
    force: bool = False,
) -> Call[OffsetsReset]:
    """Set where a group reads on: all partitions or none. `force` does so while it has members."""
    goal: object = to
    if isinstance(to, datetime):
        goal = time_text(to)
    elif not isinstance(to, str):
        goal = _offset_map(to)
    return Call(
        method="POST",
        path=path("groups", group, "offsets", "reset"),
        decode=json_of(OffsetsReset),
        body=body_of(
            to=goal,
            topics=None if topics is None else list(topics),
            partition=partition,
            dry_run=dry_run,
            force=force,
        ),
    )


def _offset_map(offsets: Mapping[str, Mapping[int, int] | Mapping[str, int]]) -> OffsetMap:
    return {
        topic: {str(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in offsets.items()
    }
