"""Restoring messages to the very offsets they had, for topics that a backup of metadata has brought back.

A log gives its offsets one after the other, so this can only be done where nothing is missing in between.
Everything is looked at before the first message is written: whoever trusts an offset must not be led to
another message.
"""

from collections.abc import Mapping, Sequence

from goqueue.client.log import Extent
from goqueue.model.errors import Invalid
from goqueue.spark.jobs.archive_store import ArchivedRange, Slice

ADVICE = "Restore without --keep-offsets, and set the groups by time: `goqueue-cli group reset-offsets`"


def slices_to_append(
    ranges: Sequence[ArchivedRange], extents: Mapping[int, Extent], done: Mapping[int, int]
) -> list[Slice]:
    """What belongs behind the end of each partition, in order.

    `extents` are those of the target's partitions, `done` how far a run before this one has come.
    """
    found: list[Slice] = []
    for number in sorted({each.partition for each in ranges}):
        extent = extents[number]
        if number in done:
            if extent.end != done[number]:
                raise Invalid(
                    f"partition {number} ends at offset {extent.end}, and the restore had come to "
                    f"{done[number]}: somebody else writes to it. {ADVICE}"
                )
        elif extent.start != extent.end:
            raise Invalid(
                f"partition {number} holds messages; offsets can be kept where there are none. {ADVICE}"
            )
        own = [each for each in ranges if each.partition == number and each.end_offset > extent.end]
        found += _behind(number, extent.end, own)
    return found


def _behind(number: int, offset: int, ranges: Sequence[ArchivedRange]) -> list[Slice]:
    slices = []
    for archived in ranges:
        if archived.first_offset > offset:
            raise Invalid(
                f"offsets {offset} to {archived.first_offset} (exclusive) of partition {number} are not in "
                f"the archive. {ADVICE}"
            )
        if archived.rows != archived.end_offset - archived.first_offset:
            raise Invalid(
                f"some offsets between {archived.first_offset} and {archived.end_offset} (exclusive) of "
                f"partition {number} have no message, as transactions leave them. {ADVICE}"
            )
        slices.append(Slice(archived, offset, archived.end_offset))
        offset = archived.end_offset
    return slices
