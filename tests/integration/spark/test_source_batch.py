"""Topics as tables: what librdkafka published is what Spark shows, row by row."""

from collections.abc import Mapping

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.published import ExpectedRow, Publisher

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def table(spark: SparkSession, broker: RunningBroker, options: Mapping[str, object]) -> DataFrame:
    given = {"bootstrap": broker.http, **options}
    return spark.read.format("goqueue").options(**{name: str(value) for name, value in given.items()}).load()


def rows_of(frame: DataFrame) -> list[ExpectedRow]:
    """The rows of a topic, in the order of partitions and offsets; times in ms."""
    collected = frame.selectExpr(
        "partition", "offset", "unix_millis(timestamp) AS timestamp_ms", "key", "value", "headers"
    ).collect()
    return sorted(
        ExpectedRow(
            row.partition,
            row.offset,
            row.timestamp_ms,
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            tuple(
                (header.key, None if header.value is None else bytes(header.value)) for header in row.headers
            ),
        )
        for row in collected
    )


def values_of(frame: DataFrame) -> list[int]:
    return sorted(int(bytes(row.value)) for row in frame.select("value").collect())


@pytest.fixture(scope="module")
def numbers(shared_broker: RunningBroker) -> Publisher:
    """A topic of three partitions with the numbers below 3,000 in small batches, dealt out in turn."""
    create_topic(shared_broker.kafka, "numbers", partitions=3)
    publisher = Publisher(shared_broker.kafka, "numbers")
    for first in range(0, 3_000, 300):
        publisher.publish_numbers(range(first, first + 300), partitions=3)
    return publisher


def test_every_row_is_as_librdkafka_published_it(spark: SparkSession, shared_broker: RunningBroker) -> None:
    create_topic(shared_broker.kafka, "mixed", partitions=2)
    expected: list[ExpectedRow] = []
    for codec in CODECS:
        publisher = Publisher(shared_broker.kafka, "mixed", codec=codec)
        for number in range(200):
            publisher.publish(
                None if number % 7 == 0 else bytes([number % 256]) * (number * 13 % 500),
                partition=number % 2,
                key=None if number % 3 == 0 else f"{codec}-{number}".encode(),
                headers=[("name", b"value"), ("name", None), ("empty", b"")][: number % 4],
            )
        expected += publisher.flush().rows

    frame = table(spark, shared_broker, {"topic": "mixed"})

    assert rows_of(frame) == sorted(expected)
    assert {(row.topic, row.priority) for row in frame.select("topic", "priority").distinct().collect()} == {
        ("mixed", 2)
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"numbers": {"0": 990, "1": -1, "2": -1}}'}, range(2_970, 3_000, 3)),
        (
            {
                "startingOffsets": '{"numbers": {"0": -2, "1": -1, "2": -1}}',
                "endingOffsets": '{"numbers": {"0": 10}}',
            },
            range(0, 30, 3),
        ),
        ({"assign": '{"numbers": [1]}'}, range(1, 3_000, 3)),
        ({"topicPattern": "num.*s"}, range(3_000)),
        ({"topicPattern": "no such topic"}, range(0)),
        ({"startingOffsets": "latest"}, range(0)),
        ({"startingTimestamp": "0", "endingTimestamp": "1000"}, range(0)),
        ({"startingTimestamp": "1000"}, range(3_000)),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_read_is_bounded_as_its_options_say(
    spark: SparkSession,
    shared_broker: RunningBroker,
    numbers: Publisher,
    options: dict[str, str],
    expected: range,
) -> None:
    named = any(name in options for name in ("assign", "topicPattern"))

    frame = table(spark, shared_broker, options if named else {"topic": "numbers", **options})

    assert values_of(frame) == list(expected)


def test_times_bound_a_read_at_the_first_message_of_that_time(
    spark: SparkSession, shared_broker: RunningBroker
) -> None:
    create_topic(shared_broker.kafka, "timed", partitions=1)
    publisher = Publisher(shared_broker.kafka, "timed")
    for number in range(100):
        publisher.publish(str(number).encode(), timestamp_ms=1_700_000_000_000 + number * 1_000)
    publisher.flush()

    frame = table(
        spark,
        shared_broker,
        {
            "topic": "timed",
            "startingTimestamp": "2023-11-14T22:13:50Z",
            "endingOffsetsByTimestamp": '{"timed": {"0": 1700000059500}}',
        },
    )

    assert values_of(frame) == list(range(30, 60))


@pytest.mark.parametrize("options", [{"minPartitions": 9}, {"splitBytes": "1k"}], ids=str)
def test_a_partition_can_be_shared_out_among_tasks(
    spark: SparkSession, shared_broker: RunningBroker, numbers: Publisher, options: dict[str, object]
) -> None:
    frame = table(spark, shared_broker, {"topic": "numbers", **options})

    assert frame.rdd.getNumPartitions() >= 9
    assert rows_of(frame) == sorted(numbers.rows)


def test_only_the_columns_asked_for_are_read(
    spark: SparkSession, shared_broker: RunningBroker, numbers: Publisher
) -> None:
    by_option = table(spark, shared_broker, {"topic": "numbers", "columns": "value,offset"})
    by_schema = (
        spark.read.schema("traceparent string, value binary")
        .format("goqueue")
        .options(bootstrap=shared_broker.http, topic="numbers")
        .load()
    )
    without_headers = table(spark, shared_broker, {"topic": "numbers", "includeHeaders": False})

    assert by_option.columns == ["value", "offset"]
    assert values_of(by_option) == values_of(by_schema) == list(range(3_000))
    assert "headers" not in without_headers.columns


def test_filters_narrow_what_is_read(
    spark: SparkSession, shared_broker: RunningBroker, numbers: Publisher
) -> None:
    frame = table(spark, shared_broker, {"topic": "numbers", "pushdown": True})
    recently = frame.where("timestamp >= timestamp'2020-01-01' AND topic = 'numbers'")
    narrowed = frame.where("partition IN (0, 2) AND offset >= 10 AND offset < 20")

    assert narrowed.rdd.getNumPartitions() == 2
    assert values_of(narrowed) == sorted([*range(30, 60, 3), *range(32, 62, 3)])
    assert values_of(frame.where("partition = 1 AND offset = 5")) == [16]
    assert values_of(frame.where("offset > 998 AND offset <= 1000")) == [2997, 2998, 2999]
    assert recently.count() == 3_000
    assert frame.where("timestamp > timestamp'2100-01-01'").count() == 0


def test_a_topic_is_a_view_of_sql(
    spark: SparkSession, shared_broker: RunningBroker, numbers: Publisher
) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW numbers USING goqueue "
        f"OPTIONS (bootstrap '{shared_broker.http}', topic 'numbers')"
    )

    counted = spark.sql("SELECT partition, count(*) AS n FROM numbers GROUP BY partition").collect()

    assert {row.partition: row.n for row in counted} == {0: 1000, 1: 1000, 2: 1000}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"topic": "nowhere"}, "topic nowhere does not exist"),
        ({"subscribe": "a", "kafka.bootstrap.servers": "b:9092"}, "here use bootstrap"),
        ({"topic": "numbers", "columns": "value,colour"}, "there is no colour"),
        ({"topic": "numbers", "startingOffsets": '{"numbers": {"7": 0}}'}, "numbers/7, which is not read"),
        ({"topic": "numbers", "startingOffsets": '{"numbers": {"0": 1001}}'}, "offset 1001 of numbers/0"),
        ({"assign": '{"numbers": [0, 9]}'}, "there is no numbers/9"),
        ({"topic": "numbers", "bootstrap": "127.0.0.1:1", "retryForMs": 1}, "no node answers at 127.0.0.1:1"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_read_is_told_in_plain_words(
    spark: SparkSession,
    shared_broker: RunningBroker,
    numbers: Publisher,
    options: dict[str, object],
    problem: str,
) -> None:
    with pytest.raises(PySparkException, match=problem):
        table(spark, shared_broker, options).collect()


def test_messages_that_are_gone_fail_a_read_that_begins_with_them_unless_told_otherwise(
    spark: SparkSession, shared_broker: RunningBroker
) -> None:
    create_topic(shared_broker.kafka, "trimmed", partitions=1)
    Publisher(shared_broker.kafka, "trimmed").publish_numbers(range(50), partitions=1)
    admin = AdminClient({"bootstrap.servers": shared_broker.kafka})
    for future in admin.delete_records([TopicPartition("trimmed", 0, 20)]).values():
        future.result(30)
    options = {"topic": "trimmed", "startingOffsets": '{"trimmed": {"0": 5}}'}

    with pytest.raises(PySparkException, match="messages are gone: trimmed/0 begins at offset 20"):
        table(spark, shared_broker, options).collect()
    assert values_of(table(spark, shared_broker, {**options, "failOnDataLoss": False})) == list(range(20, 50))
