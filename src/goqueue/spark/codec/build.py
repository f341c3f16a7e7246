"""The records of many messages as bytes, built together.

Each record is a chain of pieces: numbers of few bytes, key, number, value, number, headers. Every
kind of piece is one Arrow array over all records; joined element by element, the data of the result
is the bodies of the batches, one behind the other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goqueue.model.errors import InvalidRecord
from goqueue.records.varints import Bytes, Int64s, fold, varint_columns, varint_sizes
from goqueue.spark.codec.outgoing import Outgoing
from goqueue.spark.codec.spans import spans_of

RECORD_OVERHEAD_BYTES = 36
"""More than the numbers of any record take: 5 for its size, 1, 10, 5 for key and value each, 5 and 5."""
_NULL_SIZE = -1


class HeaderBytes(NamedTuple):
    """The headers of each message as they stand in its record, and how many they are."""

    counts: Int64s
    encoded: pa.Array


class Built(NamedTuple):
    """Records one behind the other: record n lies between `edges[n]` and `edges[n + 1]`."""

    data: memoryview
    edges: Int64s


def encode_headers(headers: pa.Array | None) -> HeaderBytes | None:
    """The headers of all messages; None where none has any."""
    if headers is None:
        return None
    counts = pc.list_value_length(headers).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    names, values = headers.flatten().flatten()
    if names.null_count:
        raise InvalidRecord("a header has no name")
    names = names.view(pa.binary())
    joined = _join([_pack([_sizes(names)]), names, _pack([_sizes(values)]), values])
    _, spans = spans_of(joined)
    edges = np.concatenate([[0], spans.ends])[np.concatenate([[0], np.cumsum(counts)])]
    encoded = pa.Array.from_buffers(
        pa.binary(), len(counts), [None, pa.py_buffer(edges.astype(np.int32)), joined.buffers()[2]]
    )
    return HeaderBytes(counts, encoded)


def size_bounds(messages: Outgoing, headers: HeaderBytes | None) -> Int64s:
    """No record will take more bytes than this."""
    columns = [messages.values, messages.keys, None if headers is None else headers.encoded]
    bounds = np.full(len(messages.values), RECORD_OVERHEAD_BYTES, np.int64)
    for column in columns:
        if column is not None:
            bounds += np.maximum(_sizes(column), 0)
    return bounds


def build_records(
    messages: Outgoing, headers: HeaderBytes | None, *, firsts: Int64s, counts: Int64s
) -> Built:
    """The records of batches that begin with these messages and have so many each."""
    first_of = np.repeat(firsts, counts)
    number = np.arange(len(first_of))
    values, keys = messages.values, messages.keys
    times = messages.timestamps_ms
    key_sizes = np.full(len(number), _NULL_SIZE, np.int64) if keys is None else _sizes(keys)
    value_sizes = _sizes(values)
    header_counts = np.zeros(len(number), np.int64) if headers is None else headers.counts
    numbers = [times - times[first_of], number - first_of, key_sizes, value_sizes, header_counts]
    sizes = np.ones(len(number), np.int64)
    for each in numbers:
        sizes += varint_sizes(fold(each))
    for each in (key_sizes, value_sizes):
        sizes += np.maximum(each, 0)
    if headers is not None:
        sizes += _sizes(headers.encoded)
    attributes = np.zeros(len(number), np.int64)
    head = [sizes, attributes, *numbers[:2], key_sizes]
    if keys is None:
        pieces = [_pack([*head, value_sizes]), values]
    else:
        pieces = [_pack(head), keys, _pack([value_sizes]), values]
    if headers is None:
        pieces.append(pa.scalar(b"\0"))
    else:
        pieces += [_pack([header_counts]), headers.encoded]
    joined = _join(pieces)
    raw, spans = spans_of(joined)
    return Built(raw.data, np.concatenate([spans.starts[:1], spans.ends]))


def _sizes(column: pa.Array) -> Int64s:
    """The size of each value; -1 for one that is null, as records have it."""
    sizes: Int64s = pc.binary_length(column).fill_null(_NULL_SIZE).to_numpy(zero_copy_only=False)
    return sizes.astype(np.int64)


def _pack(columns: Sequence[Int64s]) -> pa.Array:
    """One binary a record: its numbers as varints, one behind the other."""
    byte_columns: list[Bytes] = []
    is_there = []
    for column in columns:
        folded = fold(column)
        for byte, has_byte in varint_columns(folded, varint_sizes(folded)):
            byte_columns.append(byte)
            is_there.append(has_byte)
    mask = np.stack(is_there, axis=1)
    data = np.stack(byte_columns, axis=1)[mask]
    edges = np.zeros(len(mask) + 1, np.int32)
    np.cumsum(mask.sum(axis=1), out=edges[1:])
    return pa.Array.from_buffers(pa.binary(), len(mask), [None, pa.py_buffer(edges), pa.py_buffer(data)])


def _join(pieces: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    nothing = pa.scalar(b"")
    return pc.binary_join_element_wise(*pieces, nothing, null_handling="replace", null_replacement="")
