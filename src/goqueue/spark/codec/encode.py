"""encode: rows of Arrow into record batches, ready to be appended to the partitions of a topic.

Rows are routed and sorted by partition and lane, keeping their order within each; then the records
of all batches are built together, and each batch gets its header, codec and checksum.
"""

from itertools import pairwise
from typing import NamedTuple

import cramjam
import numpy as np
import pyarrow as pa
from crc32c import crc32c

from goqueue.model.errors import Invalid
from goqueue.model.ids import NO_PRODUCER
from goqueue.model.messages import Lane
from goqueue.model.settings import Partitioner
from goqueue.records.batch import BATCH_BYTES
from goqueue.records.layout import CRC_END, HEADER, HEADER_BYTES, LENGTH_END, MAGIC, NO_SEQUENCE, Codec
from goqueue.records.partitioners import hash_by
from goqueue.records.varints import Int64s
from goqueue.spark.codec.build import build_records, encode_headers, size_bounds
from goqueue.spark.codec.outgoing import read_lanes, read_messages, route

_ROWS_BYTES_MAX = 512 * 1024 * 1024
"""Arrow joins no more than 2 GiB at a time; larger rows are encoded in two halves."""
_NO_EPOCH = -1
_LZ4_LEVEL = 1
_ZSTD_LEVEL = 3
_CODECS = (Codec.NONE, Codec.LZ4, Codec.ZSTD)


class EncodedBatch(NamedTuple):
    """A batch for one lane of one partition, with base offset 0 and no producer id."""

    partition: int
    lane: Lane
    record_count: int
    body: bytes


class Target(NamedTuple):
    """Where rows go and in what form."""

    topic: str
    partition_count: int
    codec: Codec = Codec.NONE
    batch_bytes: int = BATCH_BYTES
    """A batch takes no more rows beyond this; a larger row has a batch to itself."""
    partitioner: Partitioner = Partitioner.MURMUR3


def encode(rows: pa.RecordBatch, target: Target, *, now_ms: int, first_turn: int = 0) -> list[EncodedBatch]:
    """Batches for these rows, by partition and lane; rows that go to the same lane keep their order.

    Rows without partition and key go to the partitions in turn, beginning with `first_turn`.
    """
    if target.codec not in _CODECS:
        known = ", ".join(codec.name.lower() for codec in _CODECS)
        raise Invalid(f"batches are compressed with {known}, not {target.codec.name.lower()}")
    if rows.num_rows > 1 and rows.nbytes > _ROWS_BYTES_MAX:
        middle = rows.num_rows // 2
        return encode(rows[:middle], target, now_ms=now_ms, first_turn=first_turn) + encode(
            rows[middle:], target, now_ms=now_ms, first_turn=first_turn + middle
        )
    return _encode(rows, target, now_ms, first_turn) if rows.num_rows else []


def _encode(rows: pa.RecordBatch, target: Target, now_ms: int, first_turn: int) -> list[EncodedBatch]:
    messages = read_messages(rows, now_ms=now_ms)
    partitions = route(
        rows,
        messages.keys,
        topic=target.topic,
        count=target.partition_count,
        first_turn=first_turn,
        hash_key=hash_by(target.partitioner),
    )
    # One number for partition and lane, so that one stable sort groups both.
    places = partitions * len(Lane) + read_lanes(rows)
    if (np.diff(places) < 0).any():
        order = np.argsort(places, kind="stable")
        messages, places = messages.take(order), places[order]
    headers = encode_headers(messages.headers)
    firsts = _cut(places, size_bounds(messages, headers), target.batch_bytes - HEADER_BYTES)
    counts = np.diff(firsts, append=len(places))
    built = build_records(messages, headers, firsts=firsts, counts=counts)
    times = messages.timestamps_ms
    last_times = np.maximum.reduceat(times, firsts)
    batches = []
    for first, count, last_time_ms in zip(firsts.tolist(), counts.tolist(), last_times.tolist(), strict=True):
        records = built.data[built.edges[first] : built.edges[first + count]]
        body = _frame_batch(records, count, target.codec, int(times[first]), last_time_ms)
        partition, lane = divmod(int(places[first]), len(Lane))
        batches.append(EncodedBatch(partition, Lane(lane), count, body))
    return batches


def _cut(places: Int64s, sizes: Int64s, room_bytes: int) -> Int64s:
    """The index of the first row of each batch: where the place changes, and where a batch is full."""
    edges = np.concatenate([[0], np.cumsum(sizes)])
    runs = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), len(places)]
    firsts = []
    for first, end in pairwise(runs):
        while first < end:
            firsts.append(first)
            full = int(np.searchsorted(edges, edges[first] + room_bytes, side="right")) - 1
            first = max(full, first + 1)
    return np.array(firsts, np.int64)


def _frame_batch(records: memoryview, count: int, codec: Codec, first_ms: int, last_ms: int) -> bytes:
    """The batch: its header, and the records behind it."""
    body = _compress(records, codec)
    length = HEADER_BYTES - LENGTH_END + len(body)
    numbers = (codec, count - 1, first_ms, last_ms, NO_PRODUCER, _NO_EPOCH, NO_SEQUENCE, count)
    checked = HEADER.pack(0, length, _NO_EPOCH, MAGIC, 0, *numbers)[CRC_END:]
    checksum = crc32c(body, crc32c(checked))
    return b"".join((HEADER.pack(0, length, _NO_EPOCH, MAGIC, checksum, *numbers), body))


def _compress(records: memoryview, codec: Codec) -> memoryview:
    if codec == Codec.ZSTD:
        return memoryview(cramjam.zstd.compress(records, level=_ZSTD_LEVEL))
    if codec == Codec.LZ4:
        # Kafka's own readers want blocks that do not lean on one another.
        compressor = cramjam.lz4.Compressor(level=_LZ4_LEVEL, content_checksum=False, block_linked=False)
        compressor.compress(bytes(records))
        return memoryview(compressor.finish())
    return records
