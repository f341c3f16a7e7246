"""The options of lake tables: where a table lies, and what is refused before anything is written."""

from pathlib import Path

import pyarrow as pa
import pytest

from goqueue.model.errors import Invalid
from goqueue.spark.lake.options import LAKE_OPTIONS, LakeFormat, lake_options
from goqueue.spark.lake.schema import added_columns, conform, lake_schema

DOCS = (Path(__file__).parents[3] / "docs" / "lake.md").read_text(encoding="utf-8")


def test_a_table_lies_in_the_warehouse_under_its_name() -> None:
    taken = lake_options({"path": "/lake", "TABLE": "shop.orders", "tableFormat": "delta"})

    assert taken.place.folder == Path("/lake/shop/orders")
    assert (taken.place.format, taken.compression, taken.file_bytes) == (LakeFormat.DELTA, "zstd", 128 << 20)


def test_a_path_without_a_table_is_the_table() -> None:
    assert lake_options({"path": "file:///lake/a%20b", "tableFormat": "parquet"}).place.folder == Path(
        "/lake/a b"
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "path is missing"),
        ({"path": "/lake"}, "table is missing: an Iceberg table has a name"),
        ({"path": "lake", "table": "a"}, "is not absolute"),
        ({"path": "s3://lake", "table": "a"}, "is not a folder"),
        ({"path": "/lake", "table": "../a"}, "is not a name like lake.orders"),
        (
            {"path": "/lake", "table": "a", "tableFormat": "orc"},
            "'orc' is not one of iceberg, delta, parquet",
        ),
        ({"path": "/lake", "table": "a", "tableFromat": "delta"}, "did you mean tableFormat"),
        ({"path": "/lake", "tableFormat": "delta", "catalog": "x"}, "catalog is for Iceberg"),
        ({"path": "/lake", "table": "a", "sinkId": "a/b"}, "sinkId: 'a/b' is not a name"),
    ],
)
def test_problems_are_told_with_the_option(options: dict[str, str], problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        lake_options(options)


def test_options_of_sparks_own_are_passed_over() -> None:
    assert lake_options({"path": "/lake", "table": "a", "checkpointLocation": "/c", "mergeSchema": "true"})


@pytest.mark.parametrize("name", LAKE_OPTIONS)
def test_every_option_is_documented(name: str) -> None:
    assert f"| `{name}` | {LAKE_OPTIONS[name]} |" in DOCS


def test_dialects_of_arrow_are_one_type() -> None:
    known = pa.schema([("a", pa.large_string()), ("t", pa.timestamp("us", "UTC"))])
    offered = pa.schema([("t", pa.timestamp("ns", "Etc/UTC")), ("a", pa.string())])

    assert added_columns(known, offered) == []


def test_short_numbers_are_widened_where_iceberg_asks_for_it() -> None:
    schema = pa.schema([("tiny", pa.int8()), ("list", pa.list_(pa.int16()))])

    assert lake_schema(schema, LakeFormat.ICEBERG).types == [
        pa.int32(),
        pa.list_(pa.field("element", pa.int32())),
    ]
    assert lake_schema(schema, LakeFormat.DELTA).types == [
        pa.int8(),
        pa.list_(pa.field("element", pa.int16())),
    ]


def test_columns_that_no_table_keeps_are_refused() -> None:
    schema = pa.schema([("pause", pa.duration("us")), ("A", pa.int32()), ("a", pa.int32())])

    with pytest.raises(Invalid, match=r"column pause is of type .*; column a stands twice"):
        lake_schema(schema, LakeFormat.PARQUET)


def test_rows_are_brought_into_the_tables_columns() -> None:
    rows = pa.RecordBatch.from_pydict({"b": pa.array(["x"], pa.large_string()), "a": [1]})
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])

    assert conform(rows, schema).to_pylist() == [{"a": 1, "b": "x", "c": None}]
