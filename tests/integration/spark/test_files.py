"""`transport=files`: the same rows from the node's data folder as from the node."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from goqueue.client import log
from goqueue.client.connection import Client
from goqueue.spark.codec.columns import Columns
from goqueue.spark.source import fetch as source_fetch
from goqueue.spark.source.fetch import read_range
from goqueue.spark.source.offsets import OffsetRange
from goqueue.spark.source.options import source_options
from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.published import Publisher
from tests.integration.spark.test_source_batch import rows_of, table

VALUES = Columns.named(["offset", "value"])


def files_of(broker: RunningBroker) -> dict[str, str]:
    return {"transport": "files", "dataPath": str(broker.folder)}


@pytest.fixture(scope="module")
def segments(shared_broker: RunningBroker) -> Publisher:
    """A topic whose messages lie in several segments."""
    create_topic(shared_broker.kafka, "segments", partitions=2, settings={"segment.bytes": "65536"})
    publisher = Publisher(shared_broker.kafka, "segments")
    for first in range(0, 2_000, 100):
        for number in range(first, first + 100):
            publisher.publish(str(number).zfill(200).encode(), partition=number % 2, key=b"%d" % number)
        publisher.flush()
    assert len(list((shared_broker.folder / "logs" / "segments" / "0").glob("*.log"))) > 2
    return publisher


def test_rows_from_files_are_those_from_the_broker(
    spark: SparkSession, shared_broker: RunningBroker, segments: Publisher
) -> None:
    options = {"topic": "segments", "splitBytes": "50k"}

    frame = table(spark, shared_broker, options | files_of(shared_broker))

    assert rows_of(frame) == sorted(segments.rows) == rows_of(table(spark, shared_broker, options))


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The offsets of the windows that the node was asked for."""
    asked: list[int] = []

    def counted(
        client: Client, topic: str, partition: int, *, offset: int, max_bytes: int, rack: str
    ) -> log.Window:
        asked.append(offset)
        return log.frames(client, topic, partition, offset=offset, max_bytes=max_bytes, rack=rack)

    monkeypatch.setattr(source_fetch, "frames", counted)
    yield asked


def offsets_read(broker: RunningBroker, topic: str, first_offset: int, end_offset: int) -> list[int]:
    options = source_options(
        {"bootstrap": broker.http, "topic": topic, **files_of(broker)}, is_streaming=False
    )
    wanted = OffsetRange(topic, 0, first_offset, end_offset, 1)
    return [offset for rows in read_range(options, VALUES, wanted) for offset in rows["offset"].to_pylist()]


@pytest.mark.parametrize(("first_offset", "end_offset"), [(0, 1_000), (333, 777), (999, 1_000)])
def test_the_node_is_not_asked_for_what_its_files_hold(
    shared_broker: RunningBroker,
    segments: Publisher,
    requests: list[int],
    first_offset: int,
    end_offset: int,
) -> None:
    read = offsets_read(shared_broker, "segments", first_offset, end_offset)

    assert read == list(range(first_offset, end_offset))
    assert requests == []


def test_what_was_aborted_is_no_row_of_the_files_either(
    shared_broker: RunningBroker, requests: list[int]
) -> None:
    create_topic(shared_broker.kafka, "taken-back", partitions=1)
    producer = Producer(
        {"bootstrap.servers": shared_broker.kafka, "transactional.id": "spark-files", "log_level": 0}
    )
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        producer.produce("taken-back", str(number).encode(), partition=0)
        producer.flush(30)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)

    read = offsets_read(shared_broker, "taken-back", 0, 8)

    assert read == [0, 4]
    assert requests[0] == 0


def test_a_folder_without_the_topic_leaves_all_to_the_node(
    shared_broker: RunningBroker,
    segments: Publisher,
    requests: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("empty")
    given = {
        "bootstrap": shared_broker.http,
        "topic": "segments",
        "transport": "files",
        "dataPath": str(folder),
    }
    wanted = OffsetRange("segments", 0, 990, 1_000, 1)

    read = list(read_range(source_options(given, is_streaming=False), VALUES, wanted))

    assert sum(rows.num_rows for rows in read) == 10
    assert requests == [990]
