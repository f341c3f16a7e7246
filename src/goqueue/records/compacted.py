"""Batches of a log that is compacted: some of their records are gone, and none of their offsets.

A batch that loses records keeps its header: base offset, the offsets it covers, producer and sequence
numbers. Those that stay are copied as they lie, since what they say of offset and time counts from the
header. A batch that loses all is emptied, where its producer's numbers are still needed, or its offsets are
covered by a filler: a batch of nobody without records, which may stand for many that are gone. So the
batches of a log follow each other without a gap, whatever compaction takes.

A batch with messages that delete a key, and a marker that nobody needs, carry the time at which they may go:
the horizon, which stands in place of the first timestamp, as in Kafka (KIP-534).
"""

import numpy as np

from goqueue.records.compression import compress
from goqueue.records.layout import (
    CODEC_MASK,
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
    pack_batch,
)
from goqueue.records.record_places import RecordPlaces
from goqueue.records.varints import Bools, read_varints

FILLER_OFFSETS_MAX = 2**31 - 1
_NO_PRODUCER = -1
_NO_TIME = -1


def horizon_of(header: BatchHeader) -> int | None:
    """When what deletes a key in this batch may go; None: nobody has said so yet."""
    return header.first_timestamp_ms if header.attributes & DELETE_HORIZON else None


def is_filler(header: BatchHeader) -> bool:
    """Whether a batch stands only for offsets that are gone."""
    return not header.record_count and header.producer_id < 0


def filler(first_offset: int, end_offset: int, *, leader_epoch: int) -> memoryview:
    """A batch without records over some offsets."""
    assert 0 < end_offset - first_offset <= FILLER_OFFSETS_MAX, (
        "a filler covers some offsets, and not too many"
    )
    return pack_batch(
        BatchHeader(
            base_offset=first_offset,
            length=0,
            leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=end_offset - first_offset - 1,
            first_timestamp_ms=_NO_TIME,
            max_timestamp_ms=_NO_TIME,
            producer_id=_NO_PRODUCER,
            producer_epoch=-1,
            base_sequence=NO_SEQUENCE,
            record_count=0,
        ),
        b"",
    )


def emptied(header: BatchHeader) -> memoryview:
    """A batch without its records, for its sequence numbers. It belongs to no transaction any more.

    Else whoever reads the log from its start would wait for a marker, which may be gone.
    """
    attributes = header.attributes & ~(CODEC_MASK | TRANSACTIONAL | DELETE_HORIZON)
    return pack_batch(header._replace(attributes=attributes, record_count=0), b"")


def marker_with_horizon(body: memoryview, header: BatchHeader, horizon_ms: int) -> memoryview:
    """A marker that may go at a time. Its record stays byte for byte: nobody needs its own time."""
    attributes = header.attributes | DELETE_HORIZON
    return pack_batch(
        header._replace(attributes=attributes, first_timestamp_ms=horizon_ms), bytes(body[HEADER_BYTES:])
    )


def keep_some(
    header: BatchHeader, places: RecordPlaces, first: int, is_kept: Bools, *, horizon_ms: int | None = None
) -> memoryview:
    """A batch with some of its records, at least one; `first` is the place of its first.

    `horizon_ms`: what deletes a key in it may go then; None: as it was.
    """
    kept = np.flatnonzero(is_kept) + first
    starts, ends = places.starts[kept], places.ends[kept]
    deltas, time_ends = read_varints(places.raw, places.bodies[kept] + 1)
    max_timestamp_ms = header.max_timestamp_ms
    if not header.attributes & LOG_APPEND_TIME:
        max_timestamp_ms = header.first_timestamp_ms + int(deltas.max())
    data = places.raw.data
    attributes = header.attributes
    first_timestamp_ms = header.first_timestamp_ms
    if horizon_ms is None:
        is_behind_gap = starts[1:] != ends[:-1]
        run_starts = starts[np.append(True, is_behind_gap)].tolist()
        run_ends = ends[np.append(is_behind_gap, True)].tolist()
        records = b"".join([data[start:end] for start, end in zip(run_starts, run_ends, strict=True)])
    else:
        moved_ms = header.first_timestamp_ms - horizon_ms
        bodies = places.bodies[kept].tolist()
        fields = zip(bodies, deltas.tolist(), time_ends.tolist(), ends.tolist(), strict=True)
        records = b"".join(
            _with_time(data, body, delta + moved_ms, time_end, end) for body, delta, time_end, end in fields
        )
        attributes |= DELETE_HORIZON
        first_timestamp_ms = horizon_ms
    if header.codec:
        compressed = compress(records, header.codec)
        if len(compressed) < len(records):
            records = compressed
        else:
            attributes &= ~CODEC_MASK
    return pack_batch(
        header._replace(
            attributes=attributes,
            first_timestamp_ms=first_timestamp_ms,
            max_timestamp_ms=max_timestamp_ms,
            record_count=len(kept),
        ),
        records,
    )


def _with_time(data: memoryview, body: int, delta_ms: int, time_end: int, end: int) -> bytes:
    """A record that counts its time from another one."""
    inside = bytes((data[body],)) + write_varint(delta_ms) + bytes(data[time_end:end])
    return write_varint(len(inside)) + inside


def write_varint(number: int) -> bytes:
    """A number as `read_varint` reads it."""
    folded = (number << 1) ^ (number >> 63)
    written = bytearray()
    while folded > 0x7F:
        written.append(folded & 0x7F | 0x80)
        folded >>= 7
    written.append(folded)
    return bytes(written)
