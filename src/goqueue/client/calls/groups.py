"""Consumer groups from outside: who is in them, how far they are, and where they go on."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from goqueue.client.call import Call, body_of, json_of, path, query_of
from goqueue.client.times import time_text
from goqueue.wire import groups as wire
from goqueue.wire.groups import GroupSummary as GroupSummary
from goqueue.wire.groups import OffsetsCommitted
from goqueue.wire.groups import OffsetsReset as OffsetsReset

GroupMember = wire.GroupMember[datetime]
OpenTransaction = wire.OpenTransaction[datetime]
PartitionLag = wire.PartitionLag[datetime]
GroupLag = wire.GroupLag[datetime]
PassedOver = wire.PassedOver[datetime]
Group = wire.Group[datetime]
GroupOffsets = wire.GroupOffsets[datetime]


OffsetMap = wire.OffsetMap


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
