"""The files of a lake table before they belong to it: written by tasks, kept by a commit, or swept away.

The files of an epoch have a folder of their own, `data/{sink}/{epoch}/`, and every attempt of a task has
names of its own in it. Just before the commit the folder is marked as kept, and after it cleared of what
failed attempts left. A folder that is old and has no mark holds nothing that was ever committed.
"""

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from goqueue.spark.lake.schema import conform
from goqueue.spark.lake.table import DataFile

DATA = "data"
KEPT = "_kept"
_SWEPT_AFTER_S = 24 * 3600
"""No task writes that long, so an epoch that old which was not committed will not be."""


def epoch_folder(table_folder: Path, sink: str, epoch: int) -> Path:
    """Where the tasks of an epoch write."""
    return table_folder / DATA / sink / str(epoch)


class FileWriter:
    """Rows into Parquet files of a bounded size. Each file is on the disk when it is told of."""

    def __init__(
        self, folder: Path, schema: pa.Schema, *, task: int, compression: str, file_bytes: int
    ) -> None:
        self._folder = folder
        self._schema = schema
        self._attempt = f"{task}-{uuid4().hex}"
        self._compression = compression
        self._file_bytes = file_bytes
        self._files: list[DataFile] = []

    def write(self, batches: Iterable[pa.RecordBatch]) -> tuple[DataFile, ...]:
        """All rows of a task; no rows make no file."""
        remaining = (conform(rows, self._schema) for rows in batches if rows.num_rows)
        for first in remaining:
            self._write_file(first, remaining)
        return tuple(self._files)

    def _write_file(self, first: pa.RecordBatch, more: Iterable[pa.RecordBatch]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self._attempt}-{len(self._files)}.parquet"
        row_count = first.num_rows
        with path.open("wb") as file:
            with pq.ParquetWriter(file, self._schema, compression=self._compression) as writer:
                writer.write_batch(first)
                # The size is looked at before a batch is taken: one that was taken must be written.
                if file.tell() < self._file_bytes:
                    for rows in more:
                        writer.write_batch(rows)
                        row_count += rows.num_rows
                        if file.tell() >= self._file_bytes:
                            break
            file.flush()
            os.fsync(file.fileno())
        self._files.append(DataFile(str(path), row_count, path.stat().st_size))


def mark_kept(folder: Path) -> None:
    """Say that a commit of this epoch is tried now: from here on nobody but its commit removes anything."""
    if folder.is_dir():
        write_durably(folder / KEPT, b"", replace=True)


def clear_others(folder: Path, files: Iterable[DataFile]) -> None:
    """Drop what failed attempts left, once the epoch is committed with these files for good."""
    names = {Path(file.path).name for file in files}
    for path in folder.glob("*.parquet"):
        if path.name not in names:
            path.unlink(missing_ok=True)


def drop(files: Iterable[DataFile]) -> None:
    """Remove files that no commit names."""
    for file in files:
        Path(file.path).unlink(missing_ok=True)


def abandon(folder: Path, files: Iterable[DataFile]) -> None:
    """Drop files of an epoch that failed. Where a commit was tried it may have taken effect: they stay."""
    if not (folder / KEPT).exists():
        drop(files)


def sweep(table_folder: Path, *, now_s: float | None = None) -> list[Path]:
    """Remove the folders of old epochs that were never committed; those removed."""
    oldest_s = (time.time() if now_s is None else now_s) - _SWEPT_AFTER_S
    swept = []
    for folder in sorted((table_folder / DATA).glob("*/*")):
        if not (folder / KEPT).exists() and folder.stat().st_mtime < oldest_s:
            shutil.rmtree(folder, ignore_errors=True)
            swept.append(folder)
    return swept


def write_durably(path: Path, content: bytes, *, replace: bool) -> None:
    """A file that is there whole or not at all; FileExistsError where it must not replace another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        else:
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
