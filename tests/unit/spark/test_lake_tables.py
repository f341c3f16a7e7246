"""Lake tables of all three formats: an epoch is in the table once, columns are added and never changed."""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from goqueue.model.errors import Fenced, Invalid
from goqueue.spark.lake import parquet as lake_parquet
from goqueue.spark.lake.files import (
    KEPT,
    FileWriter,
    abandon,
    clear_others,
    epoch_folder,
    mark_kept,
    sweep,
)
from goqueue.spark.lake.formats import open_table
from goqueue.spark.lake.options import LakeFormat, TablePlace
from goqueue.spark.lake.schema import lake_schema
from goqueue.spark.lake.table import Conflict, LakeCommit, LakeTable, commit_epoch

SINK = "orders"
Rows = list[dict[str, object]]


@pytest.fixture(params=list(LakeFormat))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> TablePlace:
    """A table of each format that is not there yet."""
    return TablePlace(format=request.param, path=tmp_path, table="lake.orders")


def numbered(numbers: range) -> Rows:
    return [{"id": number, "name": f"n{number}"} for number in numbers]


def written(place: TablePlace, rows: Rows, *, epoch: int, sink: str = SINK, task: int = 0) -> LakeCommit:
    """The files of one task, ready to be committed."""
    batch = pa.RecordBatch.from_pylist(rows)
    schema = lake_schema(batch.schema, place.format)
    folder = epoch_folder(place.folder, sink, epoch)
    writer = FileWriter(folder, schema, task=task, compression="zstd", file_bytes=1 << 20)
    return LakeCommit(sink=sink, epoch=epoch, files=writer.write([batch]), schema=schema)


def found(place: TablePlace, column: str = "id") -> list[object]:
    table = open_table(place)
    values = [value for rows in table.read(table.parts()) for value in rows.column(column).to_pylist()]
    return sorted(values, key=str)


def test_a_table_is_made_with_the_first_rows(place: TablePlace) -> None:
    assert open_table(place).schema() is None

    assert commit_epoch(open_table(place), written(place, numbered(range(3)), epoch=0))

    schema = open_table(place).schema()
    assert schema is not None and schema.names == ["id", "name"]
    assert found(place) == [0, 1, 2]


def test_an_epoch_that_comes_again_adds_nothing(place: TablePlace) -> None:
    commit_epoch(open_table(place), written(place, numbered(range(3)), epoch=7))

    assert not commit_epoch(open_table(place), written(place, numbered(range(3)), epoch=7))

    assert found(place) == [0, 1, 2]


def test_an_epoch_older_than_the_newest_is_refused(place: TablePlace) -> None:
    commit_epoch(open_table(place), written(place, numbered(range(3)), epoch=7))

    with pytest.raises(Fenced, match="A new checkpoint needs a new sinkId"):
        commit_epoch(open_table(place), written(place, numbered(range(3)), epoch=6))


def test_sinks_count_their_epochs_apart(place: TablePlace) -> None:
    for sink in ("a", "b"):
        assert commit_epoch(open_table(place), written(place, numbered(range(2)), epoch=0, sink=sink))

    assert found(place) == [0, 0, 1, 1]
    assert open_table(place).last_epoch("c") == -1


def test_a_column_is_added_and_null_in_older_rows(place: TablePlace) -> None:
    commit_epoch(open_table(place), written(place, numbered(range(2)), epoch=0))

    commit_epoch(open_table(place), written(place, [{"id": 2, "name": "n", "total": 2.5}], epoch=1))

    assert found(place, "total") == [2.5, None, None]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"id": "1", "name": "n"}, "column id is int64 in the table and string in the rows: cast it"),
        ({"id": 1}, "column name of the table is missing in the rows: select NULL AS name"),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_the_reason(
    place: TablePlace, row: dict[str, object], problem: str
) -> None:
    commit_epoch(open_table(place), written(place, numbered(range(1)), epoch=0))

    with pytest.raises(Invalid, match=problem):
        commit_epoch(open_table(place), written(place, [row], epoch=1))

    assert found(place) == [0]


def test_an_epoch_may_replace_all_rows(place: TablePlace) -> None:
    commit_epoch(open_table(place), written(place, numbered(range(5)), epoch=0))
    newer = written(place, numbered(range(9, 10)), epoch=1)

    commit_epoch(
        open_table(place),
        LakeCommit(sink=SINK, epoch=1, files=newer.files, schema=newer.schema, replaces=True),
    )

    assert found(place) == [9]


def test_a_writer_that_was_overtaken_tries_again(place: TablePlace) -> None:
    commit_epoch(open_table(place), written(place, numbered(range(1)), epoch=0))

    class Overtaken:
        """A table to which somebody else commits between the look and the commit."""

        def __init__(self) -> None:
            self.table = open_table(place)
            self.is_overtaken = False

        def append(self, commit: LakeCommit, added: Sequence[pa.Field]) -> None:
            if not self.is_overtaken:
                self.is_overtaken = True
                commit_epoch(open_table(place), written(place, numbered(range(1, 2)), epoch=0, sink="other"))
            self.table.append(commit, added)

        def __getattr__(self, name: str) -> object:
            return getattr(self.table, name)

    table: LakeTable = Overtaken()  # type: ignore[assignment]  # the rest is the table's own
    assert commit_epoch(table, written(place, numbered(range(2, 3)), epoch=1))

    assert found(place) == [0, 1, 2]


def test_one_of_two_drivers_with_the_same_epoch_wins(place: TablePlace) -> None:
    commit_epoch(open_table(place), written(place, numbered(range(1)), epoch=0))
    first, second = open_table(place), open_table(place)
    one, other = (written(place, numbered(range(1, 3)), epoch=1) for _ in range(2))

    first.append(one, [])
    with pytest.raises(Conflict):
        second.append(other, [])

    assert found(place) == [0, 1, 2]


def test_every_kind_of_column_survives(place: TablePlace) -> None:
    row: dict[str, object] = {
        "flag": True,
        "bytes": b"\0\xff",
        "headers": [{"key": "a", "value": b"1"}],
        "nested": {"a": 1, "b": "x"},
        "nothing": None,
    }
    schema = pa.schema(
        [
            ("flag", pa.bool_()),
            ("bytes", pa.binary()),
            ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
            ("nested", pa.struct([("a", pa.int32()), ("b", pa.string())])),
            ("nothing", pa.decimal128(10, 2)),
        ]
    )
    kept = lake_schema(schema, place.format)
    folder = epoch_folder(place.folder, SINK, 0)
    writer = FileWriter(folder, kept, task=0, compression="snappy", file_bytes=1)
    files = writer.write([pa.RecordBatch.from_pylist([row], schema)])

    commit_epoch(open_table(place), LakeCommit(sink=SINK, epoch=0, files=files, schema=kept))

    table = open_table(place)
    assert [rows.to_pylist() for rows in table.read(table.parts())] == [[row]]


def test_a_log_of_many_commits_is_read_from_its_last_whole_entry(tmp_path: Path) -> None:
    place = TablePlace(format=LakeFormat.PARQUET, path=tmp_path)
    for epoch in range(60):
        commit_epoch(open_table(place), written(place, numbered(range(epoch, epoch + 1)), epoch=epoch))
    for path in sorted((tmp_path / lake_parquet.COMMITS).glob("*.json"))[:50]:
        path.unlink()

    assert len(found(place)) == 60


def test_a_task_begins_a_new_file_at_its_size(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"noise": [os.urandom(100) for _ in range(1_000)]})
    writer = FileWriter(tmp_path, batch.schema, task=3, compression="none", file_bytes=150_000)

    files = writer.write([batch] * 5)

    assert [file.row_count for file in files] == [2_000, 2_000, 1_000]
    assert [Path(file.path).stat().st_size for file in files] == [file.size_bytes for file in files]


def test_what_failed_attempts_left_goes_with_the_commit(place: TablePlace) -> None:
    failed = written(place, numbered(range(3)), epoch=0)
    done = written(place, numbered(range(3)), epoch=0, task=1)
    folder = epoch_folder(place.folder, SINK, 0)

    mark_kept(folder)
    commit_epoch(open_table(place), done)
    clear_others(folder, done.files)

    assert not any(Path(file.path).exists() for file in failed.files)
    assert found(place) == [0, 1, 2]


def test_an_abort_touches_nothing_once_a_commit_was_tried(place: TablePlace) -> None:
    commit = written(place, numbered(range(3)), epoch=0)
    folder = epoch_folder(place.folder, SINK, 0)
    mark_kept(folder)
    commit_epoch(open_table(place), commit)

    abandon(folder, commit.files)

    assert found(place) == [0, 1, 2]


def test_an_abort_removes_what_was_not_committed(tmp_path: Path) -> None:
    place = TablePlace(format=LakeFormat.PARQUET, path=tmp_path)
    commit = written(place, numbered(range(3)), epoch=0)

    abandon(epoch_folder(place.folder, SINK, 0), commit.files)

    assert not list(tmp_path.rglob("*.parquet"))


def test_old_epochs_that_were_never_committed_are_swept(tmp_path: Path) -> None:
    for epoch in (0, 1, 2):
        (tmp_path / "data" / SINK / str(epoch)).mkdir(parents=True)
    (tmp_path / "data" / SINK / "0" / KEPT).touch()
    folders = sorted((tmp_path / "data" / SINK).iterdir())
    newest_s = folders[2].stat().st_mtime
    os.utime(folders[0], (0, 0))
    os.utime(folders[1], (0, 0))

    assert sweep(tmp_path, now_s=newest_s + 3600) == [folders[1]]
    assert sorted((tmp_path / "data" / SINK).iterdir()) == [folders[0], folders[2]]
