"""The JSON of topics. Two names for some fields: existing clients read either."""

from typing import Annotated, Generic, Literal

from msgspec import Meta, Struct

from goqueue.edge.http.topics.placing import Assignments
from goqueue.wire.times import Time
from goqueue.wire.topics import PartitionPlace, PartitionsAdded, Topic

_INT32 = Meta(ge=-(2**31), le=2**31 - 1)


class AlterTopicBody(Struct):
    """Settings of a topic to change; those that are not named stay as they are."""

    settings: Annotated[
        dict[str, str | int | bool | None],
        Meta(description='By Kafka\'s names: {"retention.ms": "60000"}; null brings back the default.'),
    ]


class CreateTopicBody(Struct):
    """A topic to create."""

    name: Annotated[
        str,
        Meta(
            description="Letters, digits, '.', '_' and '-', at most 249 of them, and not '.' or '..'.",
            extra_json_schema={"pattern": r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$"},
        ),
    ]
    num_partitions: Annotated[int, _INT32, Meta(description="0 or less: the server's default.")] | None = None
    partitions: Annotated[int, _INT32, Meta(description="Another name for num_partitions.")] | None = None
    retention_hours: Annotated[int, _INT32, Meta(description="0 or less: the server's default.")] | None = (
        None
    )
    replication_factor: (
        Annotated[int, _INT32, Meta(description="Copies of each partition; 0 or less: the server's default.")]
        | None
    ) = None
    replica_assignments: Assignments | None = None
    settings: (
        Annotated[
            dict[str, str | int | bool | None],
            Meta(description='By Kafka\'s names: {"retention.ms": 3600000}; null is the default.'),
        ]
        | None
    ) = None


class TopicCreated(Struct):
    name: str
    partitions: int
    num_partitions: int
    created: Literal[True] = True


class TopicDeleted(Struct):
    name: str
    deleted: Literal[True] = True


class TopicBody(Topic[Time], Generic[Time], frozen=True, kw_only=True):
    """A topic: its size, its offsets, its settings."""

    topic: str
    num_partitions: int
    total_size_kb: int


class ScaledTopic(PartitionsAdded, frozen=True, kw_only=True):
    """What a topic had, and what it has now."""

    old_count: int
    new_count: int
    success: bool = True


class TopicPartitions(Struct):
    topic: str
    partitions: list[PartitionPlace]
