"""replay: messages of a topic, or of its archive and the log together, sent to a topic again.

A row job: messages are rows, and a predicate in SQL chooses among them. The range is written portion by
portion, each as one write with a name, so that a portion that was under way when a run was stopped is
finished by the next one and never doubled. A rate is kept by the pauses between portions.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from goqueue.spark.jobs.ledger import Ledger, open_ledger
from goqueue.spark.jobs.ranges import position_name
from goqueue.spark.jobs.sink_target import ensure_topic
from goqueue.spark.jobs.waves import Planned, Told
from goqueue.spark.sink.options import SinkOptions
from goqueue.spark.source.offsets import Offsets, Place, nested
from goqueue.spark.source.options import source_options
from goqueue.spark.source.planning import cap_records
from goqueue.spark.source.positions import Partitions, resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORTION = 1_000_000
_PORTION_S = 5
"""With a rate, a portion is what may be sent in so many seconds."""
_COLUMNS = ("value", "key", "headers", "priority")


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """What one write takes: a row of the manifest."""

    start: Offsets
    end: Offsets
    messages: int
    """How many are read; a predicate may drop some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayJob:
    """What to send again, and where to."""

    source: Mapping[str, str]
    """Options of the source: topic, bootstrap, where to begin and to end, perhaps an archive."""
    target: SinkOptions
    door: Mapping[str, str]
    """Options of the sink by which the broker is reached."""
    manifest: Path
    where: str = ""
    per_second: int | None = None
    keep_times: bool = False
    keep_partitions: bool = False

    def run(
        self,
        spark: "SparkSession",
        *,
        planned: Planned,
        told: Told,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Send everything that this run of the job has not sent yet."""
        ensure_topic(self.target, partition_count=1)
        about = {
            **self.source,
            "target": str(self.target.topic),
            "to": self.door["bootstrap"],
            "where": self.where,
        }
        with open_ledger(self.manifest, job="replay", about=about) as ledger:
            if ledger.pending_epoch is not None:
                # The write has a name: if it was done, it is not done again.
                [portion] = ledger.pending_rows(Portion)
                self._write(spark, ledger, portion, ledger.pending_epoch)
                ledger.finish(is_done=True)
            start, end = self._span(ledger)
            total = _count(start, end)
            planned(-(-total // self._portion()), total)
            while any(end[place] > offset for place, offset in start.items()):
                began_s = time.monotonic()
                portion_end = cap_records(start, end, self._portion())
                portion = Portion(
                    start=nested(start), end=nested(portion_end), messages=_count(start, portion_end)
                )
                positions = {
                    position_name(place.topic, int(place.partition)): offset
                    for place, offset in portion_end.items()
                }
                epoch, row = ledger.epoch + 1, msgspec.json.encode(portion)
                ledger.prepare(epoch, positions, [row])
                self._write(spark, ledger, portion, epoch)
                ledger.finish(is_done=True)
                told(1, [row])
                start = portion_end
                if self.per_second is not None:
                    due_s = portion.messages / self.per_second
                    pause(max(due_s - (time.monotonic() - began_s), 0))

    def _portion(self) -> int:
        return PORTION if self.per_second is None else max(self.per_second * _PORTION_S, 1)

    def _span(self, ledger: Ledger) -> tuple[dict[Place, int], dict[Place, int]]:
        options = source_options(self.source, is_streaming=False)
        client = options.connect()
        try:
            if options.archive is not None:
                from goqueue.spark.source.archive import find_span

                span = find_span(client, options, options.archive)
                start, end = span.start, span.end
            else:
                extents = Partitions(options).now(client)
                start = resolve(
                    client, options.starting, extents, fail_on_data_loss=options.fail_on_data_loss
                )
                end = resolve(client, options.ending, extents, fail_on_data_loss=False)
        finally:
            client.close()
        done = {
            place: max(offset, ledger.positions.get(position_name(place.topic, int(place.partition)), 0))
            for place, offset in start.items()
        }
        return done, {place: max(end[place], offset) for place, offset in done.items()}

    def _write(self, spark: "SparkSession", ledger: Ledger, portion: Portion, epoch: int) -> None:
        edges = ("starting", "ending")
        chosen = {name: value for name, value in self.source.items() if not name.lower().startswith(edges)}
        rows = (
            spark.read.format("goqueue")
            .options(
                **chosen,
                startingOffsets=msgspec.json.encode(portion.start).decode(),
                endingOffsets=msgspec.json.encode(portion.end).decode(),
            )
            .load()
        )
        if self.where:
            rows = rows.where(self.where)
        columns = [*_COLUMNS]
        columns += ["timestamp"] if self.keep_times else []
        columns += ["partition"] if self.keep_partitions else []
        assert self.target.topic is not None, "a replay without a target was let through"
        rows.select(*columns).write.format("goqueue").mode("append").options(
            **self.door,
            topic=self.target.topic,
            writeId=f"job-replay-{ledger.id}-{epoch}",
        ).save()


def _count(start: Mapping[Place, int], end: Mapping[Place, int]) -> int:
    return sum(end[place] - offset for place, offset in start.items())
