"""import: files of JSON Lines, CSV or Parquet into a topic, each row once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.parquet as pq

from goqueue.model.errors import NotFound
from goqueue.model.settings import MiB
from goqueue.spark.jobs.formats import FileFormat, file_format
from goqueue.spark.jobs.ledger import open_ledger
from goqueue.spark.jobs.sink_target import SinkTarget, Staging, ensure_topic
from goqueue.spark.jobs.text_rows import Row, read_csv, read_json_lines, to_batches
from goqueue.spark.jobs.waves import Planned, Told, Wave, resume, run_waves
from goqueue.spark.jobs.work import items_at_once
from goqueue.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECE_BYTES = 32 * MiB
_ROWS = 10_000


class Piece(NamedTuple):
    """A part of a file: bytes of JSON Lines, row groups of Parquet; CSV is one piece."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportJob:
    """What to import, and where to."""

    files: tuple[Path, ...]
    target: SinkOptions
    manifest: Path
    key_field: str = ""
    keep_partitions: bool = False
    piece_bytes: int = PIECE_BYTES

    def run(self, spark: "SparkSession", *, planned: Planned, told: Told) -> None:
        """Import everything that this run of the job has not imported yet."""
        ensure_topic(self.target, partition_count=1)
        about = {
            "target": str(self.target.topic),
            "nodes": ",".join(map(str, self.target.addresses)),
            "key": self.key_field,
        }
        with open_ledger(self.manifest, job="import", about=about) as ledger:
            sink = f"job-import-{ledger.id}"
            target = SinkTarget(self.target, sink)
            resume(ledger, target)
            left = pieces(self.files, ledger.positions, piece_bytes=self.piece_bytes)
            planned(len(left), 0)
            count = items_at_once(spark)
            waves = [
                self._wave(sink, left[first : first + count], epoch)
                for epoch, first in enumerate(range(0, len(left), count), ledger.epoch + 1)
            ]
            run_waves(spark, ledger, waves, told=told, target=target)

    def _wave(self, sink: str, left: Sequence[Piece], epoch: int) -> Wave:
        staging = Staging(options=self.target, sink=sink, epoch=epoch)
        items = [ImportItem(piece, staging, self.key_field, self.keep_partitions) for piece in left]
        return Wave(epoch, items, {piece.path: piece.end for piece in left})


@dataclass(frozen=True, slots=True)
class ImportItem:
    """One piece of a file, for one task."""

    piece: Piece
    staging: Staging
    key_field: str
    keep_partitions: bool

    def run(self) -> bytes:
        rows = to_batches(
            read_piece(self.piece), key_field=self.key_field, keep_partitions=self.keep_partitions
        )
        return self.staging.stage_rows(f"{self.piece.path}@{self.piece.start}", rows)


def pieces(files: Sequence[Path], positions: Mapping[str, int], *, piece_bytes: int) -> list[Piece]:
    """What is left of the files, cut into what tasks take; a folder stands for the files in it."""
    found: list[Piece] = []
    for path in _listed(files):
        done = positions.get(str(path), 0)
        match file_format(path):
            case FileFormat.JSONL:
                size = path.stat().st_size
                found += [
                    Piece(str(path), start, min(start + piece_bytes, size))
                    for start in range(done, size, piece_bytes)
                ]
            case FileFormat.CSV:
                # A quoted field may hold ends of lines, so nobody can begin in the middle.
                if not done:
                    found.append(Piece(str(path), 0, path.stat().st_size))
            case FileFormat.PARQUET:
                count = pq.read_metadata(path).num_row_groups
                found += [Piece(str(path), group, group + 1) for group in range(done, count)]
    return found


def read_piece(piece: Piece) -> Iterator[Row]:
    """The rows of a piece."""
    path = Path(piece.path)
    match file_format(path):
        case FileFormat.JSONL:
            yield from read_json_lines(_lines(piece))
        case FileFormat.CSV:
            with path.open("rb") as file:
                yield from read_csv(file)
        case FileFormat.PARQUET:
            with pq.ParquetFile(path) as parquet:
                groups = range(piece.start, piece.end)
                for rows in parquet.iter_batches(_ROWS, row_groups=groups):
                    yield from rows.to_pylist()


def _lines(piece: Piece) -> Iterator[bytes]:
    """The lines that begin in a piece: a line that is cut by its start belongs to the piece before."""
    with Path(piece.path).open("rb") as file:
        if piece.start:
            file.seek(piece.start - 1)
            file.readline()
        while file.tell() < piece.end:
            line = file.readline()
            if not line:
                return
            yield line


def _listed(files: Sequence[Path]) -> list[Path]:
    listed: list[Path] = []
    for path in files:
        if not path.exists():
            raise NotFound(f"there is no file {path}")
        if path.is_dir():
            # A name that begins so is a manifest, or a file that is not finished.
            listed += sorted(each for each in path.iterdir() if not each.name.startswith((".", "_")))
        else:
            listed.append(path)
    return [path.resolve() for path in listed]
