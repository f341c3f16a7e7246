"""What the three formats of lake tables have in common, and the one way a commit is made.

    tasks    write Parquet files into the folder of their epoch      nobody reads them yet
    driver   commit(sink, epoch, files)                              one step: all of them, once

The number of the epoch is kept in the same atomic step that adds the files, so an epoch that comes again
after a crash is recognised and dropped as a whole, as the sink for topics does it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from goqueue.model.errors import Busy, Fenced
from goqueue.spark.lake.schema import added_columns

NO_EPOCH = -1
_CONFLICTS_MAX = 20
"""How often a commit is tried again because another writer of the same table was first."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One finished Parquet file."""

    path: str
    row_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeCommit:
    """All that one epoch adds to a table."""

    sink: str
    epoch: int
    files: tuple[DataFile, ...]
    schema: pa.Schema
    is_remembered: bool = True
    """Whether the epoch may come again; not so for a batch write whose name was made up for it."""
    replaces: bool = False
    """What was in the table before is gone afterwards."""


class Conflict(Exception):
    """Another writer has committed since the table was looked at."""


class LakeTable(Protocol):
    """A table as it was when it was last looked at."""

    def refresh(self) -> None:
        """Look again."""

    def schema(self) -> pa.Schema | None:
        """The table's columns; None while there is no table."""

    def last_epoch(self, sink: str) -> int:
        """The newest epoch of a sink that is in the table."""

    def create(self, schema: pa.Schema) -> None:
        """Make the table, unless somebody else just did."""

    def append(self, commit: LakeCommit, added: Sequence[pa.Field]) -> None:
        """Add columns, files and the epoch; Conflict when the table is not as it was last looked at."""

    def parts(self) -> list[str]:
        """Names of what several tasks may share to read the table."""

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of some parts, in the table's columns."""


def commit_epoch(table: LakeTable, commit: LakeCommit) -> bool:
    """Bring an epoch into the table, once, however often this is called; False when it was there already."""
    for _ in range(_CONFLICTS_MAX):
        table.refresh()
        if _is_done(table, commit):
            return False
        known = table.schema()
        if known is None:
            table.create(commit.schema)
            continue
        try:
            table.append(commit, added_columns(known, commit.schema))
        except Conflict:
            continue
        return True
    raise Busy(f"other writers were first {_CONFLICTS_MAX} times: the table has too many of them")


def _is_done(table: LakeTable, commit: LakeCommit) -> bool:
    last = table.last_epoch(commit.sink)
    if commit.epoch < last:
        # One epoch comes again after a restart, never an older one: dropping it would lose its rows.
        raise Fenced(
            f"sink {commit.sink} has committed epoch {last}, and now epoch {commit.epoch} is offered: "
            "another driver writes to it, or the checkpoint is new or older than the table. "
            "A new checkpoint needs a new sinkId"
        )
    return commit.epoch == last
