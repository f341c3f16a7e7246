"""decode: a window of frames into Arrow, only the columns asked for, only the offsets asked for.

Frames come as they lie in the log. The checksums of each are checked; then the records of many
batches are read together by numpy, field by field, and the bytes of each column are copied once.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from goqueue.model.errors import Corrupt, InvalidRecord
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.records.frame import scan_frames
from goqueue.records.varints import Int64s
from goqueue.spark.codec.columns import Columns
from goqueue.spark.codec.groups import StoredBatch, group_batches, open_group
from goqueue.spark.codec.headers import headers_to_arrow, read_headers, traceparent_to_arrow
from goqueue.spark.codec.records import Records, open_records
from goqueue.spark.codec.spans import read_spans, to_arrow

_US_PER_MS = 1_000
_TIME_MS_MAX = (2**63 - 1) // _US_PER_MS


class Decoded(NamedTuple):
    """The rows of a window of frames, and where the next window begins."""

    batches: list[pa.RecordBatch]
    next_offset: int
    """Everything asked for before this offset is decoded; the end of the range once all of it is."""
    consumed_bytes: int
    """Whole frames end here; what follows is part of one, or lies behind the range."""
    wanted_bytes: int
    """How many bytes from there would tell more of the frame that is only partly here; 0: none is."""


class _Request(NamedTuple):
    data: memoryview
    columns: Columns
    offset_range: tuple[int, int]
    source: TopicPartition


def decode(
    frames: bytes | memoryview,
    *,
    columns: Columns,
    offset_range: tuple[int, int],
    topic: str,
    partition: int,
) -> Decoded:
    """Rows of all messages with offsets in a range, end exclusive; a bad frame or batch raises Corrupt."""
    data = memoryview(frames)
    source = TopicPartition(TopicName(topic), partition)
    request = _Request(data, columns, offset_range, source)
    first_offset, end_offset = offset_range
    with _collector_off():
        scan = scan_frames(data, stop_offset=end_offset)
        next_offset = max(scan.frames[-1].end_offset if scan.frames else 0, first_offset)
        if scan.problem:
            raise _corrupt(source, next_offset, scan.problem)
        groups = group_batches(data, scan.frames, first_offset=first_offset)
        batches = [rows for group in groups for rows in _decode_group(request, group)]
    # A whole frame that was not taken lies behind the range: nothing more is to come.
    if scan.consumed_bytes < len(data) and not scan.wanted_bytes:
        next_offset = end_offset
    return Decoded(batches, min(next_offset, end_offset), scan.consumed_bytes, scan.wanted_bytes)


@contextmanager
def _collector_off() -> Iterator[None]:
    """A pass of the cyclic collector over a whole Spark worker can cost more than a window does."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _decode_group(request: _Request, batches: Sequence[StoredBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of these batches; where they cannot be read together, one by one, to name the bad one."""
    try:
        records = open_records(open_group(request.data, batches), request.offset_range)
        if len(records.offsets):
            yield _to_rows(request, records)
    except (InvalidRecord, IndexError) as error:
        if len(batches) == 1:
            frame = batches[0].frame
            raise _corrupt(
                request.source,
                frame.base_offset,
                f"a producer built this batch wrongly ({error}); messages go on at offset {frame.end_offset}",
            ) from error
        for batch in batches:
            yield from _decode_group(request, [batch])


def _corrupt(source: TopicPartition, offset: int, problem: str) -> Corrupt:
    return Corrupt(
        f"{source} is corrupt at offset {offset}: {problem}",
        topic=source.topic,
        partition=source.partition,
        offset=offset,
    )


def _to_rows(request: _Request, records: Records) -> pa.RecordBatch:
    arrays = _narrow_arrays(request, records) | _wide_arrays(request.columns, records)
    schema = request.columns.schema
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _narrow_arrays(request: _Request, records: Records) -> dict[str, pa.Array]:
    """The columns that take nothing from the bytes behind a record's head."""
    count = len(records.offsets)
    topic, partition = request.source
    has = request.columns.has
    arrays = {}
    if has("topic"):
        arrays["topic"] = pa.repeat(pa.scalar(topic, pa.string()), count)
    if has("partition"):
        arrays["partition"] = pa.array(np.full(count, partition, np.int32))
    if has("offset"):
        arrays["offset"] = pa.array(records.offsets)
    if has("timestamp"):
        arrays["timestamp"] = pa.array(_to_us(records.timestamps_ms)).view(pa.timestamp("us", "UTC"))
    if has("priority"):
        arrays["priority"] = pa.array(records.lanes.astype(np.int32))
    return arrays


def _wide_arrays(columns: Columns, records: Records) -> dict[str, pa.Array]:
    """Key, value and headers: read as far as the last one that is asked for, copied only where it is."""
    arrays: dict[str, pa.Array] = {}
    if not columns.has("key", "value", "headers", "traceparent"):
        return arrays
    raw = records.raw
    buffer = pa.py_buffer(raw)
    keys = read_spans(raw, records.positions, records.bounds)
    if columns.has("key"):
        arrays["key"] = to_arrow(buffer, keys, pa.binary())
    if not columns.has("value", "headers", "traceparent"):
        return arrays
    values = read_spans(raw, keys.ends, records.bounds)
    if columns.has("value"):
        arrays["value"] = to_arrow(buffer, values, pa.binary())
    if not columns.has("headers", "traceparent"):
        return arrays
    headers = read_headers(raw, values.ends, records.bounds)
    if columns.has("headers"):
        arrays["headers"] = headers_to_arrow(buffer, headers, columns.schema.field("headers").type)
    if columns.has("traceparent"):
        arrays["traceparent"] = traceparent_to_arrow(raw, buffer, headers)
    return arrays


def _to_us(times_ms: Int64s) -> Int64s:
    # A time beyond Arrow's, which a producer is free to send, becomes the last one Arrow has.
    return np.clip(times_ms, -_TIME_MS_MAX, _TIME_MS_MAX) * _US_PER_MS
