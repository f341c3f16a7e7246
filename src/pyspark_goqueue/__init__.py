"""`format("goqueue")`: Spark looks through all packages named pyspark_* and finds this one by itself.

Every process of Spark that plans a query imports it, so the rest is imported when it is needed.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Topics of GoQueue as tables and streams."""

    @classmethod
    def name(cls) -> str:
        return "goqueue"

    def schema(self) -> str:
        from goqueue.spark.source.reader import table_schema

        return table_schema(self.options)

    def reader(self, schema: "StructType") -> DataSourceReader:
        from goqueue.spark.source.reader import batch_reader

        return batch_reader(self.options, schema)

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        from goqueue.spark.source.reader import stream_reader

        return stream_reader(self.options, schema)

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        from goqueue.spark.sink.writer import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> DataSourceStreamWriter:
        from goqueue.spark.sink.writer import stream_writer

        return stream_writer(self.options, schema, overwrite)
