"""Spark through a door that speaks TLS and asks for a key: rows come and go, and no secret is left behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from goqueue.client import GoQueue, Outgoing
from goqueue.edge.authentication import AuthConfig
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.http.running_door import RunningDoor
from tests.unit.cli.command_line import CommandLine

KEY = "the-key-of-all-keys"


@pytest.fixture
def options(tmp_path: Path) -> Iterator[dict[str, str]]:
    certificates = Certificates(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "api.key").write_text(KEY)
    listener = tls_listener(certificates.shown(), asks_who=True)
    with RunningDoor(tmp_path / "data", listener=listener, auth=AuthConfig(root_key=KEY)) as door:
        with GoQueue(door.url, ca_file=certificates.ca_file, api_key=KEY) as queue:
            for topic in ("in", "out"):
                queue.topics.create(topic, partitions=2)
            queue.publish_many("in", [Outgoing(f"{number}") for number in range(20)])
        yield {
            "bootstrap": door.url,
            "caFile": str(certificates.ca_file),
            "apiKeyFile": str(tmp_path / "api.key"),
        }


def test_a_stream_reads_and_writes_over_tls_and_leaves_no_secret(
    spark: SparkSession, options: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = (
        spark.readStream.format("goqueue").options(**options, topic="in", startingOffsets="earliest").load()
    )
    query = (
        rows.select("value")
        .writeStream.format("goqueue")
        .options(**options, topic="out", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    query.explain(True)
    written = spark.read.format("goqueue").options(**options, topic="out").load()

    assert sorted(int(row.value) for row in written.select("value").collect()) == list(range(20))
    written.explain(True)
    told = capfd.readouterr()
    assert "Plan" in told.out
    assert KEY not in told.out + told.err
    kept = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


@pytest.mark.usefixtures("spark")
def test_jobs_go_through_the_same_door(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GOQUEUE_CA_FILE", options["caFile"])
    monkeypatch.setenv("GOQUEUE_API_KEY_FILE", options["apiKeyFile"])
    line = CommandLine(options["bootstrap"])

    manifest = tmp_path / "replay.json"
    line.printed("job", "replay", "in", "--to", "out", "--manifest", str(manifest))
    line.printed("job", "verify", "out", "--manifest", str(tmp_path / "verify.json"))

    with GoQueue(options["bootstrap"], ca_file=options["caFile"], api_key=KEY) as queue:
        written = [message.text for number in range(2) for message in queue.read("out", number)]
    assert sorted(map(int, written)) == list(range(20))
    assert KEY not in manifest.read_text()
