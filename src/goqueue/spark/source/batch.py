"""Topics as a table: the reader of a batch query, and the task that readers of both kinds share.

Planning runs on the driver and asks the node for positions only; tasks fetch frames and decode them.
`read` keeps nothing between calls: Spark copies a reader to its workers as it was when it was planned.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from goqueue.client.connection import Client
from goqueue.spark.codec.columns import Columns
from goqueue.spark.source.fetch import read_range
from goqueue.spark.source.offsets import OffsetRange, Place
from goqueue.spark.source.options import SourceOptions
from goqueue.spark.source.planning import plan_ranges
from goqueue.spark.source.positions import Partitions, resolve


class RangePartition(InputPartition):
    """What one task reads."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)


class TopicReader(DataSourceReader):
    """Topics as a table: everything between two positions that are fixed when the query is planned."""

    def __init__(self, options: SourceOptions, columns: Columns) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[RangePartition]:
        options = self._options
        client = options.connect()
        try:
            extents = Partitions(options).now(client)
            strict = options.fail_on_data_loss
            start = resolve(client, options.starting, extents, fail_on_data_loss=strict)
            end = resolve(client, options.ending, extents, fail_on_data_loss=False)
            start, end = self._narrowed(client, start, end)
            return [RangePartition(wanted) for wanted in plan_ranges(client, start, end, extents, options)]
        finally:
            client.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes a task without a range when there is nothing to read.
        if isinstance(partition, RangePartition):
            yield from read_range(self._options, self._columns, partition.value)

    def _narrowed(
        self, client: Client, start: dict[Place, int], end: dict[Place, int]
    ) -> tuple[dict[Place, int], dict[Place, int]]:
        """What is left of the positions when filters are known."""
        return start, end
