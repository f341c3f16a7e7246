"""restore: an archive back into a topic, each message once, with its key, headers, lane and time."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from goqueue.client.log import Which, extents
from goqueue.model.errors import Invalid
from goqueue.spark.jobs.archive_store import Archive, Slice, open_archive, read_in_order
from goqueue.spark.jobs.kept_offsets import ADVICE, slices_to_append
from goqueue.spark.jobs.ledger import Ledger, open_ledger
from goqueue.spark.jobs.ranges import deal, message_count, position_name
from goqueue.spark.jobs.sink_target import SinkTarget, Staging, ensure_topic
from goqueue.spark.jobs.waves import Planned, Told, resume, run_waves
from goqueue.spark.jobs.work import items_at_once
from goqueue.spark.sink.options import SinkOptions
from goqueue.spark.source.offsets import OffsetRange

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
    keep_offsets: bool = False
    """Every message comes to lie at the offset it had, or none is written."""

    def run(self, spark: "SparkSession", *, planned: Planned, told: Told) -> None:
        """Restore everything that this run of the job has not restored yet."""
        archive = open_archive(self.archive, self.topic)
        count = max((each.partition for each in archive.ranges), default=0) + 1
        ensure_topic(self.target, partition_count=1 if self.by_key else count)
        with open_ledger(self.manifest, job="restore", about=self._about()) as ledger:
            sink = f"job-restore-{ledger.id}"
            target = SinkTarget(self.target, sink)
            if self.keep_offsets and target.leaves_markers:
                raise Invalid(f"a cluster gives each epoch an offset more, so none can be kept. {ADVICE}")
            resume(ledger, target)
            slices = {
                (each.archived.partition, each.first_offset): each for each in self._left(archive, ledger)
            }
            left = [
                OffsetRange(self.topic, partition, first_offset, each.end_offset, 0)
                for (partition, first_offset), each in slices.items()
            ]
            planned(len(left), message_count(left))

            def item(wanted: OffsetRange, epoch: int) -> RestoreItem:
                archived = slices[wanted.partition, wanted.first_offset]
                staging = Staging(options=self.target, sink=sink, epoch=epoch)
                return RestoreItem(archive.folder, archived, staging, self.by_key)

            waves = deal(left, item, count=items_at_once(spark), epoch=ledger.epoch + 1)
            run_waves(spark, ledger, waves, told=told, target=target)

    def _left(self, archive: Archive, ledger: Ledger) -> list[Slice]:
        """What no run before this one has restored."""
        partitions = {each.partition for each in archive.ranges}
        names = {number: position_name(self.topic, number) for number in partitions}
        done = {number: ledger.positions[name] for number, name in names.items() if name in ledger.positions}
        if not self.keep_offsets:
            return [
                Slice.whole(each)
                for each in archive.ranges
                if each.first_offset >= done.get(each.partition, 0)
            ]
        client = self.target.connect()
        try:
            found = extents(client, Which(topics=(str(self.target.topic),)))[str(self.target.topic)]
        finally:
            client.close()
        return slices_to_append(
            archive.ranges, {int(number): extent for number, extent in found.items()}, done
        )

    def _about(self) -> dict[str, str]:
        kept = {"offsets": "kept"} if self.keep_offsets else {}
        return kept | {
            "archive": str(self.archive),
            "topic": self.topic,
            "target": str(self.target.topic),
            "nodes": ",".join(map(str, self.target.addresses)),
        }


@dataclass(frozen=True, slots=True)
class RestoreItem:
    """A piece of an archived range, for one task."""

    folder: Path
    wanted: Slice
    staging: Staging
    by_key: bool

    def run(self) -> bytes:
        name = f"{self.wanted.archived.partition}/{self.wanted.first_offset}"
        return self.staging.stage_rows(name, self._rows())

    def _rows(self) -> Iterator[pa.RecordBatch]:
        for rows in read_in_order(self.folder, self.wanted):
            if self.by_key:
                yield rows.select(_COLUMNS)
            else:
                yield from _runs_of_a_lane(rows.select([*_COLUMNS, "partition"]))


def _runs_of_a_lane(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The same rows cut wherever the lane changes.

    Rows that are written together are sorted by lane first; one by one the runs stay where they are.
    """
    lanes = rows.column("priority").to_numpy(zero_copy_only=False)
    cuts = [0, *(np.flatnonzero(lanes[1:] != lanes[:-1]) + 1).tolist(), rows.num_rows]
    for first, end in pairwise(cuts):
        yield rows.slice(first, end - first)
