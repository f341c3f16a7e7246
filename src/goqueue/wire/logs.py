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


class LaterPlace(Struct, frozen=True):
    """A message of an entry that is delivered later."""

    index: int
    number: int
    """Its name until then; -1: it was kept before, and nobody knows its number any more."""
    due_ms: int


class BatchPlace(Struct, frozen=True, omit_defaults=True):
    """Where the batch of one entry was stored.

    Messages in `delayed` come later, and the others lie one behind the other from `base_offset` on;
    `quarantined` tells what is wrong with those that are in quarantine, by their indexes.
    """

    topic: str
    partition: int
    base_offset: int
    count: int
    delayed: list[LaterPlace] = []
    quarantined: dict[int, str] = {}


class BatchPlaces(Struct, frozen=True):
    """One place an entry, in the order given."""

    messages: int
    placed: list[BatchPlace]
