"""The source behind `format("goqueue")`: from options and a schema to the reader that serves them."""

from collections.abc import Mapping

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from goqueue.model.errors import Invalid
from goqueue.spark.codec.columns import Columns
from goqueue.spark.source.batch import TopicReader
from goqueue.spark.source.options import column_names, source_options
from goqueue.spark.source.pushdown import FilteringTopicReader
from goqueue.spark.source.stream import TopicStreamReader

_SPARK_TYPES = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key: string, value: binary>>",
    "priority": "int",
    "traceparent": "string",
}


def table_schema(options: Mapping[str, str]) -> str:
    """The columns asked for, as Spark writes a schema."""
    names = column_names(options)
    if unknown := [name for name in names if name not in _SPARK_TYPES]:
        raise Invalid(f"columns: there is no {', '.join(unknown)}: choose from {', '.join(_SPARK_TYPES)}")
    return ", ".join(f"`{name}` {_SPARK_TYPES[name]}" for name in names)


def batch_reader(options: Mapping[str, str], schema: StructType) -> TopicReader:
    """The reader of a batch query."""
    taken = source_options(options, is_streaming=False)
    if taken.archive is not None:
        # The archive brings in pyarrow's Parquet, which a reader of the live log need not load.
        from goqueue.spark.source.archive import ArchivedTopicReader

        return ArchivedTopicReader(taken, _columns(schema), taken.archive)
    # Spark fails a query whose reader takes filters while its own setting is off, so it is a class apart.
    kind = FilteringTopicReader if taken.pushdown else TopicReader
    return kind(taken, _columns(schema))


def stream_reader(options: Mapping[str, str], schema: StructType) -> TopicStreamReader:
    """The reader of a streaming query."""
    return TopicStreamReader(source_options(options, is_streaming=True), _columns(schema))


def _columns(schema: StructType) -> Columns:
    """Spark compares our rows with exactly this schema."""
    return Columns(to_arrow_schema(schema, timezone="UTC"))
