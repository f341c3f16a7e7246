"""Progress of a stream as a consumer group: lag shows, and where a first batch began is not forgotten."""

import time
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from goqueue.client.connection import Refused
from goqueue.spark.codec.columns import Columns
from goqueue.spark.source.options import source_options
from goqueue.spark.source.stream import TopicStreamReader
from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.published import Publisher

_TIMEOUT_S = 60


def committed(broker: RunningBroker, group: str) -> dict[str, dict[str, int]]:
    reply = httpx.get(f"{broker.http}/groups/{group}/offsets").raise_for_status()
    offsets: dict[str, dict[str, int]] = reply.json()["offsets"]
    return offsets


def reader_of(broker: RunningBroker, topic: str, **options: str) -> TopicStreamReader:
    given = {"bootstrap": broker.http, "topic": topic, **options}
    return TopicStreamReader(source_options(given, is_streaming=True), Columns.named(["value"]))


def test_the_group_of_a_stream_has_read_what_the_stream_has(
    spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "followed", partitions=2)
    publisher = Publisher(shared_broker.kafka, "followed").publish_numbers(range(50), partitions=2)
    frame = (
        spark.readStream.format("goqueue")
        .options(bootstrap=shared_broker.http, topic="followed", group="spark-followers")
        .option("startingOffsets", "earliest")
        .option("maxRecordsPerBatch", 20)
        .load()
    )
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))

    bounded = writer.trigger(availableNow=True).start()
    assert bounded.awaitTermination(_TIMEOUT_S)

    assert committed(shared_broker, "spark-followers") == {"followed": {"0": 25, "1": 25}}
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        publisher.publish_numbers(range(50, 60), partitions=2)
        give_up_s = time.monotonic() + _TIMEOUT_S
        while committed(shared_broker, "spark-followers") != {"followed": {"0": 30, "1": 30}}:
            assert time.monotonic() < give_up_s, committed(shared_broker, "spark-followers")
            assert query.exception() is None
    finally:
        query.stop()


def test_a_group_that_others_are_members_of_is_refused_before_anything_is_read(
    shared_broker: RunningBroker,
) -> None:
    create_topic(shared_broker.kafka, "taken", partitions=1)
    member = Consumer({"bootstrap.servers": shared_broker.kafka, "group.id": "occupied", "log_level": 0})
    member.subscribe(["taken"])
    give_up_s = time.monotonic() + _TIMEOUT_S
    while not member.assignment():
        member.poll(0.1)
        assert time.monotonic() < give_up_s
    reader = reader_of(shared_broker, "taken", group="occupied")

    with pytest.raises(Refused):
        reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    member.close()
    reader.stop()


def test_a_first_batch_that_was_not_done_begins_where_its_group_says(shared_broker: RunningBroker) -> None:
    create_topic(shared_broker.kafka, "begun", partitions=1)
    publisher = Publisher(shared_broker.kafka, "begun").publish_numbers(range(3), partitions=1)
    killed = reader_of(shared_broker, "begun", group="beginners")
    start = killed.initialOffset()
    publisher.publish_numbers(range(3, 5), partitions=1)
    end = killed.latestOffset(start, ReadAllAvailable())
    killed.stop()
    publisher.publish_numbers(range(5, 9), partitions=1)

    next_run = reader_of(shared_broker, "begun", group="beginners")
    [task] = next_run.partitions(next_run.initialOffset(), end)
    next_run.stop()

    assert (task.value.first_offset, task.value.end_offset) == (3, 5)
