"""archive, union read, restore and verify, run against a real broker."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from goqueue.cli.main import app
from goqueue.model.errors import NotFound
from goqueue.spark.jobs.archive import SINK, ArchiveJob
from goqueue.spark.jobs.archive_store import MANIFEST, open_archive
from goqueue.spark.jobs.ledger import read_ledger
from goqueue.spark.jobs.restore import RestoreJob
from goqueue.spark.jobs.verify import VerifiedRange, VerifyJob
from goqueue.spark.lake.formats import open_table
from goqueue.spark.lake.options import LakeFormat, TablePlace
from goqueue.spark.sink.options import sink_options
from goqueue.spark.source.options import source_options
from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.published import ExpectedRow, Publisher

DAY_MS = 24 * 3600 * 1000
# Some days back, but not so far that the broker would delete the messages for their age.
FIRST_DAY_MS = (time.time_ns() // 1_000_000 // DAY_MS - 3) * DAY_MS


class Heard:
    """What a job has told of its progress."""

    def __init__(self) -> None:
        self.items = 0
        self.messages = 0
        self.done = 0

    def planned(self, items: int, messages: int) -> None:
        self.items, self.messages = items, messages

    def told(self, items: int, rows: Sequence[bytes]) -> None:
        self.done += items


def publish_days(kafka: str, topic: str, *, count: int, days: int = 3) -> list[ExpectedRow]:
    """Messages of several days in two partitions, with keys and headers, some without a value."""
    publisher = Publisher(kafka, topic, codec="lz4")
    for number in range(count):
        publisher.publish(
            None if number % 50 == 0 else b"value %d" % number,
            partition=number % 2,
            key=b"key %d" % (number % 7),
            headers=[("number", str(number).encode())],
            timestamp_ms=FIRST_DAY_MS + number * days * DAY_MS // count,
        )
        if number % 100 == 99:
            publisher.flush()  # so that there are several batches to share out
    return publisher.flush().rows


def archive_job(bootstrap: str, topic: str, folder: Path, **settings: str) -> ArchiveJob:
    source = source_options({"bootstrap": bootstrap, "topic": topic}, is_streaming=False)
    return ArchiveJob(topic=topic, source=source, archive=folder, item_bytes=2_000, **settings)


def run(spark: SparkSession, job: ArchiveJob | RestoreJob | VerifyJob) -> Heard:
    heard = Heard()
    job.run(spark, planned=heard.planned, told=heard.told)
    return heard


def rows_of(spark: SparkSession, bootstrap: str, topic: str, **options: str) -> list[ExpectedRow]:
    frame = spark.read.format("goqueue").options(bootstrap=bootstrap, topic=topic, **options).load()
    return sorted(
        (
            ExpectedRow(
                row.partition,
                row.offset,
                int(row.timestamp.timestamp() * 1000),
                None if row.key is None else bytes(row.key),
                None if row.value is None else bytes(row.value),
                tuple((header.key, bytes(header.value)) for header in row.headers),
            )
            for row in frame.collect()
        ),
        key=lambda row: (row.partition, row.offset),
    )


def trim(broker: RunningBroker, topic: str, ends: dict[int, int]) -> None:
    """Delete the messages before these offsets, as retention would."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker.kafka})
    wanted = [TopicPartition(topic, number, offset) for number, offset in ends.items()]
    for future in admin.delete_records(wanted).values():
        future.result()


def test_an_archive_grows_by_what_is_new_and_reads_as_one_with_the_log(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "archived", partitions=2)
    expected = publish_days(shared_broker.kafka, "archived", count=600)

    first = run(spark, archive_job(bootstrap, "archived", tmp_path))
    again = run(spark, archive_job(bootstrap, "archived", tmp_path))
    archived = open_archive(tmp_path, "archived")
    expected += publish_days(shared_broker.kafka, "archived", count=100)

    assert (first.messages, again.messages) == (600, 0)
    assert first.done == first.items > 2
    assert sum(each.rows for each in archived.ranges) == 600
    assert {path.name for path in (tmp_path / "archived").glob("date=*")} == {
        f"date={datetime.fromtimestamp((FIRST_DAY_MS + day * DAY_MS) / 1000, UTC):%Y-%m-%d}"
        for day in range(3)
    }
    expected.sort(key=lambda row: (row.partition, row.offset))
    assert rows_of(spark, bootstrap, "archived", archive=str(tmp_path)) == expected


def test_an_archive_in_iceberg_has_each_wave_once(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "iced", partitions=2)
    publish_days(shared_broker.kafka, "iced", count=200)
    run(spark, archive_job(bootstrap, "iced", tmp_path, table="lake.iced"))
    path = tmp_path / "iced" / MANIFEST
    ledger = read_ledger(path)
    assert ledger is not None
    done = path.read_bytes()
    publish_days(shared_broker.kafka, "iced", count=100)
    run(spark, archive_job(bootstrap, "iced", tmp_path, table="lake.iced"))
    # As if the run had been killed after the table's commit: the manifest has the wave as pending only.
    newer = read_ledger(path)
    assert newer is not None
    path.write_bytes(done)
    older = read_ledger(path)
    assert older is not None
    rows = [row for row in newer.raw_rows() if row not in older.raw_rows()]
    older.prepare(newer.epoch, newer.positions, rows)

    run(spark, archive_job(bootstrap, "iced", tmp_path, table="lake.iced"))

    place = TablePlace(format=LakeFormat.ICEBERG, path=tmp_path, table="lake.iced")
    table = open_table(place)
    assert sum(rows.num_rows for rows in table.read(table.parts())) == 300
    assert table.last_epoch(SINK) == newer.epoch
    assert sum(each.rows for each in open_archive(tmp_path, "iced").ranges) == 300


def test_a_union_read_goes_on_where_retention_has_deleted(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "union", partitions=2)
    expected = publish_days(shared_broker.kafka, "union", count=200)
    run(spark, archive_job(bootstrap, "union", tmp_path))
    expected += publish_days(shared_broker.kafka, "union", count=100)
    expected.sort(key=lambda row: (row.partition, row.offset))
    trim(shared_broker, "union", {0: 60, 1: 100})

    found = rows_of(spark, bootstrap, "union", archive=str(tmp_path))
    late = rows_of(
        spark,
        bootstrap,
        "union",
        archive=str(tmp_path),
        startingTimestamp=str(FIRST_DAY_MS + DAY_MS),
        endingOffsets='{"union": {"0": 90, "1": 90}}',
    )

    assert found == expected
    first = {
        number: next(
            row.offset
            for row in expected
            if row.partition == number and row.timestamp_ms >= FIRST_DAY_MS + DAY_MS
        )
        for number in (0, 1)
    }
    assert late == [row for row in expected if first[row.partition] <= row.offset < 90]


def test_a_gap_between_archive_and_log_is_told(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "gap", partitions=2)
    publish_days(shared_broker.kafka, "gap", count=100)
    run(spark, archive_job(bootstrap, "gap", tmp_path))
    publish_days(shared_broker.kafka, "gap", count=100)
    trim(shared_broker, "gap", {0: 70, 1: 50})

    with pytest.raises(
        PySparkException, match=r"offsets 50 to 70 \(exclusive\) of gap/0 are neither archived"
    ):
        rows_of(spark, bootstrap, "gap", archive=str(tmp_path))
    with pytest.raises(NotFound, match="gap/0 begins at offset 70 now; the job had come to 50"):
        run(spark, archive_job(bootstrap, "gap", tmp_path))

    left = rows_of(spark, bootstrap, "gap", archive=str(tmp_path), failOnDataLoss="false")
    assert len(left) == 100 + 30 + 50


def test_a_restored_topic_is_the_archived_one(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "lost", partitions=2)
    expected = publish_days(shared_broker.kafka, "lost", count=300)
    expected.sort(key=lambda row: (row.partition, row.offset))
    run(spark, archive_job(bootstrap, "lost", tmp_path))
    job = RestoreJob(
        topic="lost",
        archive=tmp_path,
        target=sink_options({"bootstrap": bootstrap, "topic": "found"}, is_streaming=False),
        manifest=tmp_path / "restore.json",
    )

    first, again = run(spark, job), run(spark, job)

    assert (first.messages, again.messages) == (300, 0)
    assert rows_of(spark, bootstrap, "found") == expected


def test_damage_in_the_log_is_found_and_the_rest_is_looked_through(
    spark: SparkSession, tmp_path: Path
) -> None:
    broker = RunningBroker(tmp_path / "data").start()
    try:
        create_topic(broker.kafka, "damaged", partitions=1)
        publisher = Publisher(broker.kafka, "damaged")
        for number in range(30):
            publisher.publish(b"%d" % number * 2_000)
            publisher.flush()
        source = source_options(
            {"bootstrap": broker.http.removeprefix("http://"), "topic": "damaged"}, is_streaming=False
        )
        [whole] = VerifyJob(source=source, manifest=tmp_path / "good.json").run(
            spark, planned=Heard().planned, told=Heard().told
        )
        [log] = (tmp_path / "data" / "logs" / "damaged" / "0").glob("*.log")
        with log.open("r+b") as file:
            file.seek(log.stat().st_size // 2)
            file.write(b"\xff\xfe\xfd")

        manifest = str(tmp_path / "bad.json")
        words = ["job", "verify", "damaged", "--bootstrap", broker.http, "--manifest", manifest, "-o", "json"]
        result = CliRunner().invoke(app, words)
    finally:
        broker.kill()

    assert (whole.messages, whole.damaged) == (30, [])
    assert result.exit_code == 1
    [damage] = json.loads(result.stdout)
    assert (damage["topic"], damage["partition"]) == ("damaged", 0)
    assert damage["offset"] < damage["end_offset"] <= 30
    ledger = read_ledger(Path(manifest))
    assert ledger is not None
    good = sum(each.messages for each in ledger.rows(VerifiedRange))
    assert good == 30 - (damage["end_offset"] - damage["offset"])
