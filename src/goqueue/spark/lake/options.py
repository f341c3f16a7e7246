"""The options of a lake table. All problems are told at once, before anything is written."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from goqueue.model.errors import Invalid
from goqueue.model.settings import MiB
from goqueue.spark.options.values import (
    GivenOptions,
    InvalidOptions,
    parse_folder,
    parse_size,
    parse_word,
)
from goqueue.spark.sink.options import parse_id

LAKE_OPTIONS: dict[str, str] = {
    "path": "the warehouse folder, which all machines share; without `table`, the folder of the table itself",
    "table": "the table's name, `lake.orders`: it lies in `{path}/lake/orders`. Required for Iceberg",
    "tableFormat": "`iceberg` (default), `delta` or `parquet`",
    "catalog": "Iceberg: address of the SQL catalog; default `sqlite:///{path}/catalog.db`",
    "sinkId": "streaming: the name under which epochs are counted; default: the id of the query",
    "writeId": "batch: the name of this write; when a write of that name is done, it is not done again",
    "compression": "`zstd` (default), `snappy`, `lz4` or `none`",
    "fileBytes": "a task begins a new file at about this size; default `128MiB`",
}
"""Ours, with what each is for: the table of docs/lake.md."""

FILE_BYTES = 128 * MiB
_TABLE = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_LIKENESS = 0.8
"""Spark passes on options of its own, so a name that is not ours is refused only when it looks like ours."""


class LakeFormat(StrEnum):
    """Who else can read the table."""

    ICEBERG = "iceberg"
    DELTA = "delta"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """Which table it is."""

    format: LakeFormat
    path: Path
    table: str = ""
    catalog: str = ""
    day_column: str = ""
    """Iceberg: a new table is partitioned by the day of this column, and no file holds two days."""

    @property
    def folder(self) -> Path:
        """Where the table's files lie."""
        return self.path.joinpath(*self.table.split(".")) if self.table else self.path

    def __str__(self) -> str:
        return f"{self.format} table {self.table or self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeOptions:
    """Where rows go, under which name, and in what files."""

    place: TablePlace
    sink_id: str | None = None
    write_id: str | None = None
    compression: str = "zstd"
    file_bytes: int = FILE_BYTES


def lake_options(options: Mapping[str, str]) -> LakeOptions:
    """The options of a table, or one Invalid that names every problem with them."""
    given = GivenOptions(options)
    _refuse_misspelt(given)
    table_format = LakeFormat(given.take("tableFormat", parse_word(*LakeFormat), str(LakeFormat.ICEBERG)))
    place = TablePlace(
        format=table_format,
        path=given.take("path", parse_folder, Path()),
        table=given.take("table", _parse_table, ""),
        catalog=given.text("catalog"),
    )
    taken = LakeOptions(
        place=place,
        sink_id=given.take("sinkId", parse_id, None),
        write_id=given.take("writeId", parse_id, None),
        compression=given.take("compression", parse_word("zstd", "snappy", "lz4", "none"), "zstd"),
        file_bytes=given.take("fileBytes", parse_size, FILE_BYTES),
    )
    if not given.has("path"):
        given.problems.append("path is missing: name the folder of the warehouse or of the table")
    if table_format is LakeFormat.ICEBERG and not given.has("table"):
        given.problems.append("table is missing: an Iceberg table has a name in a catalog, like lake.orders")
    if table_format is not LakeFormat.ICEBERG and given.has("catalog"):
        given.problems.append(f"catalog is for Iceberg; a {table_format} table is found by its folder")
    if given.problems:
        raise InvalidOptions(given.problems)
    return taken


def _parse_table(text: str) -> str:
    if not _TABLE.fullmatch(text):
        raise Invalid(f"{text!r} is not a name like lake.orders")
    return text


def _refuse_misspelt(given: GivenOptions) -> None:
    by_lower = {name.lower(): name for name in LAKE_OPTIONS}
    for name in given.names():
        near = difflib.get_close_matches(name, by_lower, n=1, cutoff=_LIKENESS)
        if near and name not in by_lower:
            given.problems.append(f"there is no option {name}; did you mean {by_lower[near[0]]}?")
