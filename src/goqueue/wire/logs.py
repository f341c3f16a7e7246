"""Whole logs: where partitions begin and end, where to cut them, where batches were stored."""

from msgspec import Struct


class Extent(Struct, frozen=True):
    """The first offset that can be read, the one behind the last, and the bytes on disk."""

    start: int
    end: int
    size_bytes: int = 0


class Extents(Struct, frozen=True):
    """By topic and by partition number in text, as JSON has it."""

    topics: dict[str, dict[str, Extent]]


class OffsetsAt(Struct, frozen=True):
    """The first offset of that time or later, by topic and partition number; else the end offset."""

    topics: dict[str, dict[str, int]]


class Splits(Struct, frozen=True):
    """Rising offsets: the first and the last asked for, and batch borders between them."""

    offsets: list[int]


class BatchPlace(Struct, frozen=True):
    """Where the batch of one entry was stored."""

    topic: str
    partition: int
    base_offset: int
    count: int


class BatchPlaces(Struct, frozen=True):
    """One place an entry, in the order given."""

    messages: int
    placed: list[BatchPlace]
