"""An archive as it lies on the disk: Parquet files by day, and the manifest that says which of them count.

`{archive}/{topic}/_goqueue_archive.json` tells which offsets of each partition are archived, in which files;
files lie in `date=2026-01-31/` beside it, by the day (UTC) of their messages. A file that the manifest does
not name does not count.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goqueue.model.errors import NotFound
from goqueue.spark.codec.columns import Columns
from goqueue.spark.jobs.ledger import Ledger, read_ledger
from goqueue.spark.lake.schema import conform

MANIFEST = "_goqueue_archive.json"
COLUMNS = Columns.named(["topic", "partition", "offset", "timestamp", "key", "value", "headers", "priority"])
_ROWS = 50_000
_US_PER_MS = 1_000


class ArchivedFile(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of one day out of one range."""

    path: str
    """Relative to the archive of the topic."""
    rows: int
    size_bytes: int
    time_min_ms: int
    time_max_ms: int


class ArchivedRange(msgspec.Struct, frozen=True, kw_only=True):
    """A run of offsets of one partition: a row of the manifest."""

    partition: int
    first_offset: int
    end_offset: int
    files: list[ArchivedFile]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


class Slice(NamedTuple):
    """The part of an archived range that a reader wants."""

    archived: ArchivedRange
    first_offset: int
    end_offset: int

    @classmethod
    def whole(cls, archived: ArchivedRange) -> "Slice":
        return cls(archived, archived.first_offset, archived.end_offset)


class Archive:
    """The archive of one topic, as its manifest tells it."""

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self.folder = folder
        self.ranges = sorted(ledger.rows(ArchivedRange), key=lambda each: (each.partition, each.first_offset))

    def partition(self, number: int) -> list[ArchivedRange]:
        """The ranges of a partition, in order."""
        return [each for each in self.ranges if each.partition == number]

    def offset_at(self, number: int, time_ms: int) -> int | None:
        """The first archived offset of that time or later."""
        for archived in self.partition(number):
            found = [
                offset
                for file in archived.files
                if file.time_max_ms >= time_ms
                and (offset := _first_offset_at(self.folder / file.path, time_ms)) is not None
            ]
            if found:
                return min(found)
        return None


def topic_folder(archive: Path, topic: str) -> Path:
    """Where the archive of a topic lies; the archive's folder may hold many."""
    return archive / topic


def open_archive(archive: Path, topic: str) -> Archive:
    """The archive of a topic; NotFound where there is none."""
    folder = topic_folder(archive, topic)
    ledger = read_ledger(folder / MANIFEST)
    if ledger is None:
        raise NotFound(f"{archive} holds no archive of topic {topic}: make it with `goqueue-cli job archive`")
    return Archive(folder, ledger)


def slices(ranges: Sequence[ArchivedRange], first_offset: int, end_offset: int) -> list[Slice]:
    """The parts of archived ranges that lie between two offsets."""
    return [
        Slice(each, max(each.first_offset, first_offset), min(each.end_offset, end_offset))
        for each in ranges
        if each.first_offset < end_offset and each.end_offset > first_offset
    ]


def read_slice(folder: Path, wanted: Slice, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a slice, file by file."""
    archived = wanted.archived
    is_whole = (wanted.first_offset, wanted.end_offset) == (archived.first_offset, archived.end_offset)
    names = [name for name in COLUMNS.schema.names if name in schema.names or name == "offset"]
    for file in archived.files:
        with pq.ParquetFile(folder / file.path) as parquet:
            for rows in parquet.iter_batches(_ROWS, columns=names):
                if not is_whole:
                    offsets = rows.column("offset").to_numpy()
                    is_wanted = (offsets >= wanted.first_offset) & (offsets < wanted.end_offset)
                    rows = rows.filter(pa.array(is_wanted))
                yield conform(rows, schema)


def read_in_order(folder: Path, wanted: Slice) -> Iterator[pa.RecordBatch]:
    """The rows of a slice in the order of their offsets."""
    rows = read_slice(folder, wanted, COLUMNS.schema)
    if len(wanted.archived.files) > 1:
        # Messages of several days were split by day: only sorting brings their order back.
        table = pa.Table.from_batches(rows, COLUMNS.schema)
        yield from table.sort_by("offset").to_batches(_ROWS)
        return
    yield from rows


def _first_offset_at(path: Path, time_ms: int) -> int | None:
    table = pq.read_table(path, columns=["offset", "timestamp"], partitioning=None)
    times = table.column("timestamp").cast(pa.int64()).to_numpy()
    late = np.flatnonzero(times >= time_ms * _US_PER_MS)
    return None if not len(late) else int(table.column("offset").to_numpy()[late].min())
