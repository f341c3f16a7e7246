"""How a read is shared out: portions for micro-batches, ranges for tasks."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from goqueue.client.connection import Client
from goqueue.client.log import Extent, splits
from goqueue.spark.source.nearest import with_sources
from goqueue.spark.source.offsets import OffsetRange, Place, estimated_bytes, portions
from goqueue.spark.source.options import SourceOptions

_LOOK_AHEAD = 4
"""Split points are asked for so many portions ahead at most: estimates err, and lists should stay short."""


def cap_records(start: Mapping[Place, int], end: Mapping[Place, int], records_max: int) -> dict[Place, int]:
    """The end offsets of a portion of so many messages."""
    waiting = {place: offset - start[place] for place, offset in end.items()}
    taken = portions(waiting, records_max)
    # Where an end lies before its start, a topic was made anew: its end stands.
    return {place: start[place] + taken[place] if place in taken else end[place] for place in end}


def cap_bytes(
    client: Client,
    start: Mapping[Place, int],
    end: Mapping[Place, int],
    extents: Mapping[Place, Extent],
    bytes_max: int,
) -> dict[Place, int]:
    """The end offsets of a portion of about so many stored bytes, cut between batches."""
    waiting = {place: estimated_bytes(extents[place], end[place] - start[place]) for place in end}
    if sum(max(size, 0) for size in waiting.values()) <= bytes_max:
        return dict(end)
    capped = dict(end)
    for place, size in portions(waiting, bytes_max).items():
        count = end[place] - start[place]
        ahead = count * size * _LOOK_AHEAD // waiting[place]
        points = splits(
            client,
            place.topic,
            int(place.partition),
            first_offset=start[place],
            end_offset=min(end[place], start[place] + max(ahead, 1)),
            split_bytes=max(size, 1),
        )
        capped[place] = points[1] if len(points) > 1 else end[place]
    return capped


def plan_ranges(
    client: Client,
    start: Mapping[Place, int],
    end: Mapping[Place, int],
    extents: Mapping[Place, Extent],
    options: SourceOptions,
) -> list[OffsetRange]:
    """The ranges of all tasks: one a partition, or more where the options ask for it."""
    whole = [
        OffsetRange(
            place.topic,
            int(place.partition),
            start[place],
            end_offset,
            estimated_bytes(extents[place], end_offset - start[place]),
        )
        for place, end_offset in sorted(end.items(), key=lambda item: (item[0].topic, int(item[0].partition)))
        if end_offset > start[place]
    ]
    split_bytes = options.split_bytes
    if options.partitions_min is not None and len(whole) < options.partitions_min:
        total_bytes = sum(wanted.estimated_bytes for wanted in whole)
        split_bytes = max(total_bytes // options.partitions_min, 1)
    whole = with_sources(client, whole, rack=options.rack)
    if split_bytes is None:
        return whole
    return [part for wanted in whole for part in _cut(client, wanted, split_bytes)]


def _cut(client: Client, wanted: OffsetRange, split_bytes: int) -> Iterable[OffsetRange]:
    # What is hardly more than one part is not worth a second task.
    if wanted.estimated_bytes * 2 <= split_bytes * 3:
        return [wanted]
    points = splits(
        client,
        wanted.topic,
        wanted.partition,
        first_offset=wanted.first_offset,
        end_offset=wanted.end_offset,
        split_bytes=split_bytes,
    )
    part_bytes = wanted.estimated_bytes // max(len(points) - 1, 1)
    return [
        wanted._replace(first_offset=first, end_offset=end, estimated_bytes=part_bytes)
        for first, end in pairwise(points)
    ]
