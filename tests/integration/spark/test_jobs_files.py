"""export, import, replay, mirror and stats, called as a user calls them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from goqueue.cli.main import app
from goqueue.spark.jobs.replay import ReplayJob
from goqueue.spark.jobs.sink_target import SinkTarget
from goqueue.spark.sink.options import sink_options
from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.published import ExpectedRow, Publisher
from tests.integration.spark.test_jobs_archive import FIRST_DAY_MS, Heard, publish_days, rows_of, trim


@pytest.fixture
def job(spark: SparkSession, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Job":
    """`goqueue-cli job`, in a folder of its own and with the session of the tests."""
    monkeypatch.chdir(tmp_path)
    return Job(bootstrap)


class Job:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, ["job", *words, "--bootstrap", self._bootstrap, "-o", "json"])

    def messages(self, *words: str) -> int:
        result = self.run(*words)
        assert result.exit_code == 0, result.output
        return int(json.loads(result.stdout)["messages"])


def without_places(rows: list[ExpectedRow]) -> list[tuple[object, ...]]:
    return sorted((row.timestamp_ms, str(row.key), str(row.value), row.headers) for row in rows)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_what_was_exported_can_be_imported(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, job: Job, tmp_path: Path, kind: str
) -> None:
    create_topic(shared_broker.kafka, f"out-{kind}", partitions=2)
    publish_days(shared_broker.kafka, f"out-{kind}", count=100)
    publisher = Publisher(shared_broker.kafka, f"out-{kind}")
    publisher.publish(b"\xff\0not text", key=b"\xfe", timestamp_ms=FIRST_DAY_MS)
    publisher.publish(b'a "quoted",\nbroken line', timestamp_ms=FIRST_DAY_MS + 1)
    publisher.flush()

    assert job.messages("export", f"out-{kind}", "files", "--format", kind) == 102
    assert job.messages("export", f"out-{kind}", "files", "--format", kind) == 0
    create_topic(shared_broker.kafka, f"in-{kind}", partitions=2)
    assert job.messages("import", f"in-{kind}", "files", "--keep-partitions") == 102
    assert job.messages("import", f"in-{kind}", "files", "--keep-partitions") == 0

    assert without_places(rows_of(spark, bootstrap, f"in-{kind}")) == without_places(
        rows_of(spark, bootstrap, f"out-{kind}")
    )


def test_rows_of_any_file_become_json_messages(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, job: Job, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "plain", partitions=1)
    (tmp_path / "orders.csv").write_text("id,total\n1,2.50\n2,3.75\n")

    assert job.messages("import", "plain", "orders.csv", "--key", "id") == 2

    rows = rows_of(spark, bootstrap, "plain")
    assert [(row.key, row.value) for row in rows] == [
        (b"1", b'{"id":"1","total":"2.50"}'),
        (b"2", b'{"id":"2","total":"3.75"}'),
    ]


def test_a_bad_line_is_told_plainly(shared_broker: RunningBroker, job: Job, tmp_path: Path) -> None:
    create_topic(shared_broker.kafka, "bad-line", partitions=1)
    (tmp_path / "bad.jsonl").write_text('{"value": "good"}\nnot json\n')

    result = job.run("import", "bad-line", "bad.jsonl")

    assert result.exit_code == 1
    assert "Error: line 2 is not a JSON object" in result.stderr


def test_a_mirror_has_the_same_batches_at_the_same_offsets(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, job: Job, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "mirrored", partitions=2)
    expected = publish_days(shared_broker.kafka, "mirrored", count=200)
    other = RunningBroker(tmp_path / "other").start()
    address = other.http.removeprefix("http://")
    try:
        assert job.messages("mirror", "mirrored", "--to", address) == 200
        expected += publish_days(shared_broker.kafka, "mirrored", count=50)
        assert job.messages("mirror", "mirrored", "--to", address) == 50
        assert job.messages("mirror", "mirrored", "--to", address) == 0

        found = rows_of(spark, address, "mirrored")
    finally:
        other.kill()
    assert found == sorted(expected, key=lambda row: (row.partition, row.offset))


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_wave_that_was_stopped_around_its_commit_is_there_once(
    spark: SparkSession,
    shared_broker: RunningBroker,
    bootstrap: str,
    job: Job,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_committed: bool,
) -> None:
    topic = f"stopped-{is_committed}"
    create_topic(shared_broker.kafka, topic, partitions=1)
    lines = [json.dumps({"value": str(number)}) for number in range(50)]
    (tmp_path / "numbers.jsonl").write_text("\n".join(lines))

    def stop(self: SinkTarget, epoch: int, rows: Sequence[bytes]) -> None:
        if is_committed:
            commit(self, epoch, rows)
        raise OSError("the driver is gone")

    commit = SinkTarget.commit
    with monkeypatch.context() as patched:
        patched.setattr(SinkTarget, "commit", stop)
        assert job.run("import", topic, "numbers.jsonl").exit_code == 1
    job.messages("import", topic, "numbers.jsonl")

    values = [row.value for row in rows_of(spark, bootstrap, topic)]
    assert values == [b"%d" % number for number in range(50)]


def test_a_replay_sends_what_the_predicate_chooses(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, job: Job
) -> None:
    create_topic(shared_broker.kafka, "played", partitions=2)
    rows = publish_days(shared_broker.kafka, "played", count=100)
    words = ("replay", "played", "--to", "played-again", "--where", "CAST(key AS STRING) = 'key 3'")

    job.messages(*words, "--keep-times")
    job.messages(*words, "--keep-times")

    found = rows_of(spark, bootstrap, "played-again")
    assert without_places(found) == without_places([row for row in rows if row.key == b"key 3"])


def test_a_replay_that_was_stopped_doubles_nothing_and_keeps_its_rate(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "slow", partitions=2)
    rows = publish_days(shared_broker.kafka, "slow", count=60)
    replay = ReplayJob(
        source={"bootstrap": bootstrap, "topics": "slow"},
        target=sink_options({"bootstrap": bootstrap, "topic": "slow-again"}, is_streaming=False),
        door={"bootstrap": bootstrap},
        manifest=tmp_path / "replay.json",
        per_second=5,
        keep_times=True,
    )
    pauses: list[float] = []

    class Stopped(Exception):
        pass

    def stop(pause_s: float) -> None:
        raise Stopped

    heard = Heard()
    with pytest.raises(Stopped):
        replay.run(spark, planned=heard.planned, told=heard.told, pause=stop)
    replay.run(spark, planned=heard.planned, told=heard.told, pause=pauses.append)

    assert without_places(rows_of(spark, bootstrap, "slow-again")) == without_places(rows)
    assert len(pauses) == 2 and all(0 < pause_s <= 5 for pause_s in pauses)


def test_a_replay_reaches_into_the_archive(
    spark: SparkSession, shared_broker: RunningBroker, bootstrap: str, job: Job
) -> None:
    create_topic(shared_broker.kafka, "reached", partitions=2)
    rows = publish_days(shared_broker.kafka, "reached", count=60)
    assert job.messages("archive", "reached", "archive") == 60
    rows += publish_days(shared_broker.kafka, "reached", count=20)
    trim(shared_broker, "reached", {0: 30, 1: 25})

    sent = job.messages("replay", "reached", "--to", "reached-again", "--archive", "archive", "--keep-times")

    assert sent == 80
    assert without_places(rows_of(spark, bootstrap, "reached-again")) == without_places(rows)


def test_stats_are_told_by_hour_and_drawn(shared_broker: RunningBroker, job: Job, tmp_path: Path) -> None:
    create_topic(shared_broker.kafka, "counted", partitions=1)
    publisher = Publisher(shared_broker.kafka, "counted")
    for number in range(10):
        publisher.publish(
            b"x" * (number + 1),
            key=b"often" if number % 5 else b"seldom",
            headers=[("at", str(FIRST_DAY_MS - 40).encode())],
            timestamp_ms=FIRST_DAY_MS + (number // 5) * 3_600_000,
        )
    publisher.flush()

    result = job.run("stats", "counted", "--latency-header", "at", "--png", "chart.png")

    assert result.exit_code == 0, result.output
    first, second = json.loads(result.stdout)
    assert (first["messages"], first["size_bytes"], second["messages"]) == (5, 15 + 4 * 5 + 6, 5)
    assert (first["keys"], first["top_key"], first["top_key_share"]) == (2, "often", 0.8)
    assert (first["latency_p50_ms"], second["latency_p99_ms"]) == (40, 3_600_040)
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_verify_ends_with_a_summary(shared_broker: RunningBroker, job: Job) -> None:
    create_topic(shared_broker.kafka, "sound", partitions=2)
    publish_days(shared_broker.kafka, "sound", count=40)

    assert job.messages("verify", "sound") == 40
