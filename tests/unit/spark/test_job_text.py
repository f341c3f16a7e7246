"""Messages as text and back: nothing is lost in JSON Lines, and any table can become messages."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from goqueue.model.errors import Invalid, NotFound
from goqueue.spark.jobs.archive_store import COLUMNS
from goqueue.spark.jobs.import_files import Piece, pieces, read_piece
from goqueue.spark.jobs.text_rows import (
    imported,
    read_csv,
    read_json_lines,
    to_batches,
    write_csv,
    write_json_lines,
)

TIME = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
MESSAGES = pa.RecordBatch.from_pylist(
    [
        {
            "topic": "orders",
            "partition": 1,
            "offset": offset,
            "timestamp": TIME,
            "key": key,
            "value": value,
            "headers": [
                {"key": "h", "value": b"1"},
                {"key": "h", "value": b"\xff"},
                {"key": "n", "value": None},
            ],
            "priority": 1,
        }
        for offset, (key, value) in enumerate(
            [(b"k", b'{"a": 1}'), (b"\xfe", b"\0\xff"), (None, None), (None, b'a\n,"b')]
        )
    ],
    COLUMNS.schema,
)


def messages(rows: pa.RecordBatch) -> list[dict[str, object]]:
    plain: list[dict[str, object]] = rows.select(
        ["value", "key", "headers", "priority", "timestamp", "partition"]
    ).to_pylist()
    return plain


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_messages_survive_text(kind: str) -> None:
    file = io.BytesIO()
    write = write_json_lines if kind == "jsonl" else write_csv
    assert write(file, [MESSAGES]) == 4
    file.seek(0)
    rows = read_json_lines(file) if kind == "jsonl" else read_csv(file)

    [batch] = to_batches(rows, key_field="", keep_partitions=True)

    assert batch.to_pylist() == messages(MESSAGES)


def test_text_is_text_where_it_can_be() -> None:
    file = io.BytesIO()
    write_json_lines(file, [MESSAGES.slice(0, 2)])

    first, second = map(json.loads, file.getvalue().splitlines())

    assert (first["key"], first["value"], first["timestamp"]) == ("k", '{"a": 1}', "2026-01-02T03:04:05.678Z")
    assert "value" not in second and second["value_base64"] == "AP8="


@pytest.mark.parametrize(
    ("row", "key_field", "key", "value"),
    [
        ({"id": 7, "total": 2.5}, "id", b"7", b'{"id":7,"total":2.5}'),
        ({"id": 7}, "", None, b'{"id":7}'),
        ({"value": {"a": [1]}, "key": "k"}, "", b"k", b'{"a":[1]}'),
        ({"value": "text", "user": "u"}, "user", b"u", b"text"),
        ({"value_base64": "AP8="}, "", None, b"\0\xff"),
        ({"value": None}, "", None, None),
    ],
)
def test_a_row_becomes_a_message(
    row: dict[str, object], key_field: str, key: bytes | None, value: bytes | None
) -> None:
    message = imported(row, key_field=key_field, keep_partitions=False)

    assert (message["key"], message["value"]) == (key, value)


def test_headers_may_be_an_object_and_lanes_have_names() -> None:
    message = imported(
        {"value": "v", "headers": {"a": "1"}, "priority": "high", "partition": 3, "timestamp": 5},
        key_field="",
        keep_partitions=False,
    )

    assert message["headers"] == [{"key": "a", "value": b"1"}]
    assert (message["priority"], message["timestamp"], "partition" in message) == (1, 5_000, False)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"value": "v", "priority": 9}, "priority is 0 to 4"),
        ({"value": "v", "headers": "x"}, "headers are an object"),
        ({"value_base64": "?"}, "value_base64 is not base64"),
        ({"value": "v", "timestamp": "soon"}, "neither unix milliseconds"),
    ],
)
def test_what_is_wrong_with_a_row_is_told(row: dict[str, object], problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        imported(row, key_field="", keep_partitions=False)


def test_a_line_that_is_no_object_is_told_by_its_number() -> None:
    with pytest.raises(Invalid, match="line 3 is not a JSON object"):
        list(read_json_lines([b'{"a": 1}\n', b"\n", b"[1]\n"]))


@pytest.mark.parametrize("piece_bytes", [1, 7, 20, 1_000])
def test_lines_are_read_once_wherever_a_file_is_cut(tmp_path: Path, piece_bytes: int) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps({"n": "x" * number}) for number in range(20)))

    found = [
        len(str(row["n"]))
        for piece in pieces([path], {}, piece_bytes=piece_bytes)
        for row in read_piece(piece)
    ]

    assert found == list(range(20))


def test_lines_that_a_file_has_gained_are_imported_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 1}\n')
    [first] = pieces([path], {}, piece_bytes=1_000)
    path.write_text('{"n": 1}\n{"n": 2}\n')

    [more] = pieces([path], {first.path: first.end}, piece_bytes=1_000)

    assert list(read_piece(more)) == [{"n": 2}]


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": list(range(10))}), tmp_path / "b.parquet", row_group_size=4)
    (tmp_path / "a.csv").write_text("n\n1\n")
    (tmp_path / "_goqueue_export.json").write_text("{}")

    found = pieces([tmp_path], {str(tmp_path / "b.parquet"): 1}, piece_bytes=1_000)

    assert found == [
        Piece(str(tmp_path / "a.csv"), 0, 4),
        Piece(str(tmp_path / "b.parquet"), 1, 2),
        Piece(str(tmp_path / "b.parquet"), 2, 3),
    ]
    assert [row["n"] for row in read_piece(found[1])] == [4, 5, 6, 7]


def test_files_that_cannot_be_imported_are_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")

    with pytest.raises(Invalid, match=r"does not end with \.jsonl, \.csv or \.parquet"):
        pieces([tmp_path / "notes.txt"], {}, piece_bytes=1)
    with pytest.raises(NotFound, match="there is no file"):
        pieces([tmp_path / "nothing.csv"], {}, piece_bytes=1)
