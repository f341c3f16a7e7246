"""Topics as a stream: the reader of a streaming query.

The driver keeps one such reader for the whole run of a query, so it may hold a connection and what it last
saw; tasks get a copy and use neither.
"""

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from goqueue.client.log import Extent
from goqueue.spark.codec.columns import Columns
from goqueue.spark.source.batch import RangePartition
from goqueue.spark.source.fetch import read_range
from goqueue.spark.source.offsets import Offsets, Place, ends, flat, nested
from goqueue.spark.source.options import SourceOptions
from goqueue.spark.source.planning import cap_bytes, cap_records, plan_ranges
from goqueue.spark.source.positions import Partitions, check_not_gone, gone, resolve
from goqueue.spark.source.progress import GroupProgress

_POLL_MS = 500
"""How long a stream with nothing to read waits for news; Spark would ask ninety times a second instead."""
_NEVER = 2**63 - 1


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Everything from a position on, in micro-batches."""

    def __init__(self, options: SourceOptions, columns: Columns) -> None:
        self._options = options
        self._columns = columns
        self._client = options.connect()
        self._partitions = Partitions(options)
        self._progress = None if options.group is None else GroupProgress(self._client, options.group)
        self._seen: dict[Place, Extent] | None = None
        """The partitions as last told by the node."""
        self._initial: Offsets | None = None
        self._is_bounded = False
        """What was seen when the query began is all that it reads."""
        self._has_planned = False
        """This run has planned a batch, so batches to read are its own and not those of an earlier one."""

    def initialOffset(self) -> Offsets:
        # Spark asks more than once before the first batch is done. "Latest" must mean the same each time:
        # what arrives between two answers would be passed over.
        if self._initial is None:
            extents = self._partitions.now(self._client)
            strict = self._options.fail_on_data_loss
            starting = resolve(self._client, self._options.starting, extents, fail_on_data_loss=strict)
            self._initial = nested(starting)
        return self._initial

    def prepareForTriggerAvailableNow(self) -> None:
        self._seen = self._partitions.now(self._client, may_be_gone=True)
        self._is_bounded = True

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        if self._seen is None or not self._is_bounded:
            self._seen = self._partitions.behind(self._client, start, wait_ms=_POLL_MS)
        seen = self._seen
        first = self._first_offsets(flat(start), seen)
        self._has_planned = True
        if self._progress is not None:
            # Spark plans a batch when the one before it is done: what lies before the start is done with.
            self._progress.publish(nested(first))
        end = ends(seen)
        if isinstance(limit, ReadMaxRows):
            end = cap_records(first, end, limit.max_rows)
        bytes_max = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self._options.bytes_max
        if bytes_max is not None and not isinstance(limit, ReadAllAvailable):
            end = cap_bytes(self._client, first, end, seen, bytes_max)
        # The position in a topic that is gone is kept: it may come back.
        return nested(flat(start) | end)

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.records_max is not None:
            return ReadMaxRows(self._options.records_max)
        if self._options.bytes_max is not None:
            return ReadMaxBytes(self._options.bytes_max)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> Offsets | None:
        return None if self._seen is None else nested(ends(self._seen))

    def partitions(self, start: Offsets, end: Offsets) -> list[RangePartition]:
        flat_start, flat_end = flat(start), flat(end)
        if not self._has_planned and start == self._initial and self._options.starting.may_move:
            flat_start = self._earlier_start(flat_end)
        self._check_order(flat_start, flat_end)
        seen = self._seen
        if seen is None or flat_end.keys() - seen.keys():
            # A batch that was planned before a restart is read first, before anything is asked for.
            seen = self._partitions.now(self._client, may_be_gone=True)
        wanted_end = {place: offset for place, offset in flat_end.items() if place in seen}
        first = self._first_offsets(flat_start, seen)
        ranges = plan_ranges(self._client, first, wanted_end, seen, self._options)
        return [RangePartition(wanted) for wanted in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, RangePartition):
            yield from read_range(self._options, self._columns, partition.value)

    def stop(self) -> None:
        self._client.close()

    def _earlier_start(self, end: Mapping[Place, int]) -> dict[Place, int]:
        """Where the first batch of an earlier run began, which stopped before that batch was done.

        Spark keeps where a batch ends, but not where the first one began: it asks again, and the latest
        messages are others now. Where progress is published, it tells.
        """
        if self._progress is not None:
            published = flat(self._progress.published())
            if all(published.get(place, _NEVER) <= offset for place, offset in end.items()):
                return {place: published[place] for place in end}
        if self._options.fail_on_data_loss:
            raise gone(
                f"an earlier run, which was to read up to {json.dumps(nested(end))}, began at the latest "
                "messages and stopped before its first micro-batch was done, so that nobody knows where that "
                "began (a new checkpoint begins afresh; with the option group the beginning is kept)"
            )
        return dict(end)

    def _check_order(self, start: Mapping[Place, int], end: Mapping[Place, int]) -> None:
        """A batch that ends before it begins was planned when there were earlier messages."""
        behind = [place for place, offset in end.items() if offset < start.get(place, 0)]
        if behind and self._options.fail_on_data_loss:
            place = behind[0]
            raise gone(f"{place} was to be read up to offset {end[place]}, but begins at {start[place]} now")

    def _first_offsets(self, start: Mapping[Place, int], seen: Mapping[Place, Extent]) -> dict[Place, int]:
        """Where to go on in each partition; a new one is read from its beginning."""
        check_not_gone(start, seen, fail_on_data_loss=self._options.fail_on_data_loss)
        return {place: max(start.get(place, extent.start), extent.start) for place, extent in seen.items()}
