"""Rows on their way into a topic: their columns, brought to one type each and checked.

| column | type | where it is missing or null |
| --- | --- | --- |
| value | binary or string | null is a message without a value; the column itself must be there |
| key | binary or string | a message without a key |
| headers | list<struct<key: string, value: binary>> | no headers |
| partition | integer | the key's partition, else the next in turn |
| priority | integer 0 to 4, or a lane's name | normal |
| timestamp | timestamp | now |
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goqueue.model.errors import Invalid, InvalidRecord, PartitionNotFound
from goqueue.model.messages import Lane
from goqueue.records.varints import Int64s
from goqueue.spark.codec.columns import COLUMN_TYPES
from goqueue.spark.codec.spans import spans_of

OUTGOING_COLUMNS = ("value", "key", "headers", "partition", "priority", "timestamp")
_US_PER_MS = 1_000
_LANE_NAMES = [lane.label for lane in Lane]


class Outgoing(NamedTuple):
    """Columns of messages to be written; key and headers are None where no message has any."""

    values: pa.Array
    keys: pa.Array | None
    headers: pa.Array | None
    timestamps_ms: Int64s

    def take(self, order: Int64s) -> "Outgoing":
        """The same messages in another order."""
        indices = pa.array(order)
        return Outgoing(
            self.values.take(indices),
            None if self.keys is None else self.keys.take(indices),
            None if self.headers is None else self.headers.take(indices),
            self.timestamps_ms[order],
        )


def read_messages(rows: pa.RecordBatch, *, now_ms: int) -> Outgoing:
    """The messages of these rows."""
    names = rows.schema.names
    if "value" not in names:
        raise Invalid("rows for a topic need a column value")
    if unknown := [name for name in names if name not in OUTGOING_COLUMNS]:
        raise Invalid(f"{', '.join(unknown)}: a topic takes the columns {', '.join(OUTGOING_COLUMNS)}")
    headers = _column(rows, "headers")
    return Outgoing(
        _column(rows, "value"),
        _column(rows, "key"),
        headers if headers is not None and pc.sum(pc.list_value_length(headers)).as_py() else None,
        _timestamps(rows, now_ms),
    )


def route(
    rows: pa.RecordBatch,
    keys: pa.Array | None,
    *,
    topic: str,
    count: int,
    first_turn: int,
    hash_key: Callable[[bytes], int],
) -> Int64s:
    """The partition of each row: the one it names, else its key's, else the next in turn.

    An empty key is no key here, as it is none where the broker routes.
    """
    partitions = np.full(rows.num_rows, -1, np.int64)
    is_open = np.ones(rows.num_rows, np.bool_)
    named = _column(rows, "partition")
    if named is not None:
        partitions = named.fill_null(-1).to_numpy(zero_copy_only=False).copy()
        is_open = named.is_null().to_numpy(zero_copy_only=False)
        for wrong in partitions[~is_open & ((partitions < 0) | (partitions >= count))]:
            raise PartitionNotFound(topic, int(wrong))
    if keys is not None and count > 1 and is_open.any():
        _, spans = spans_of(keys)
        has_key = is_open & (spans.ends > spans.starts)
        # One Python object a key, by intent: numpy took 79 ns a key of 16 bytes for what mmh3 does in 105.
        hashes = [hash_key(key) for key in keys.filter(pa.array(has_key)).to_pylist()]
        partitions[has_key] = np.array(hashes, np.int64) % count
        is_open &= ~has_key
    turns = np.flatnonzero(is_open)
    partitions[turns] = (np.arange(len(turns)) + first_turn) % count
    return partitions


def read_lanes(rows: pa.RecordBatch) -> Int64s:
    """The lane of each row."""
    if "priority" not in rows.schema.names:
        return np.full(rows.num_rows, int(Lane.NORMAL), np.int64)
    given = rows.column("priority")
    if pa.types.is_string(given.type) or pa.types.is_large_string(given.type):
        lanes = pc.index_in(pc.utf8_lower(given.cast(pa.string())), value_set=pa.array(_LANE_NAMES))
        lanes = pc.if_else(given.is_null(), None, lanes.fill_null(-1))
    else:
        lanes = _cast(given, "priority", pa.int64())
    numbers: Int64s = lanes.fill_null(int(Lane.NORMAL)).to_numpy(zero_copy_only=False).astype(np.int64)
    for index in np.flatnonzero((numbers < Lane.CRITICAL) | (numbers > Lane.BACKGROUND)).tolist():
        raise InvalidRecord(
            f"priority {given[index]} is none of {', '.join(_LANE_NAMES)}, 0 to 4", record_index=index
        )
    return numbers


def _timestamps(rows: pa.RecordBatch, now_ms: int) -> Int64s:
    times = _column(rows, "timestamp")
    if times is None:
        return np.full(rows.num_rows, now_ms, np.int64)
    times_us = times.view(pa.int64()).fill_null(now_ms * _US_PER_MS).to_numpy(zero_copy_only=False)
    times_ms: Int64s = times_us // _US_PER_MS
    return times_ms


def _column(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    if name not in rows.schema.names:
        return None
    kind = pa.int64() if name == "partition" else COLUMN_TYPES[name]
    return _cast(rows.column(name), name, kind)


def _cast(column: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
    # A time zone is only a way to show a time: any will do, and a finer unit is rounded down.
    is_safe = not pa.types.is_timestamp(kind)
    try:
        return column.cast(kind, safe=is_safe)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Invalid(f"column {name} must be {kind}, not {column.type}") from error
