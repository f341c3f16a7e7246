"""A backup of metadata and an archive of messages together: another broker becomes the one that is lost."""

from pathlib import Path

import httpx
import pytest
from pyspark.sql import SparkSession

from goqueue.model.errors import Invalid
from goqueue.spark.jobs.archive import ArchiveJob
from goqueue.spark.jobs.restore import RestoreJob
from goqueue.spark.sink.options import sink_options
from goqueue.spark.source.options import source_options
from tests.doors.http.running_door import RunningDoor

LANES = ("low", "critical", "normal")


def furnish(client: httpx.Client) -> None:
    """Messages of all lanes in turn, some of which are gone, and a group in the midst of the rest."""
    client.post("/topics", json={"name": "orders", "num_partitions": 1}).raise_for_status()
    messages = [{"value": f"order {number}", "priority": LANES[number % 3]} for number in range(60)]
    client.post("/topics/orders/messages", json={"messages": messages}).raise_for_status()
    client.post("/groups/workers/offsets", json={"offsets": {"orders": {"0": 42}}}).raise_for_status()


def told(client: httpx.Client) -> list[tuple[int, str, str, str]]:
    query = {"offset": 0, "limit": 100}
    reply = client.get("/topics/orders/partitions/0/messages", params=query).json()
    return [
        (each["offset"], each["value"], each["priority"], each["timestamp"]) for each in reply["messages"]
    ]


def test_with_its_archive_a_restored_topic_is_the_old_one_offset_by_offset(
    spark: SparkSession, tmp_path: Path
) -> None:
    with RunningDoor(tmp_path / "old") as old, RunningDoor(tmp_path / "new") as new:
        furnish(old.client)
        source = source_options({"bootstrap": f"127.0.0.1:{old.port}", "topic": "orders"}, is_streaming=False)
        archive = ArchiveJob(topic="orders", source=source, archive=tmp_path / "archive", item_bytes=3_000)
        archive.run(spark, planned=lambda *_: None, told=lambda *_: None)
        backup_id = old.client.post("/admin/backup").json()["backup_id"]
        document = old.client.get(f"/admin/backup/{backup_id}/metadata").content
        new.client.put(f"/admin/backup/{backup_id}", content=document).raise_for_status()
        restore = new.client.post(f"/admin/backup/{backup_id}/restore", json={"data_follows": True})
        restore.raise_for_status()
        options = {"bootstrap": f"127.0.0.1:{new.port}", "topic": "orders"}
        job = RestoreJob(
            topic="orders",
            archive=tmp_path / "archive",
            target=sink_options(options, is_streaming=False),
            manifest=tmp_path / "restore.json",
            keep_offsets=True,
        )

        for _ in range(2):  # the second has nothing left to do
            job.run(spark, planned=lambda *_: None, told=lambda *_: None)

        assert told(new.client) == told(old.client)
        assert len(told(new.client)) == 60
        [lag] = new.client.get("/groups/workers/lag").json()["partitions"]
        assert (lag["offset"], lag["lag"]) == (42, 18)
        other = RestoreJob(
            topic="orders",
            archive=tmp_path / "archive",
            target=sink_options(options, is_streaming=False),
            manifest=tmp_path / "other.json",
            keep_offsets=True,
        )
        with pytest.raises(Invalid, match="partition 0 holds messages"):
            other.run(spark, planned=lambda *_: None, told=lambda *_: None)
