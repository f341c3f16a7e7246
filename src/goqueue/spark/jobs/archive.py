"""archive: the messages of a topic into Parquet files by day, or into an Iceberg table made of such files.

Each run goes on where the last one ended: the manifest's positions are the watermark. A range that was
archived is never archived again, and one that was not is not left out.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goqueue.spark.jobs.archive_store import (
    COLUMNS,
    MANIFEST,
    ArchivedFile,
    ArchivedRange,
    topic_folder,
)
from goqueue.spark.jobs.ledger import Ledger, open_ledger
from goqueue.spark.jobs.ranges import ITEM_BYTES, deal, message_count, remaining
from goqueue.spark.jobs.waves import Planned, Told, resume, run_waves
from goqueue.spark.jobs.work import items_at_once
from goqueue.spark.lake.formats import open_table
from goqueue.spark.lake.options import LakeFormat, TablePlace
from goqueue.spark.lake.table import DataFile, LakeCommit, LakeTable, commit_epoch
from goqueue.spark.source.fetch import read_range
from goqueue.spark.source.offsets import OffsetRange
from goqueue.spark.source.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SINK = "archive"
"""The name under which an Iceberg table counts our epochs."""
_US_PER_DAY = 24 * 3600 * 1_000_000
_US_PER_MS = 1_000
_OPEN_FILES_MAX = 16
_SWEPT_AFTER_S = 24 * 3600
_ZSTD_LEVEL = 1
_WRITE_ROWS = 32_768
_range_decoder = msgspec.json.Decoder(ArchivedRange)
"""Arrow encodes so many values of a column at a time; its default of 1,024 costs a twelfth more."""
_REPETITIVE = ["topic", "partition", "priority"]
"""Columns with few values. A dictionary of keys and values would cost more than it saves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveJob:
    """What to archive, and where."""

    topic: str
    source: SourceOptions
    archive: Path
    table: str = ""
    """An Iceberg table that gets the files, too; empty: only files."""
    catalog: str = ""
    compression: str = "zstd"
    item_bytes: int = ITEM_BYTES

    def run(self, spark: "SparkSession", *, planned: Planned, told: Told) -> None:
        """Archive everything between the watermark and the end that the options name."""
        folder = topic_folder(self.archive, self.topic)
        with open_ledger(folder / MANIFEST, job="archive", about=self._about()) as ledger:
            target = self._target(folder)
            if target is not None:
                resume(ledger, target)
            sweep(folder, ledger)
            left = remaining(self.source, ledger.positions, item_bytes=self.item_bytes)
            planned(len(left), message_count(left))
            waves = deal(
                left,
                lambda wanted, _: ArchiveItem(self.source, wanted, folder, self.compression),
                count=items_at_once(spark),
                epoch=ledger.epoch + 1,
            )
            run_waves(spark, ledger, waves, told=told, target=target)

    def _about(self) -> dict[str, str]:
        return {"topic": self.topic, "table": self.table}

    def _target(self, folder: Path) -> "IcebergTarget | None":
        if not self.table:
            return None
        place = TablePlace(
            format=LakeFormat.ICEBERG,
            path=self.archive,
            table=self.table,
            catalog=self.catalog,
            day_column="timestamp",
        )
        return IcebergTarget(open_table(place), folder)


@dataclass(frozen=True, slots=True)
class ArchiveItem:
    """One range, for one task."""

    source: SourceOptions
    wanted: OffsetRange
    folder: Path
    compression: str

    def run(self) -> bytes:
        """Write the files of the range; they count when the manifest names them."""
        name = f"{self.wanted.partition:05}-{self.wanted.first_offset:020}"
        files = DatedFiles(self.folder, name, compression=self.compression)
        try:
            for rows in read_range(self.source, COLUMNS, self.wanted):
                files.add(rows)
        finally:
            files.close()
        return msgspec.json.encode(
            ArchivedRange(
                partition=self.wanted.partition,
                first_offset=self.wanted.first_offset,
                end_offset=self.wanted.end_offset,
                files=files.done,
            )
        )


class DatedFiles:
    """Rows into one file a day, under names that no other attempt uses."""

    def __init__(self, folder: Path, name: str, *, compression: str) -> None:
        self._folder = folder
        self._name = name
        self._compression = compression
        self._open: dict[int, _OpenFile] = {}
        self.done: list[ArchivedFile] = []

    def add(self, rows: pa.RecordBatch) -> None:
        days = rows.column("timestamp").cast(pa.int64()).to_numpy() // _US_PER_DAY
        if len(days) and days[0] == days[-1] and (days == days[0]).all():
            self._file(int(days[0])).add(rows)
            return
        for day in np.unique(days).tolist():
            self._file(day).add(rows.filter(pa.array(days == day)))

    def close(self) -> None:
        """Finish all files; they are on the disk then."""
        for day in list(self._open):
            self.done.append(self._open.pop(day).finish(self._folder))

    def _file(self, day: int) -> "_OpenFile":
        if day not in self._open:
            if len(self._open) >= _OPEN_FILES_MAX:
                self.close()
            date = np.datetime64(day, "D")
            path = self._folder / f"date={date}" / f"{self._name}-{uuid4().hex}.parquet"
            self._open[day] = _OpenFile(path, self._compression)
        return self._open[day]


class _OpenFile:
    def __init__(self, path: Path, compression: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("wb")
        self._writer = pq.ParquetWriter(
            self._file,
            COLUMNS.schema,
            compression=compression,
            compression_level=_ZSTD_LEVEL if compression == "zstd" else None,
            use_dictionary=_REPETITIVE,
            write_batch_size=_WRITE_ROWS,
        )
        self._rows = 0
        self._times_us: list[int] = []

    def add(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows)
        self._rows += rows.num_rows
        times = rows.column("timestamp").cast(pa.int64()).to_numpy()
        self._times_us += [int(times.min()), int(times.max())]

    def finish(self, folder: Path) -> ArchivedFile:
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return ArchivedFile(
            path=str(self._path.relative_to(folder)),
            rows=self._rows,
            size_bytes=self._path.stat().st_size,
            time_min_ms=min(self._times_us) // _US_PER_MS,
            time_max_ms=max(self._times_us) // _US_PER_MS,
        )


class IcebergTarget:
    """The table that gets the files of each wave in one snapshot."""

    def __init__(self, table: LakeTable, folder: Path) -> None:
        self._table = table
        self._folder = folder

    def is_committed(self, epoch: int) -> bool:
        self._table.refresh()
        return self._table.last_epoch(SINK) >= epoch

    def commit(self, epoch: int, rows: Sequence[bytes]) -> None:
        files = tuple(
            DataFile(str(self._folder / file.path), file.rows, file.size_bytes)
            for row in rows
            for file in _range_decoder.decode(row).files
        )
        commit_epoch(self._table, LakeCommit(sink=SINK, epoch=epoch, files=files, schema=COLUMNS.schema))


def sweep(folder: Path, ledger: Ledger, *, now_s: float | None = None) -> None:
    """Remove old files that the manifest does not name: failed attempts left them."""
    oldest_s = (time.time() if now_s is None else now_s) - _SWEPT_AFTER_S
    named = {file.path for archived in ledger.rows(ArchivedRange) for file in archived.files}
    for path in folder.glob("date=*/*.parquet"):
        if str(path.relative_to(folder)) not in named and path.stat().st_mtime < oldest_s:
            path.unlink(missing_ok=True)
