"""Topics: their size, their offsets, their settings."""

from typing import Generic

from msgspec import Struct

from goqueue.wire.pages import Next
from goqueue.wire.times import Time


class TopicList(Struct, frozen=True, omit_defaults=True):
    topics: list[str]
    next: Next = None


class OffsetRange(Struct, frozen=True):
    """The first offset that can be read and the last one written, -1 when none ever was."""

    earliest: int
    latest: int


class Topic(Struct, Generic[Time], frozen=True):
    """A topic: its size, its offsets, its settings."""

    name: str
    partitions: int
    total_messages: int
    total_size_bytes: int
    partition_offsets: dict[str, OffsetRange]
    created_at: Time
    settings: dict[str, str]
    damaged_partitions: dict[str, str] = {}
    """What is lost of which; those are not written to until somebody accepts it."""


class TopicAltered(Struct, frozen=True):
    """A topic with all its settings as they are now."""

    name: str
    settings: dict[str, str]


class PartitionPlace(Struct, frozen=True):
    """Who holds a partition, by node id."""

    partition: int
    leader: str
    replicas: list[str]
    isr: list[str]
    version: int


class PartitionsAdded(Struct, frozen=True):
    """How many partitions a topic had, and has."""

    topic_name: str
    old_partition_count: int
    new_partition_count: int
    partitions_added: list[int]


class CompactedPartition(Struct, frozen=True):
    """What compaction has removed of a partition, or why it has not."""

    partition: int
    records_before: int = 0
    records_after: int = 0
    records_removed: int = 0
    dirty_ratio: float = 0.0
    error: str | None = None


class TopicCompacted(Struct, frozen=True):
    success: bool
    topic: str
    dry_run: bool
    results: list[CompactedPartition]


class LossAccepted(Struct, frozen=True):
    """What a damaged partition has lost, and where it begins and goes on."""

    topic: str
    partition: int
    reason: str
    lost: list[tuple[int, int]]
    """First and end offset of each run that is gone; empty: nothing tells how many there were."""
    start_offset: int
    end_offset: int
