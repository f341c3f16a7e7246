"""`df.write.format("goqueue")` and `df.writeStream`: which rows arrive where, and what is refused."""

from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.integration.clients import create_topic, read_all
from tests.integration.running_broker import RunningBroker

NUMBERS = "CAST(id AS STRING) AS value"


def write(rows: DataFrame, bootstrap: str, **options: str) -> None:
    rows.write.format("goqueue").mode("append").options(bootstrap=bootstrap, **options).save()


def messages_of(broker: RunningBroker, topic: str, partition: int) -> list[dict[str, object]]:
    reply = httpx.get(f"{broker.http}/topics/{topic}/partitions/{partition}/messages?offset=0")
    messages: list[dict[str, object]] = reply.json()["messages"]
    return messages


def numbers_in(broker: RunningBroker, topic: str, *, partitions: int = 1) -> list[int]:
    found = read_all(broker.kafka, topic, partitions=partitions)
    return sorted(int(value) for values in found.values() for value in values)


def test_every_column_arrives(spark: SparkSession, shared_broker: RunningBroker, bootstrap: str) -> None:
    create_topic(shared_broker.kafka, "columns", partitions=2)
    rows = spark.createDataFrame(
        [
            (b"a", "k", 1, "high", [("h", b"1"), ("h", None)], datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
            (None, None, 0, None, None, None),
        ],
        "value binary, key string, partition int, priority string,"
        " headers array<struct<key: string, value: binary>>, timestamp timestamp",
    ).coalesce(1)

    write(rows, bootstrap, topic="columns")

    [placed] = messages_of(shared_broker, "columns", 1)
    assert (placed["value"], placed["key"], placed["priority"]) == ("a", "k", "high")
    assert str(placed["timestamp"]).startswith("2026-01-02T03:04:05")
    assert placed["header_list"] == [{"name": "h", "value": "1"}, {"name": "h", "value": None}]
    [bare] = messages_of(shared_broker, "columns", 0)
    assert (bare["value"], bare.get("key"), bare["priority"], bare.get("headers")) == (
        None,
        None,
        "normal",
        None,
    )


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_batch_write_arrives_whole(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, delivery: str, compression: str
) -> None:
    topic = f"batch-{delivery}-{compression}"
    create_topic(shared_broker.kafka, topic, partitions=3)

    write(
        spark.range(20_000).selectExpr(NUMBERS),
        bootstrap,
        topic=topic,
        delivery=delivery,
        compression=compression,
    )

    assert numbers_in(shared_broker, topic, partitions=3) == list(range(20_000))


def test_rows_find_the_topics_they_name(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str
) -> None:
    for topic in ("even", "odd"):
        create_topic(shared_broker.kafka, topic, partitions=1)

    rows = spark.range(10).selectExpr(NUMBERS, "CASE WHEN id % 2 = 0 THEN 'even' END AS topic")
    write(rows, bootstrap, topic="odd")

    assert numbers_in(shared_broker, "even") == [0, 2, 4, 6, 8]
    assert numbers_in(shared_broker, "odd") == [1, 3, 5, 7, 9]


def test_a_write_that_was_done_is_not_done_again_under_its_name(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str
) -> None:
    create_topic(shared_broker.kafka, "named", partitions=1)
    rows = spark.range(100).selectExpr(NUMBERS)

    for _ in range(2):
        write(rows, bootstrap, topic="named", writeId="orders-of-monday")

    assert numbers_in(shared_broker, "named") == list(range(100))


def test_a_write_that_fails_leaves_nothing_and_no_sink(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str
) -> None:
    create_topic(shared_broker.kafka, "failing", partitions=1)
    sinks = httpx.get(f"{shared_broker.http}/sinks").json()
    rows = spark.range(100).repartition(2).selectExpr(NUMBERS)

    with pytest.raises(PySparkException, match="the last row is bad"):
        write(
            rows.selectExpr("IF(value = '99', raise_error('the last row is bad'), value) AS value"),
            bootstrap,
            topic="failing",
        )
    assert numbers_in(shared_broker, "failing") == []

    write(rows, bootstrap, topic="failing")
    assert numbers_in(shared_broker, "failing") == list(range(100))
    assert len(httpx.get(f"{shared_broker.http}/sinks").json()["sinks"]) <= len(sinks["sinks"]) + 1


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_stream_goes_on_where_it_stopped(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, tmp_path: Path, delivery: str
) -> None:
    create_topic(shared_broker.kafka, f"stream-{delivery}", partitions=2)
    files = tmp_path / "files"

    for first in (0, 500):
        spark.range(first, first + 500).write.mode("append").parquet(str(files))
        stream = spark.readStream.schema("id bigint").parquet(str(files)).selectExpr(NUMBERS)
        stream.writeStream.format("goqueue").options(
            bootstrap=bootstrap,
            topic=f"stream-{delivery}",
            delivery=delivery,
            checkpointLocation=str(tmp_path / "checkpoint"),
        ).trigger(availableNow=True).start().awaitTermination()

    assert numbers_in(shared_broker, f"stream-{delivery}", partitions=2) == list(range(1_000))


def test_overwriting_is_refused_with_the_reason(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str
) -> None:
    create_topic(shared_broker.kafka, "kept", partitions=1)

    with pytest.raises(PySparkException, match="a topic is a log"):
        spark.range(1).selectExpr(NUMBERS).write.format("goqueue").mode("overwrite").options(
            bootstrap=bootstrap, topic="kept"
        ).save()


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        (NUMBERS, {}, "set the option topic, or give the rows a column topic"),
        (NUMBERS, {"topic": "nowhere"}, "topic nowhere does not exist"),
        (f"{NUMBERS}, 7 AS partition", {"topic": "refusing"}, "topic refusing has no partition 7"),
        (f"{NUMBERS}, now() AS deliver_at", {"topic": "refusing"}, "deliver_at: delayed messages arrive"),
        (f"{NUMBERS}, id AS offset", {"topic": "refusing"}, "offset: a topic takes the columns value"),
    ],
)
def test_what_cannot_be_written_is_told_plainly(
    spark: SparkSession,
    shared_broker: RunningBroker,
    bootstrap: str,
    columns: str,
    options: dict[str, str],
    problem: str,
) -> None:
    if httpx.get(f"{shared_broker.http}/topics/refusing").status_code == 404:
        create_topic(shared_broker.kafka, "refusing", partitions=1)

    with pytest.raises(PySparkException, match=problem):
        write(spark.range(1).selectExpr(*columns.split(", ")), bootstrap, **options)

    assert numbers_in(shared_broker, "refusing") == []
