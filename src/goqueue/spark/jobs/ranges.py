"""Which offsets a job still has to do, cut into items and dealt out in waves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from goqueue.client.log import Extent
from goqueue.model.errors import Invalid
from goqueue.model.settings import MiB
from goqueue.spark.jobs.waves import Wave
from goqueue.spark.jobs.work import WorkItem
from goqueue.spark.source.offsets import OffsetRange, Place
from goqueue.spark.source.options import SourceOptions
from goqueue.spark.source.planning import plan_ranges
from goqueue.spark.source.positions import Partitions, gone, resolve

ITEM_BYTES = 64 * MiB


def remaining(options: SourceOptions, positions: Mapping[str, int], *, item_bytes: int) -> list[OffsetRange]:
    """What the options ask for and the manifest does not tell of yet."""
    client = options.connect()
    try:
        extents = Partitions(options).now(client)
        start = resolve(client, options.starting, extents, fail_on_data_loss=options.fail_on_data_loss)
        end = resolve(client, options.ending, extents, fail_on_data_loss=False)
        start = {
            place: resumed_at(place, extents[place], offset, positions, strict=options.fail_on_data_loss)
            for place, offset in start.items()
        }
        cut = replace(options, split_bytes=options.split_bytes or item_bytes)
        return plan_ranges(client, start, end, extents, cut)
    finally:
        client.close()


def resumed_at(
    place: Place, extent: Extent, offset: int, positions: Mapping[str, int], *, strict: bool
) -> int:
    """Where to go on in a partition: behind what is done, if that is still where it was."""
    done = positions.get(position_name(place.topic, int(place.partition)))
    if done is None:
        return offset
    if done > extent.end:
        raise Invalid(
            f"{place} ends at offset {extent.end}, and the job had come to {done}: the topic was made anew. "
            "Begin anew, too, with another manifest or folder"
        )
    if done < extent.start and strict:
        raise gone(f"{place} begins at offset {extent.start} now; the job had come to {done}")
    # Where to begin was said for the first run: a later beginning would leave a gap behind what is done.
    return max(done, extent.start)


def message_count(ranges: Sequence[OffsetRange]) -> int:
    """How many messages ranges hold at most."""
    return sum(wanted.end_offset - wanted.first_offset for wanted in ranges)


def position_name(topic: str, partition: int) -> str:
    """A partition as the manifest names it."""
    return f"{topic}/{partition}"


def deal(
    ranges: Sequence[OffsetRange], make: Callable[[OffsetRange, int], WorkItem], *, count: int, epoch: int
) -> list[Wave]:
    """Waves of so many items at most; partitions take turns, and each keeps the order of its offsets.

    Because a wave is done as a whole, what is done of a partition is always without a gap.
    """
    by_place: dict[str, list[OffsetRange]] = {}
    for wanted in ranges:
        by_place.setdefault(position_name(wanted.topic, wanted.partition), []).append(wanted)
    turns = [
        wanted
        for turn in range(max(map(len, by_place.values()), default=0))
        for queue in by_place.values()
        for wanted in queue[turn : turn + 1]
    ]
    waves: list[Wave] = []
    for first in range(0, len(turns), count):
        # In the order of their offsets, because some targets append items in the order they are given.
        taken = sorted(turns[first : first + count])
        number = epoch + len(waves)
        positions = {position_name(each.topic, each.partition): each.end_offset for each in taken}
        waves.append(Wave(number, [make(each, number) for each in taken], positions))
    return waves
