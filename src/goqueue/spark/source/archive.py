"""Archived and live rows as one table: the archive up to its watermark, the log from there.

The two meet without a gap and without an overlap, whatever retention has deleted in the meantime: an
archive is read wherever it has something, and the log only behind it.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from goqueue.client.connection import Client
from goqueue.client.log import Extent
from goqueue.model.errors import Invalid
from goqueue.spark.codec.columns import Columns
from goqueue.spark.jobs.archive_store import (
    COLUMNS,
    Archive,
    ArchivedRange,
    Slice,
    open_archive,
    read_slice,
    slices,
    topic_folder,
)
from goqueue.spark.source.batch import RangePartition, TopicReader
from goqueue.spark.source.offsets import Place, flat
from goqueue.spark.source.options import Edge, SourceOptions
from goqueue.spark.source.planning import plan_ranges
from goqueue.spark.source.positions import Partitions, gone, resolve


class Span(NamedTuple):
    """What a read is about, by partition: what is live, what is archived, and the offsets between."""

    live: dict[Place, Extent]
    ranges: dict[Place, list[ArchivedRange]]
    start: dict[Place, int]
    end: dict[Place, int]


class SlicePartition(InputPartition):
    """What one task reads of an archive."""

    def __init__(self, folder: Path, wanted: Slice) -> None:
        super().__init__((folder, wanted))


class ArchivedTopicReader(TopicReader):
    """Topics with their archives: everything between two positions, wherever it lies."""

    def __init__(self, options: SourceOptions, columns: Columns, archive: Path) -> None:
        super().__init__(options, columns)
        if missing := [name for name in columns.schema.names if name not in COLUMNS.schema.names]:
            raise Invalid(f"columns: {', '.join(missing)} is not kept in an archive")
        self._archive = archive

    def partitions(self) -> list[RangePartition | SlicePartition]:  # type: ignore[override]  # both are read here
        options = self._options
        client = options.connect()
        try:
            span = find_span(client, options, self._archive)
            archived = [
                SlicePartition(topic_folder(self._archive, place.topic), wanted)
                for place in sorted(span.live)
                for wanted in slices(span.ranges[place], span.start[place], span.end[place])
            ]
            behind = {
                place: max(span.start[place], extent.start, watermark(span.ranges[place]))
                for place, extent in span.live.items()
            }
            rest = plan_ranges(client, behind, span.end, span.live, options)
            return [*archived, *(RangePartition(wanted) for wanted in rest)]
        finally:
            client.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SlicePartition):
            folder, wanted = partition.value
            yield from read_slice(folder, wanted, self._columns.schema)
            return
        yield from super().read(partition)


def find_span(client: Client, options: SourceOptions, archive: Path) -> Span:
    """Where a read of archive and log begins and ends; fails on a gap, if that is wanted."""
    live = Partitions(options).now(client)
    archives = {topic: open_archive(archive, topic) for topic in {each.topic for each in live}}
    ranges = {place: archives[place.topic].partition(int(place.partition)) for place in live}
    whole = {place: _joined(extent, ranges[place]) for place, extent in live.items()}
    start = _resolved(client, options.starting, whole, archives)
    end = _resolved(client, options.ending, whole, archives)
    if options.fail_on_data_loss:
        for place in live:
            check_without_gap(place, ranges[place], live[place], start[place], end[place])
    return Span(live, ranges, start, end)


def watermark(ranges: list[ArchivedRange]) -> int:
    """Everything before this offset is the archive's."""
    return max((each.end_offset for each in ranges), default=0)


def check_without_gap(place: Place, ranges: list[ArchivedRange], live: Extent, start: int, end: int) -> None:
    """Fail when messages between two offsets are neither archived nor in the log."""
    if watermark(ranges) > live.end:
        raise gone(
            f"{place} ends at offset {live.end} and is archived up to {watermark(ranges)}: it was made anew"
        )
    covered = [(wanted.first_offset, wanted.end_offset) for wanted in slices(ranges, start, end)]
    behind = max(watermark(ranges), live.start, start)
    if behind < end:
        covered.append((behind, end))
    edges = [(start, start), *covered, (end, end)]
    for (_, before), (after, _) in pairwise(edges):
        if after > before:
            raise gone(f"offsets {before} to {after} (exclusive) of {place} are neither archived nor live")


def _joined(live: Extent, ranges: list[ArchivedRange]) -> Extent:
    start = min([live.start, *(each.first_offset for each in ranges)])
    return Extent(start, max(live.end, watermark(ranges)), live.size_bytes)


def _resolved(
    client: Client, edge: Edge, whole: Mapping[Place, Extent], archives: Mapping[str, Archive]
) -> dict[Place, int]:
    """The offset of an edge in each partition; a time is looked for in the archive first."""
    offsets = resolve(client, edge, whole, fail_on_data_loss=False)
    times_ms = flat(edge.times_ms) if edge.time_ms is None else dict.fromkeys(whole, edge.time_ms)
    for place, time_ms in times_ms.items():
        found = archives[place.topic].offset_at(int(place.partition), time_ms)
        if found is not None:
            offsets[place] = found
    return offsets
