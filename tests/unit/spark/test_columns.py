"""Columns: what can be asked for, and of what type."""

import pickle

import pyarrow as pa
import pytest

from goqueue.model.errors import Invalid
from goqueue.spark.codec.columns import COLUMN_TYPES, Columns


def test_all_columns_can_be_asked_for_by_name() -> None:
    columns = Columns.named(["value", "offset"])

    assert columns.schema.names == ["value", "offset"]
    assert columns.has("key", "value")
    assert not columns.has("key", "headers")


def test_an_unknown_column_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Invalid, match="no column payload: choose from topic, partition, offset"):
        Columns.named(["payload"])


def test_all_problems_of_a_schema_are_told_at_once() -> None:
    schema = pa.schema(
        [("value", pa.string()), ("when", pa.int64()), ("offset", pa.int64()), ("offset", pa.int64())]
    )

    with pytest.raises(Invalid) as raised:
        Columns(schema)

    assert "column value is of type binary, not string" in str(raised.value)
    assert "there is no column when" in str(raised.value)
    assert "column offset stands twice" in str(raised.value)


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("ms", "UTC"),
        pa.timestamp("us"),
        pa.int64(),
    ],
)
def test_a_time_is_in_microseconds_of_utc(kind: pa.DataType) -> None:
    with pytest.raises(Invalid, match="column timestamp is of type"):
        Columns(pa.schema([("timestamp", kind)]))


def test_names_and_nullability_inside_of_headers_are_the_callers() -> None:
    pair = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])

    Columns(pa.schema([("headers", pa.list_(pa.field("item", pair)))]))

    with pytest.raises(Invalid, match="column headers is of type"):
        Columns(
            pa.schema([("headers", pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])))])
        )


def test_what_may_be_null_must_be_allowed_to_be() -> None:
    pair = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary(), nullable=False)])

    with pytest.raises(
        Invalid, match=r"column value must allow nulls: .*; the values of headers must allow nulls"
    ):
        Columns(pa.schema([pa.field("value", pa.binary(), nullable=False), ("headers", pa.list_(pair))]))


def test_columns_travel_to_the_executors() -> None:
    columns = Columns.named(list(COLUMN_TYPES))

    assert pickle.loads(pickle.dumps(columns)) == columns
