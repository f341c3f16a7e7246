"""export: the messages of topics into files of JSON Lines, CSV or Parquet that any tool reads."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from goqueue.spark.jobs.archive_store import COLUMNS
from goqueue.spark.jobs.formats import FileFormat
from goqueue.spark.jobs.ledger import open_ledger
from goqueue.spark.jobs.ranges import ITEM_BYTES, deal, message_count, remaining
from goqueue.spark.jobs.text_rows import write_csv, write_json_lines
from goqueue.spark.jobs.waves import Planned, Told, run_waves
from goqueue.spark.jobs.work import items_at_once
from goqueue.spark.source.fetch import read_range
from goqueue.spark.source.offsets import OffsetRange
from goqueue.spark.source.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST = "_goqueue_export.json"


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One finished file: a row of the manifest."""

    path: str
    """Relative to the folder of the export."""
    topic: str
    partition: int
    first_offset: int
    end_offset: int
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportJob:
    """What to export, and where to. A later run adds what is new."""

    source: SourceOptions
    folder: Path
    format: FileFormat
    item_bytes: int = ITEM_BYTES

    def run(self, spark: "SparkSession", *, planned: Planned, told: Told) -> None:
        """Export everything that the manifest does not tell of yet."""
        about = {
            "topics": ",".join(self.source.which.topics) or str(self.source.which.pattern),
            "format": str(self.format),
        }
        with open_ledger(self.folder / MANIFEST, job="export", about=about) as ledger:
            left = remaining(self.source, ledger.positions, item_bytes=self.item_bytes)
            planned(len(left), message_count(left))
            waves = deal(
                left,
                lambda wanted, _: ExportItem(self.source, wanted, self.folder, self.format),
                count=items_at_once(spark),
                epoch=ledger.epoch + 1,
            )
            run_waves(spark, ledger, waves, told=told)


@dataclass(frozen=True, slots=True)
class ExportItem:
    """One range, for one task: one file."""

    source: SourceOptions
    wanted: OffsetRange
    folder: Path
    format: FileFormat

    def run(self) -> bytes:
        wanted = self.wanted
        name = f"{wanted.topic}-{wanted.partition:05}-{wanted.first_offset:020}.{self.format}"
        # Whoever writes this file writes the same bytes, so of two attempts it does not matter which is last.
        draft = self.folder / f".{name}.{uuid4().hex}"
        try:
            with draft.open("wb") as file:
                count = write_rows(file, self.format, read_range(self.source, COLUMNS, wanted))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.folder / name)
        finally:
            draft.unlink(missing_ok=True)
        exported = ExportedFile(
            path=name,
            topic=wanted.topic,
            partition=wanted.partition,
            first_offset=wanted.first_offset,
            end_offset=wanted.end_offset,
            rows=count,
            size_bytes=(self.folder / name).stat().st_size,
        )
        return msgspec.json.encode(exported)


def write_rows(file: BinaryIO, file_format: FileFormat, batches: Iterable[pa.RecordBatch]) -> int:
    """All rows into one file; how many."""
    match file_format:
        case FileFormat.JSONL:
            return write_json_lines(file, batches)
        case FileFormat.CSV:
            return write_csv(file, batches)
        case FileFormat.PARQUET:
            count = 0
            with pq.ParquetWriter(file, COLUMNS.schema, compression="zstd") as writer:
                for rows in batches:
                    writer.write_batch(rows)
                    count += rows.num_rows
            return count
