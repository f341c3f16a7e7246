"""Neighbouring batches laid open in one buffer, tens of thousands of records at a time.

Batches that are not compressed stay where they are, in the window of frames; as soon as one of a
group is, all of it is brought side by side into a new buffer.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from goqueue.model.errors import InvalidRecord
from goqueue.records.compression import decompress
from goqueue.records.frame import Frame
from goqueue.records.layout import CONTROL, HEADER_BYTES, BatchHeader, Codec, read_header
from goqueue.records.varints import Bytes

GROUP_RECORDS = 30_000
GROUP_BYTES = 4 * 1024 * 1024
"""A group is closed before it grows over this; a batch that is larger by itself is a group of its own."""
RAW_BYTES_MAX = 2**31 - 1
"""Arrow counts the bytes of a column by 32 bits, and so does Kafka those of a batch."""
_COMPRESSION_RATIO = 4
_RECORD_BYTES_MIN = 7


class StoredBatch(NamedTuple):
    """One checked batch of a window of frames."""

    frame: Frame
    header: BatchHeader


class Group(NamedTuple):
    """Batches whose records lie in one buffer, in order: each between its start and its end."""

    batches: Sequence[StoredBatch]
    raw: Bytes
    starts: list[int]
    ends: list[int]


def group_batches(
    data: memoryview, frames: Sequence[Frame], *, first_offset: int
) -> Iterator[list[StoredBatch]]:
    """The batches that can hold messages from an offset on, as many at a time as decode best together."""
    group: list[StoredBatch] = []
    record_count, size_bytes = 0, 0
    for frame in frames:
        header = read_header(data, frame.body_start)
        if frame.end_offset <= first_offset or header.attributes & CONTROL or not header.record_count:
            continue
        # How large a batch will be is known for sure only once it is decompressed.
        size = header.size_bytes * (1 if header.codec == Codec.NONE else _COMPRESSION_RATIO)
        record_count += header.record_count
        size_bytes += size
        if group and (record_count > GROUP_RECORDS or size_bytes > GROUP_BYTES):
            yield group
            group, record_count, size_bytes = [], header.record_count, size
        group.append(StoredBatch(frame, header))
    if group:
        yield group


def open_group(data: memoryview, batches: Sequence[StoredBatch]) -> Group:
    """The records of these batches in one buffer."""
    if all(batch.header.codec == Codec.NONE for batch in batches):
        origin = batches[0].frame.body_start
        starts = [batch.frame.body_start + HEADER_BYTES - origin for batch in batches]
        ends = [batch.frame.body_end - origin for batch in batches]
        raw = np.frombuffer(data[origin : origin + ends[-1]], np.uint8)
    else:
        pieces = [
            _records(data[frame.body_start + HEADER_BYTES : frame.body_end], header.codec)
            for frame, header in batches
        ]
        edges = np.cumsum([0, *map(len, pieces)]).tolist()
        starts, ends = edges[:-1], edges[1:]
        raw = np.frombuffer(b"".join(pieces), np.uint8)
    if len(raw) > RAW_BYTES_MAX:
        raise InvalidRecord(f"{len(raw)} bytes of records are over the {RAW_BYTES_MAX} that Arrow can count")
    for (_, header), start, end in zip(batches, starts, ends, strict=True):
        # Checked here, because memory will be taken for as many records as the header says there are.
        if not 0 < header.record_count <= (end - start) // _RECORD_BYTES_MIN:
            raise InvalidRecord(f"{end - start} bytes cannot hold {header.record_count} records")
    return Group(batches, raw, starts, ends)


def _records(stored: memoryview, codec: int) -> memoryview:
    return stored if codec == Codec.NONE else decompress(stored, codec, bytes_max=RAW_BYTES_MAX)
