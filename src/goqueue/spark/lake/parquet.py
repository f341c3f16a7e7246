"""Plain Parquet files, with a log of commits beside them that says which of them count.

`_goqueue_commits/` holds one small JSON file a commit, numbered without a gap. A commit is made by linking a
finished file to the next number: of two writers one is first, and a reader sees all of a commit or nothing.
Every so often an entry repeats everything before it, so that nobody reads the log from its beginning.
"""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from goqueue.spark.lake.files import write_durably
from goqueue.spark.lake.options import TablePlace
from goqueue.spark.lake.schema import conform
from goqueue.spark.lake.table import NO_EPOCH, Conflict, LakeCommit

COMMITS = "_goqueue_commits"
_WHOLE_EVERY = 50
_ROWS = 50_000


class _Entry(msgspec.Struct, kw_only=True):
    """One commit as it is written."""

    version: int = 1
    number: int
    schema: str
    """The table's columns from here on, as Arrow's own bytes in base64."""
    epochs: dict[str, int]
    """The newest epoch of every sink."""
    files: list[str]
    """What this commit adds, relative to the table's folder; all files there are when it is whole."""
    is_whole: bool = False


_decoder = msgspec.json.Decoder(_Entry)


class ParquetTable:
    """One folder of files."""

    def __init__(self, place: TablePlace) -> None:
        self._folder = place.folder
        self._commits = place.folder / COMMITS
        self._newest: _Entry | None = None
        self.refresh()

    def refresh(self) -> None:
        numbers = _numbers(self._commits)
        self._newest = self._entry(max(numbers)) if numbers else None

    def schema(self) -> pa.Schema | None:
        if self._newest is None:
            return None
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self._newest.schema)))

    def last_epoch(self, sink: str) -> int:
        return NO_EPOCH if self._newest is None else self._newest.epochs.get(sink, NO_EPOCH)

    def create(self, schema: pa.Schema) -> None:
        try:
            self._commit(_Entry(number=0, schema=_text(schema), epochs={}, files=[], is_whole=True))
        except Conflict:
            return  # Somebody else was quicker, and the table is there all the same.

    def append(self, commit: LakeCommit, added: Sequence[pa.Field]) -> None:
        newest, schema = self._newest, self.schema()
        assert newest is not None and schema is not None, "the table is made before rows are added"
        number = newest.number + 1
        epochs = newest.epochs | {commit.sink: commit.epoch} if commit.is_remembered else newest.epochs
        files = [str(Path(file.path).relative_to(self._folder)) for file in commit.files]
        is_whole = commit.replaces or number % _WHOLE_EVERY == 0
        if is_whole and not commit.replaces:
            files = self.parts() + files
        self._commit(
            _Entry(
                number=number,
                schema=_text(pa.schema([*schema, *added])),
                epochs=epochs,
                files=files,
                is_whole=is_whole,
            )
        )

    def parts(self) -> list[str]:
        found: list[str] = []
        entry = self._newest
        while entry is not None:
            found = entry.files + found
            entry = None if entry.is_whole else self._entry(entry.number - 1)
        return found

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema = self.schema()
        for part in parts:
            with pq.ParquetFile(self._folder / part) as file:
                for rows in file.iter_batches(_ROWS):
                    yield conform(rows, schema)

    def _entry(self, number: int) -> _Entry:
        return _decoder.decode((self._commits / _name(number)).read_bytes())

    def _commit(self, entry: _Entry) -> None:
        try:
            write_durably(self._commits / _name(entry.number), msgspec.json.encode(entry), replace=False)
        except FileExistsError as error:
            raise Conflict from error


def _name(number: int) -> str:
    return f"{number:020}.json"


def _numbers(folder: Path) -> list[int]:
    return [int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit()]


def _text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()
