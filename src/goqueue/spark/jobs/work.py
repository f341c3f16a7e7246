"""Work items: a source for Spark whose rows are done work, one an item.

The work happens in `read`, on whichever machine Spark chooses, and may be begun more than once: an item
writes under names of its own, and the row of the attempt that succeeded names the winner.
"""

import base64
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_ITEMS = "items"
_ITEMS_A_CORE = 4
_CORES_UNKNOWN = 8
_SCHEMA = pa.schema([pa.field("number", pa.int32()), pa.field("row", pa.binary())])


class WorkItem(Protocol):
    """Something to do in a task. It is copied there, and knows all it needs."""

    def run(self) -> bytes:
        """Do it; the row of the manifest, as JSON."""


class JobSource(DataSource):
    """The items of one wave as a table."""

    @classmethod
    def name(cls) -> str:
        return "goqueue-job"

    def schema(self) -> str:
        return "number int, row binary"

    def reader(self, schema: "StructType") -> DataSourceReader:
        return _ItemReader(self.options[_ITEMS])


class _ItemPartition(InputPartition):
    def __init__(self, number: int, item: WorkItem) -> None:
        super().__init__((number, item))


class _ItemReader(DataSourceReader):
    def __init__(self, items: str) -> None:
        self._items = items

    def partitions(self) -> Sequence[_ItemPartition]:
        # What the driver of this very job has written, as Spark itself does with its plans.
        items: list[WorkItem] = pickle.loads(base64.b85decode(self._items))  # noqa: S301
        return [_ItemPartition(number, item) for number, item in enumerate(items)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        number, item = partition.value
        yield pa.RecordBatch.from_arrays(
            [pa.array([number], pa.int32()), pa.array([item.run()], pa.binary())], schema=_SCHEMA
        )


def do_items(spark: "SparkSession", items: Sequence[WorkItem]) -> list[bytes]:
    """Do all items, as many at a time as there are cores; their rows, in the items' order."""
    spark.dataSource.register(JobSource)
    text = base64.b85encode(pickle.dumps(list(items))).decode()
    done = spark.read.format(JobSource.name()).option(_ITEMS, text).load().collect()
    rows = {row["number"]: bytes(row["row"]) for row in done}
    return [rows[number] for number in range(len(items))]


def items_at_once(spark: "SparkSession") -> int:
    """How many items make a wave: a few for each core, so that one slow item does not idle the others."""
    try:
        cores = spark.sparkContext.defaultParallelism
    except PySparkException:
        # A session over Spark Connect does not know its cluster.
        cores = _CORES_UNKNOWN
    return max(_ITEMS_A_CORE * cores, 8)
