"""`format("goqueue-lake")`: Iceberg, Delta and plain Parquet tables, found by Spark as `pyspark_goqueue` is.

Every process of Spark that plans a query imports it, so the rest is imported when it is needed.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Lake tables, written exactly once."""

    @classmethod
    def name(cls) -> str:
        return "goqueue-lake"

    def schema(self) -> "StructType":
        from goqueue.spark.lake.source import table_schema

        return table_schema(self.options)

    def reader(self, schema: "StructType") -> DataSourceReader:
        from goqueue.spark.lake.source import table_reader

        return table_reader(self.options, schema)

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        from goqueue.spark.lake.sink import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> DataSourceStreamWriter:
        from goqueue.spark.lake.sink import stream_writer

        return stream_writer(self.options, schema, overwrite)
