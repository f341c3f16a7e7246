"""Topics: create, list, describe, grow and delete them."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from goqueue.client.call import Call, Reply, body_of, json_of, path

_EXISTS = 409


class TopicCreated(msgspec.Struct, frozen=True):
    """A topic that is there now; `created` says whether it was not before."""

    name: str
    partitions: int = 0
    created: bool = True


class OffsetRange(msgspec.Struct, frozen=True):
    """The first offset that can be read and the last one written, -1 when none ever was."""

    earliest: int
    latest: int


class Topic(msgspec.Struct, frozen=True):
    """A topic: its size, its offsets, its settings."""

    name: str
    partitions: int
    total_messages: int
    total_size_bytes: int
    partition_offsets: dict[str, OffsetRange]
    created_at: datetime
    settings: dict[str, str]
    damaged_partitions: dict[str, str] = {}
    """What is lost of which; those are not written to until somebody accepts it."""


class PartitionPlace(msgspec.Struct, frozen=True):
    """Who holds a partition, by node id."""

    partition: int
    leader: str
    replicas: list[str]
    isr: list[str]
    version: int


class PartitionsAdded(msgspec.Struct, frozen=True):
    """How many partitions a topic had, and has."""

    topic_name: str
    old_partition_count: int
    new_partition_count: int
    partitions_added: list[int]


class LossAccepted(msgspec.Struct, frozen=True):
    """What a damaged partition has lost, and where it goes on."""

    topic: str
    partition: int
    reason: str
    lost: list[tuple[int, int]]
    """First and end offset of each run that is gone; empty: nothing tells how many there were."""
    start_offset: int
    end_offset: int


class _TopicList(msgspec.Struct):
    topics: list[str]


class _Partitions(msgspec.Struct):
    partitions: list[PartitionPlace]


def create(
    name: str,
    *,
    partitions: int | None = None,
    retention_hours: int | None = None,
    settings: Mapping[str, str | int | bool | None] | None = None,
    exist_ok: bool = False,
) -> Call[TopicCreated]:
    """Create a topic. With `exist_ok` one that is there already is no error, and stays as it is."""
    decode = json_of(TopicCreated)

    def decode_either(reply: Reply) -> TopicCreated:
        return TopicCreated(name, created=False) if reply.status == _EXISTS else decode(reply)

    return Call(
        method="POST",
        path="/topics",
        decode=decode_either,
        body=body_of(
            name=name, num_partitions=partitions, retention_hours=retention_hours, settings=settings
        ),
        accepts=(_EXISTS,) if exist_ok else (),
        is_repeatable=exist_ok,
    )


def list_topics() -> Call[list[str]]:
    """The names of all topics."""
    decode = json_of(_TopicList)
    return Call(method="GET", path="/topics", decode=lambda reply: decode(reply).topics)


def describe(name: str) -> Call[Topic]:
    """A topic's size, offsets and settings."""
    return Call(method="GET", path=path("topics", name), decode=json_of(Topic))


def partitions(name: str) -> Call[list[PartitionPlace]]:
    """Who leads and who copies each partition."""
    decode = json_of(_Partitions)
    return Call(
        method="GET", path=path("topics", name, "partitions"), decode=lambda reply: decode(reply).partitions
    )


def add_partitions(name: str, count: int) -> Call[PartitionsAdded]:
    """Give a topic more partitions: `count` of them in all."""
    return Call(
        method="POST",
        path=path("admin", "topics", name, "partitions"),
        decode=json_of(PartitionsAdded),
        body=body_of(count=count),
        is_repeatable=False,
    )


def delete(name: str) -> Call[None]:
    """Delete a topic and all it holds."""
    return Call(method="DELETE", path=path("topics", name), decode=lambda reply: None, is_repeatable=False)


def accept_loss(name: str, partition: int, *, end_offset: int | None = None) -> Call[LossAccepted]:
    """Let a damaged partition go on without what it has lost, at `end_offset` at least."""
    return Call(
        method="POST",
        path=path("admin", "topics", name, "partitions", partition, "accept-loss"),
        body=body_of(end_offset=end_offset),
        decode=json_of(LossAccepted),
    )
