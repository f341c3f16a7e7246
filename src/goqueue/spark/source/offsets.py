"""Positions in many partitions at once, and the arithmetic of portions. No I/O.

Spark keeps positions as JSON and compares them as text, so they are always sorted: the same positions in
another order would be taken for news, and make empty batches without end. End offsets are exclusive.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from goqueue.client.log import Extent, Extents

Offsets = dict[str, dict[str, int]]
"""By topic and by partition number in text, as JSON has it."""


class Place(NamedTuple):
    """One partition, named as in `Offsets`."""

    topic: str
    partition: str

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class OffsetRange(NamedTuple):
    """A run of offsets of one partition, for one task."""

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    estimated_bytes: int
    source: str = ""
    """The node to read it from when this was planned, by its HTTP door; empty: not known."""


def flat(offsets: Mapping[str, Mapping[str, int]]) -> dict[Place, int]:
    """The offset of each partition."""
    return {Place(topic, partition): offset for topic, partition, offset in _walk(offsets)}


def nested(flat_offsets: Mapping[Place, int]) -> Offsets:
    """Positions as Spark keeps them, sorted."""
    offsets: Offsets = {}
    for (topic, partition), offset in sorted(flat_offsets.items()):
        offsets.setdefault(topic, {})[partition] = offset
    return offsets


def places(extents: Extents) -> dict[Place, Extent]:
    """The extent of each partition."""
    return {
        Place(topic, partition): extent
        for topic, partitions in extents.items()
        for partition, extent in partitions.items()
    }


def ends(extents: Mapping[Place, Extent]) -> dict[Place, int]:
    return {place: extent.end for place, extent in extents.items()}


def estimated_bytes(extent: Extent, count: int) -> int:
    """What so many messages take, if they are like the others of their partition."""
    held = extent.end - extent.start
    return extent.size_bytes * count // held if held > 0 else 0


def portions(waiting: Mapping[Place, int], portion: int) -> dict[Place, int]:
    """How much of what waits in each partition to take, so that all together it is a portion.

    Each partition gives in proportion to what waits there, and at least one: a quiet partition is never
    starved by a busy one, even if that takes a few more than the portion.
    """
    waiting = {place: count for place, count in waiting.items() if count > 0}
    total = sum(waiting.values())
    if total <= portion:
        return dict(waiting)
    to_spread = max(portion - len(waiting), 0)
    # total > portion, so where there is something to spread, more than one message waits somewhere.
    over = max(total - len(waiting), 1)
    return {place: 1 + (count - 1) * to_spread // over for place, count in waiting.items()}


def _walk(offsets: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, str, int]]:
    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            yield topic, partition, offset
