"""Topics as streams: each message once, in portions, across restarts, with what is new found on the way."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.streaming.query import StreamingQuery

from goqueue.model.errors import NotFound
from goqueue.spark.codec.columns import Columns
from goqueue.spark.source.options import source_options
from goqueue.spark.source.stream import TopicStreamReader
from tests.integration.clients import create_topic
from tests.integration.conftest import StartBroker
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.published import Publisher

_TIMEOUT_S = 60


class Copy:
    """A stream from topics into files, which keep each row once, and its checkpoint."""

    def __init__(
        self, spark: SparkSession, broker: RunningBroker, folder: Path, options: Mapping[str, object]
    ) -> None:
        self._spark = spark
        self._files = str(folder / "files")
        self._checkpoint = str(folder / "checkpoint")
        self._options = {"bootstrap": broker.http, "startingOffsets": "earliest", **options}

    def start(self, *, available_now: bool = False, **more: object) -> StreamingQuery:
        given = {name: str(value) for name, value in (self._options | more).items()}
        frame: DataFrame = self._spark.readStream.format("goqueue").options(**given).load()
        writer = frame.writeStream.format("parquet").option("checkpointLocation", self._checkpoint)
        trigger = {"availableNow": True} if available_now else {"processingTime": "0 seconds"}
        return writer.trigger(**trigger).start(self._files)

    def run(self, **more: object) -> StreamingQuery:
        """Read all that is there now, to the end."""
        query = self.start(available_now=True, **more)
        assert query.awaitTermination(_TIMEOUT_S), "the query has not ended"
        return query

    @contextmanager
    def running(self) -> Iterator[StreamingQuery]:
        query = self.start()
        try:
            yield query
        finally:
            query.stop()

    def numbers(self) -> list[int]:
        rows = self._spark.read.parquet(self._files).select("value").collect()
        return sorted(int(bytes(row.value)) for row in rows)


def rows_by_batch(query: StreamingQuery) -> list[int]:
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]


def test_all_that_is_there_is_read_in_portions_each_message_once(
    spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "portions", partitions=3)
    publisher = Publisher(shared_broker.kafka, "portions").publish_numbers(range(1_000), partitions=3)
    copy = Copy(spark, shared_broker, tmp_path, {"topic": "portions", "maxRecordsPerBatch": 400})

    query = copy.run()

    assert copy.numbers() == list(range(1_000))
    assert all(count <= 400 for count in rows_by_batch(query))
    assert len(rows_by_batch(query)) in (3, 4)
    assert json.loads(query.recentProgress[-1].sources[0].endOffset) == {
        "portions": {"0": 334, "1": 333, "2": 333}
    }
    publisher.publish_numbers(range(1_000, 1_100), partitions=3)
    copy.run()
    assert copy.numbers() == list(range(1_100))


def test_a_portion_can_be_given_in_bytes(
    spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "sized", partitions=1)
    publisher = Publisher(shared_broker.kafka, "sized")
    for number in range(40):
        publisher.publish(str(number).zfill(4_000).encode())
        publisher.flush()
    copy = Copy(spark, shared_broker, tmp_path, {"topic": "sized", "maxBytesPerBatch": "64k"})

    query = copy.run()

    assert copy.numbers() == list(range(40))
    assert len(rows_by_batch(query)) >= 3
    assert max(rows_by_batch(query)) <= 20


def test_new_partitions_and_new_topics_are_found_while_running(
    spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "growing-a", partitions=1)
    Publisher(shared_broker.kafka, "growing-a").publish_numbers(range(10), partitions=1)
    admin = AdminClient({"bootstrap.servers": shared_broker.kafka})

    with Copy(spark, shared_broker, tmp_path, {"topicPattern": "growing-.*"}).running() as query:
        query.processAllAvailable()
        for future in admin.create_partitions([NewPartitions("growing-a", 2)]).values():
            future.result(30)
        # A producer of its own: the first one learns of the new partition only some minutes later.
        second = Publisher(shared_broker.kafka, "growing-a")
        second.publish(b"10", partition=1)
        second.flush()
        create_topic(shared_broker.kafka, "growing-b", partitions=1)
        Publisher(shared_broker.kafka, "growing-b").publish_numbers(range(11, 20), partitions=1)
        query.processAllAvailable()

    assert Copy(spark, shared_broker, tmp_path, {}).numbers() == list(range(20))


def test_a_stream_outlives_a_restart_of_the_broker(
    spark: SparkSession, start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker()
    create_topic(broker.kafka, "restarts", partitions=2)
    Publisher(broker.kafka, "restarts").publish_numbers(range(100), partitions=2)
    copy = Copy(spark, broker, tmp_path, {"topic": "restarts"})

    with copy.running() as query:
        query.processAllAvailable()
        broker.kill()
        broker.start()
        Publisher(broker.kafka, "restarts").publish_numbers(range(100, 200), partitions=2)
        query.processAllAvailable()
        assert query.exception() is None

    assert copy.numbers() == list(range(200))


def test_messages_that_went_while_a_stream_stood_still_stop_it_unless_told_otherwise(
    spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "retained", partitions=1)
    publisher = Publisher(shared_broker.kafka, "retained").publish_numbers(range(10), partitions=1)
    copy = Copy(spark, shared_broker, tmp_path, {"topic": "retained"})
    copy.run()
    publisher.publish_numbers(range(10, 30), partitions=1)
    admin = AdminClient({"bootstrap.servers": shared_broker.kafka})
    for future in admin.delete_records([TopicPartition("retained", 0, 20)]).values():
        future.result(30)

    with pytest.raises(PySparkException, match="retained/0 holds offsets 20 to 30"):
        copy.run()
    copy.run(failOnDataLoss=False)
    assert copy.numbers() == [*range(10), *range(20, 30)]


def test_a_topic_that_was_deleted_stops_a_stream_unless_told_otherwise(
    spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    for topic in ("leaving", "staying"):
        create_topic(shared_broker.kafka, topic, partitions=1)
    Publisher(shared_broker.kafka, "leaving").publish_numbers(range(5), partitions=1)
    staying = Publisher(shared_broker.kafka, "staying").publish_numbers(range(5, 10), partitions=1)
    copy = Copy(spark, shared_broker, tmp_path, {"topics": "leaving,staying"})
    copy.run()
    httpx.delete(f"{shared_broker.http}/topics/leaving").raise_for_status()
    staying.publish_numbers(range(10, 15), partitions=1)

    with pytest.raises(PySparkException, match="messages are gone: topic leaving does not exist"):
        copy.run()
    copy.run(failOnDataLoss=False)
    assert copy.numbers() == list(range(15))


def latest_reader(broker: RunningBroker, topic: str, **options: str) -> TopicStreamReader:
    given = {"bootstrap": broker.http, "topic": topic, **options}
    return TopicStreamReader(source_options(given, is_streaming=True), Columns.named(["value"]))


def test_the_latest_position_does_not_move_between_two_questions(shared_broker: RunningBroker) -> None:
    create_topic(shared_broker.kafka, "moving", partitions=1)
    reader = latest_reader(shared_broker, "moving")
    publisher = Publisher(shared_broker.kafka, "moving").publish_numbers(range(3), partitions=1)

    first = reader.initialOffset()
    publisher.publish_numbers(range(3, 5), partitions=1)
    end = reader.latestOffset(first, ReadAllAvailable())
    publisher.publish_numbers(range(5, 9), partitions=1)
    [task] = reader.partitions(reader.initialOffset(), end)
    reader.stop()

    assert (task.value.first_offset, task.value.end_offset) == (3, 5)


def test_a_first_batch_whose_beginning_is_forgotten_stops_a_stream_unless_told_otherwise(
    shared_broker: RunningBroker,
) -> None:
    create_topic(shared_broker.kafka, "forgotten", partitions=1)
    Publisher(shared_broker.kafka, "forgotten").publish_numbers(range(9), partitions=1)
    planned_by_an_earlier_run = {"forgotten": {"0": 5}}
    strict = latest_reader(shared_broker, "forgotten")
    lenient = latest_reader(shared_broker, "forgotten", failOnDataLoss="false")

    with pytest.raises(NotFound, match="stopped before its first micro-batch was done"):
        strict.partitions(strict.initialOffset(), planned_by_an_earlier_run)
    assert lenient.partitions(lenient.initialOffset(), planned_by_an_earlier_run) == []
    strict.stop()
    lenient.stop()


def test_a_first_batch_is_not_forgotten_in_silence_when_nothing_has_come_since(
    shared_broker: RunningBroker,
) -> None:
    create_topic(shared_broker.kafka, "forgotten-quietly", partitions=1)
    Publisher(shared_broker.kafka, "forgotten-quietly").publish_numbers(range(5), partitions=1)
    reader = latest_reader(shared_broker, "forgotten-quietly")

    with pytest.raises(NotFound, match="nobody knows where that began"):
        reader.partitions(reader.initialOffset(), {"forgotten-quietly": {"0": 5}})
    reader.stop()


def test_a_batch_that_ends_before_the_log_begins_stops_a_stream(shared_broker: RunningBroker) -> None:
    create_topic(shared_broker.kafka, "shortened", partitions=1)
    Publisher(shared_broker.kafka, "shortened").publish_numbers(range(9), partitions=1)
    admin = AdminClient({"bootstrap.servers": shared_broker.kafka})
    for future in admin.delete_records([TopicPartition("shortened", 0, 7)]).values():
        future.result(30)
    reader = latest_reader(shared_broker, "shortened", startingOffsets="earliest")

    with pytest.raises(NotFound, match="shortened/0 was to be read up to offset 5, but begins at 7 now"):
        reader.partitions(reader.initialOffset(), {"shortened": {"0": 5}})
    reader.stop()


def test_where_nothing_is_new_the_position_is_the_same_text(shared_broker: RunningBroker) -> None:
    create_topic(shared_broker.kafka, "quiet", partitions=12)
    options = {"bootstrap": shared_broker.http, "assign": '{"quiet": [11, 2, 0]}'}
    reader = TopicStreamReader(source_options(options, is_streaming=True), Columns.named(["value"]))

    start = reader.initialOffset()
    told = [json.dumps(reader.latestOffset(start, ReadAllAvailable())) for _ in range(2)]

    assert told == [json.dumps(start)] * 2
    assert start == {"quiet": {"0": 0, "11": 0, "2": 0}}
    assert reader.partitions(start, start) == []
    reader.stop()
