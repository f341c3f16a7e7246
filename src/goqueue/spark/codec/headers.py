"""The headers of many records at once.

A round reads the next header of every record that has one left. Records seldom have more than a few
headers, so there are few rounds; the rest of an odd record with very many is read in plain Python.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from goqueue.model.errors import InvalidRecord
from goqueue.records.varints import Bytes, Int64s, read_varint, read_varints
from goqueue.spark.codec.spans import Spans, read_spans, readable, to_arrow

TRACEPARENT = b"traceparent"
_HEADER_BYTES_MIN = 2
_ROUNDS_MAX = 32


class Headers(NamedTuple):
    """All headers, one after the other; those of record n stand from `edges[n]` to `edges[n + 1]`."""

    edges: Int64s
    names: Spans
    values: Spans


def read_headers(raw: Bytes, positions: Int64s, bounds: Int64s) -> Headers:
    """The headers whose number stands at each position; the last one must end just at its record's bound."""
    counts, after = read_varints(raw, positions)
    # Checked first, because memory is taken for as many as a record says it has.
    if (counts < 0).any() or (counts > (bounds - after) // _HEADER_BYTES_MIN).any():
        raise InvalidRecord("a record says it has more headers than it has bytes for")
    edges = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=edges[1:])
    table = _Table(int(edges[-1]))
    most = int(counts.max(initial=0))
    is_even = most == counts.min(initial=most)
    for number in range(min(most, _ROUNDS_MAX)):
        # Mostly all records have the same number of headers, and nothing need be picked out.
        records = slice(None) if is_even else np.flatnonzero(counts > number)
        slots = slice(number, None, most) if is_even else edges[:-1][records] + number
        names = read_spans(raw, after[records], bounds[records])
        values = read_spans(raw, names.ends, bounds[records])
        table.fill(slots, names, values)
        after[records] = values.ends
    for record in np.flatnonzero(counts > _ROUNDS_MAX).tolist():
        first = int(edges[record]) + _ROUNDS_MAX
        after[record] = table.read_on(
            raw, int(after[record]), int(bounds[record]), range(first, int(edges[record + 1]))
        )
    if (after != bounds).any():
        raise InvalidRecord("a record does not end where its last header does")
    return Headers(edges, table.names(), table.values())


class _Table:
    """Room for every header: where its name and its value begin and end."""

    def __init__(self, count: int) -> None:
        self._edges = np.empty((4, count), np.int64)
        self._is_null = np.zeros(count, np.bool_)

    def fill(self, slots: Int64s | slice, names: Spans, values: Spans) -> None:
        """Put down one round of headers."""
        if names.is_null is not None:
            raise InvalidRecord("a header has no name")
        for row, positions in zip(self._edges, (names.starts, names.ends, *values[:2]), strict=True):
            row[slots] = positions
        if values.is_null is not None:
            self._is_null[slots] = values.is_null

    def read_on(self, raw: Bytes, position: int, bound: int, slots: range) -> int:
        """Read the rest of one record's headers, one by one; the position behind them."""
        for slot in slots:
            name_size, name = read_varint(raw, position)
            value_size, value = read_varint(raw, name + name_size)
            position = value + max(value_size, 0)
            if name_size < 0 or position > bound:
                raise InvalidRecord("a header has no name or is longer than its record")
            self._edges[:, slot] = name, name + name_size, value, position
            self._is_null[slot] = value_size < 0
        return position

    def names(self) -> Spans:
        return Spans(self._edges[0], self._edges[1], None)

    def values(self) -> Spans:
        return Spans(self._edges[2], self._edges[3], self._is_null if self._is_null.any() else None)


def headers_to_arrow(buffer: pa.Buffer, headers: Headers, kind: pa.DataType) -> pa.Array:
    """One list of name and value a record, of the very type asked for."""
    header_kind = kind.value_type
    names = to_arrow(buffer, headers.names, pa.string())
    values = to_arrow(buffer, headers.values, pa.binary())
    pairs = pa.Array.from_buffers(header_kind, len(names), [None], children=[names, values])
    edges = pa.py_buffer(headers.edges.astype(np.int32))
    return pa.Array.from_buffers(kind, len(headers.edges) - 1, [None, edges], children=[pairs])


def traceparent_to_arrow(raw: Bytes, buffer: pa.Buffer, headers: Headers) -> pa.Array:
    """The value of each record's last header of that name, as Kafka's `lastHeader` gives it."""
    edges, names, values = headers
    named = np.flatnonzero(names.ends - names.starts == len(TRACEPARENT))
    letters = raw[names.starts[named, None] + np.arange(len(TRACEPARENT))]
    named = named[(letters == np.frombuffer(TRACEPARENT, np.uint8)).all(axis=1)]
    slots = np.full(len(edges) - 1, -1, np.int64)
    # Of several the last is written last, and stays.
    slots[np.searchsorted(edges, named, side="right") - 1] = named
    is_null = slots < 0
    texts = to_arrow(buffer, values, pa.binary())
    picked = texts.take(pa.array(slots, mask=is_null))
    return readable(picked.view(pa.string()))
