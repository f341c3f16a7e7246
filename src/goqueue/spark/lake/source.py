"""Lake tables read back: `spark.read.format("goqueue-lake")`, which sees committed files and no others."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from goqueue.model.errors import NotFound
from goqueue.spark.lake.formats import open_table
from goqueue.spark.lake.options import TablePlace, lake_options
from goqueue.spark.lake.schema import conform

_TASKS_MAX = 64


class LakePartition(InputPartition):
    """The parts of a table that one task reads."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        super().__init__(parts)


def table_schema(options: Mapping[str, str]) -> StructType:
    """The table's columns, as Spark writes a schema."""
    place = lake_options(options).place
    schema = open_table(place).schema()
    if schema is None:
        raise NotFound(f"there is no {place} at {place.folder}")
    return from_arrow_schema(schema)


def table_reader(options: Mapping[str, str], schema: StructType) -> "LakeReader":
    """The reader of a batch query."""
    return LakeReader(lake_options(options).place, to_arrow_schema(schema, timezone="UTC"))


class LakeReader(DataSourceReader):
    """A table as it was when the query was planned."""

    def __init__(self, place: TablePlace, schema: pa.Schema) -> None:
        self._place = place
        self._schema = schema

    def partitions(self) -> list[LakePartition]:
        parts = open_table(self._place).parts()
        count = min(len(parts), _TASKS_MAX)
        return [LakePartition(tuple(parts[number::count])) for number in range(count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes a task without a part when there is nothing to read.
        if isinstance(partition, LakePartition):
            for rows in open_table(self._place).read(partition.value):
                yield conform(rows, self._schema)
