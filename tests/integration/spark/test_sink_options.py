"""What a write may be asked for, and what it refuses before Spark starts a task."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from goqueue.client.addresses import Address
from goqueue.model.errors import Invalid
from goqueue.records.layout import Codec
from goqueue.spark.sink.options import SINK_OPTIONS, Delivery, sink_options
from goqueue.spark.sink.schema import COLUMNS
from goqueue.spark.sink.writer import batch_writer, stream_writer

pytestmark = pytest.mark.slow

GIVEN = {"bootstrap": "127.0.0.1:8080", "topic": "orders"}


HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_a_write_is_exactly_once_unless_told_otherwise() -> None:
    taken = sink_options(GIVEN, is_streaming=True)

    assert taken.addresses == (Address("127.0.0.1", 8080),)
    assert (taken.topic, taken.delivery, taken.sink_id, taken.codec) == (
        "orders",
        Delivery.EXACTLY_ONCE,
        None,
        Codec.NONE,
    )


def test_names_of_options_know_no_case() -> None:
    given = {
        "BOOTSTRAP": "a:1,b:2",
        "Topic": "orders",
        "SINKID": "clean",
        "DELIVERY": "At-Least-Once",
        "compression": "zstd",
    }

    taken = sink_options(given, is_streaming=True)

    assert taken.addresses == (Address("a", 1), Address("b", 2))
    assert (taken.sink_id, taken.delivery, taken.codec) == ("clean", Delivery.AT_LEAST_ONCE, Codec.ZSTD)


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("delivery", "twice", "delivery: 'twice' is not one of exactly-once, at-least-once"),
        ("compression", "gzip", "compression: 'gzip' is not one of none, lz4, zstd"),
        ("sinkId", "a/b", "sinkId: 'a/b' is not a name"),
        ("sinkId", "x" * 201, "at most 200"),
        ("sinkId", "..", "is not a name"),
        ("topic", "no topic", "topic name 'no topic' is not legal"),
        ("retryForMs", "soon", "retryForMs: 'soon' is not a whole number"),
        ("writeId", "again", "writeId is for batch writes only"),
        ("kafka.bootstrap.servers", "a:9092", "here use bootstrap"),
        ("kafka.acks", "all", "kafka.acks is a setting of Kafka's client"),
        ("deliverey", "at-least-once", "there is no option deliverey; did you mean delivery?"),
    ],
)
def test_a_wrong_option_of_a_stream_is_named(option: str, value: str, problem: str) -> None:
    with pytest.raises(Invalid, match=problem.replace("?", "[?]")):
        sink_options({**GIVEN, option: value}, is_streaming=True)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(Invalid, match=r"delivery: .*; bootstrap is missing.*; sinkId is for streams only"):
        sink_options({"delivery": "x", "sinkId": "a"}, is_streaming=False)


def test_options_of_spark_itself_pass() -> None:
    sink_options({**GIVEN, "checkpointLocation": "/x", "queryName": "q", "path": "p"}, is_streaming=True)


def test_every_column_may_be_written() -> None:
    columns = schema(
        value=BinaryType(),
        key=StringType(),
        headers=ArrayType(HEADER),
        partition=IntegerType(),
        topic=StringType(),
        priority=LongType(),
        timestamp=TimestampType(),
    )

    assert columns.fieldNames() == list(COLUMNS)
    for make in (batch_writer, stream_writer):
        make(GIVEN, columns, False)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (schema(key=StringType()), "rows for a topic need a column value"),
        (schema(value=StringType(), deliver_at=TimestampType()), "deliver_at: delayed messages arrive with"),
        (schema(value=StringType(), offset=LongType(), colour=LongType()), "offset, colour: a topic takes"),
        (schema(value=DoubleType()), "column value must be binary or string, not double"),
        (schema(value=StringType(), partition=StringType()), "column partition must be int"),
        (schema(value=StringType(), headers=MapType(StringType(), StringType())), "headers must be array<st"),
    ],
)
def test_rows_that_no_topic_takes_are_refused(columns: StructType, problem: str) -> None:
    for make in (batch_writer, stream_writer):
        with pytest.raises(Invalid, match=problem):
            make(GIVEN, columns, False)


def test_rows_need_a_topic_of_their_own_or_one_of_the_write() -> None:
    nowhere = {"bootstrap": "127.0.0.1:8080"}

    batch_writer(nowhere, schema(value=StringType(), topic=StringType()), False)
    with pytest.raises(Invalid, match="set the option topic, or give the rows a column topic"):
        batch_writer(nowhere, schema(value=StringType()), False)


def test_overwriting_a_log_is_refused_with_the_reason() -> None:
    for make in (batch_writer, stream_writer):
        with pytest.raises(Invalid, match="a topic is a log: rows are added at its end and never replaced"):
            make(GIVEN, schema(value=StringType()), True)


def test_every_option_is_documented() -> None:
    with open("docs/spark-sink.md", encoding="utf-8") as page:
        text = page.read()

    for name, meaning in SINK_OPTIONS.items():
        assert f"| `{name}` | {meaning} |" in text
    for name in COLUMNS:
        assert f"| `{name}` |" in text
