"""Runs of bytes within one buffer, and the Arrow arrays made of them.

A ragged column becomes Arrow without a Python object a value: the buffer itself is taken for an array
in which every even element is a value and every odd one the gap behind it. Arrow then copies the
even ones, in C++.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from goqueue.model.errors import InvalidRecord
from goqueue.records.varints import Bools, Bytes, Int64s, read_varints


class Spans(NamedTuple):
    """Values in a buffer, in rising order and without overlap; a null one is empty."""

    starts: Int64s
    ends: Int64s
    is_null: Bools | None
    """None where no value is null, which is the rule and costs nothing."""


def read_spans(raw: Bytes, positions: Int64s, bounds: Int64s) -> Spans:
    """The values whose sizes stand at each position; none may end behind its bound."""
    sizes, starts = read_varints(raw, positions)
    is_null = None
    if sizes.min(initial=0) < 0:
        is_null = sizes < 0
        sizes = np.maximum(sizes, 0)
    if (sizes > bounds - starts).any():
        raise InvalidRecord("a key, value or header is longer than its record")
    return Spans(starts, starts + sizes, is_null)


def to_arrow(buffer: pa.Buffer, spans: Spans, kind: pa.DataType) -> pa.Array:
    """The values as an array of binaries or strings of their own."""
    count = len(spans.starts)
    edges = np.empty(2 * count + 1, np.int32)
    edges[0:-1:2] = spans.starts
    edges[1::2] = spans.ends
    edges[-1] = spans.ends[-1] if count else 0
    values_and_gaps = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(edges), buffer])
    values = values_and_gaps.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
    _, offsets, data = values.buffers()
    array = pa.Array.from_buffers(kind, count, [validity(spans.is_null), offsets, data])
    return readable(array) if pa.types.is_string(kind) else array


def spans_of(array: pa.Array) -> tuple[Bytes, Spans]:
    """Where the values of binaries or strings lie, and in what buffer: `to_arrow` the other way round."""
    if not len(array):
        return np.empty(0, np.uint8), Spans(np.empty(0, np.int64), np.empty(0, np.int64), None)
    _, offsets, data = array.buffers()
    edges = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    starts, ends = edges[:-1], edges[1:]
    if not array.null_count:
        return raw, Spans(starts, ends, None)
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    # Arrow lets a null value cover bytes, which do not count.
    return raw, Spans(starts, np.where(is_null, starts, ends), is_null)


def validity(is_null: Bools | None) -> pa.Buffer | None:
    """Arrow's bitmap of the values that are there."""
    return None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))


def readable(texts: pa.Array) -> pa.Array:
    """The texts, with what is not UTF-8 replaced as Java's clients replace it: one header spoils no topic."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raw = texts.view(pa.binary()).to_pylist()
        return pa.array(
            [None if text is None else text.decode("utf-8", "replace") for text in raw], pa.string()
        )
    return texts
