"""Topics: create, list, describe, grow and delete them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from goqueue.client.call import Call, Reply, body_of, json_of, path
from goqueue.wire import topics as wire_topics
from goqueue.wire.topics import LossAccepted, PartitionPlace, TopicAltered, TopicCompacted, TopicList
from goqueue.wire.topics import PartitionsAdded as PartitionsAdded

_EXISTS = 409
Topic = wire_topics.Topic[datetime]


class TopicCreated(msgspec.Struct, frozen=True):
    """A topic that is there now; `created` says whether it was not before."""

    name: str
    partitions: int = 0
    created: bool = True


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
    decode = json_of(TopicList)
    return Call(method="GET", path="/topics", decode=lambda reply: decode(reply).topics)


def describe(name: str) -> Call[Topic]:
    """A topic's size, offsets and settings."""
    return Call(method="GET", path=path("topics", name), decode=json_of(Topic))


def alter(name: str, settings: Mapping[str, str | int | bool | None]) -> Call[TopicAltered]:
    """Change settings by Kafka's names; None brings back the default. Those not named stay as they are."""
    return Call(
        method="PATCH",
        path=path("topics", name),
        decode=json_of(TopicAltered),
        body=body_of(settings=dict(settings)),
        is_repeatable=True,
    )


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


def compact(
    name: str, *, partitions: Sequence[int] | None = None, dry_run: bool = False
) -> Call[TopicCompacted]:
    """Compact a topic now, all of its partitions or some; with `dry_run` only tell what would go."""
    return Call(
        method="POST",
        path=path("admin", "topics", name, "compact"),
        body=body_of(partitions=None if partitions is None else list(partitions), dry_run=dry_run),
        decode=json_of(TopicCompacted),
    )


def accept_loss(name: str, partition: int, *, end_offset: int | None = None) -> Call[LossAccepted]:
    """Let a damaged partition go on without what it has lost, at `end_offset` at least."""
    return Call(
        method="POST",
        path=path("admin", "topics", name, "partitions", partition, "accept-loss"),
        body=body_of(end_offset=end_offset),
        decode=json_of(LossAccepted),
    )
