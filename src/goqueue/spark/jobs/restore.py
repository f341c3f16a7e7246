"""restore: an archive back into a topic, each message once, with its key, headers and time."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from goqueue.spark.jobs.archive_store import ArchivedRange, open_archive, read_in_order
from goqueue.spark.jobs.ledger import open_ledger
from goqueue.spark.jobs.ranges import deal, message_count, position_name
from goqueue.spark.jobs.sink_target import SinkTarget, Staging, ensure_topic
from goqueue.spark.jobs.waves import Planned, Told, resume, run_waves
from goqueue.spark.jobs.work import items_at_once
from goqueue.spark.offsets import OffsetRange
from goqueue.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = ["value", "key", "headers", "priority", "timestamp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreJob:
    """What to restore, and where to."""

    topic: str
    archive: Path
    target: SinkOptions
    manifest: Path
    by_key: bool = False
    """Keys choose the partitions, as for new messages; else each message goes to the one it came from."""

    def run(self, spark: "SparkSession", *, planned: Planned, told: Told) -> None:
        """Restore everything that this run of the job has not restored yet."""
        archive = open_archive(self.archive, self.topic)
        count = max((each.partition for each in archive.ranges), default=0) + 1
        ensure_topic(self.target, partition_count=1 if self.by_key else count)
        with open_ledger(self.manifest, job="restore", about=self._about()) as ledger:
            sink = f"job-restore-{ledger.id}"
            target = SinkTarget(self.target, sink)
            resume(ledger, target)
            ranges = {
                (each.partition, each.first_offset): each
                for each in archive.ranges
                if each.first_offset >= ledger.positions.get(position_name(self.topic, each.partition), 0)
            }
            left = [
                OffsetRange(self.topic, each.partition, each.first_offset, each.end_offset, 0)
                for each in ranges.values()
            ]
            planned(len(left), message_count(left))

            def item(wanted: OffsetRange, epoch: int) -> RestoreItem:
                archived = ranges[wanted.partition, wanted.first_offset]
                staging = Staging(options=self.target, sink=sink, epoch=epoch)
                return RestoreItem(archive.folder, archived, staging, self.by_key)

            waves = deal(left, item, count=items_at_once(spark), epoch=ledger.epoch + 1)
            run_waves(spark, ledger, waves, told=told, target=target)

    def _about(self) -> dict[str, str]:
        return {
            "archive": str(self.archive),
            "topic": self.topic,
            "target": str(self.target.topic),
            "nodes": ",".join(map(str, self.target.addresses)),
        }


@dataclass(frozen=True, slots=True)
class RestoreItem:
    """One archived range, for one task."""

    folder: Path
    archived: ArchivedRange
    staging: Staging
    by_key: bool

    def run(self) -> bytes:
        name = f"{self.archived.partition}/{self.archived.first_offset}"
        return self.staging.stage_rows(name, self._rows())

    def _rows(self) -> Iterator[pa.RecordBatch]:
        names = _COLUMNS if self.by_key else [*_COLUMNS, "partition"]
        for rows in read_in_order(self.folder, self.archived):
            yield rows.select(names)
