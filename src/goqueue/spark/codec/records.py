"""The records of a group, opened all at once: one array a field, one element a record."""

from typing import NamedTuple

import numpy as np

from goqueue.model.errors import InvalidRecord
from goqueue.records.layout import LOG_APPEND_TIME, BatchHeader
from goqueue.records.varints import Bytes, Int64s, read_varints
from goqueue.records.walk import find_records
from goqueue.spark.codec.groups import Group

_ATTRIBUTES_BYTES = 1


class Records(NamedTuple):
    """What stands at the head of each record; key, value and headers follow at its position."""

    raw: Bytes
    positions: Int64s
    bounds: Int64s
    """Each record ends here."""
    offsets: Int64s
    timestamps_ms: Int64s
    lanes: Int64s


def open_records(group: Group, offset_range: tuple[int, int]) -> Records:
    """The records of a group whose offsets lie in a range, end exclusive."""
    raw = group.raw
    headers = [batch.header for batch in group.batches]
    counts = [header.record_count for header in headers]
    bodies, bounds = _find_bodies(group, counts)
    time_deltas, positions = read_varints(raw, bodies + _ATTRIBUTES_BYTES)
    offset_deltas, positions = read_varints(raw, positions)
    if (positions > bounds).any():
        raise InvalidRecord("a record ends before its offset does")
    records = Records(
        raw,
        positions,
        bounds,
        _offsets(headers, counts, offset_deltas),
        _timestamps_ms(headers, counts, time_deltas),
        _repeated([batch.frame.lane for batch in group.batches], counts),
    )
    first_offset, end_offset = offset_range
    if headers[0].base_offset >= first_offset and headers[-1].end_offset <= end_offset:
        return records
    is_asked = (records.offsets >= first_offset) & (records.offsets < end_offset)
    return Records(raw, *(field[is_asked] for field in records[1:]))


def _find_bodies(group: Group, counts: list[int]) -> tuple[Int64s, Int64s]:
    """Where each record begins behind its size, and where it ends."""
    starts = find_records(group.raw, group.starts, group.ends, counts)
    bounds = np.empty_like(starts)
    bounds[:-1] = starts[1:]
    bounds[_lasts(counts)] = group.ends
    sizes, bodies = read_varints(group.raw, starts)
    # With this the records fill each batch from its start to its end without a gap, whatever the walk did.
    is_whole = (starts[_firsts(counts)] == group.starts).all()
    if not is_whole or (sizes <= 0).any() or (sizes != bounds - bodies).any():
        raise InvalidRecord("the sizes of the records do not add up to their batch")
    return bodies, bounds


def _offsets(headers: list[BatchHeader], counts: list[int], deltas: Int64s) -> Int64s:
    """The offset of each record, which may leave some out but must rise within what its batch spans.

    Otherwise two readers that share a partition out by offsets could both see a record, or neither.
    """
    offsets = deltas + _repeated([header.base_offset for header in headers], counts)
    last_deltas = [header.last_offset_delta for header in headers]
    is_within = (deltas[_firsts(counts)] >= 0).all() and (deltas[_lasts(counts)] <= last_deltas).all()
    if not is_within or (np.diff(offsets) <= 0).any():
        raise InvalidRecord("the offsets of the records do not rise within their batch")
    return offsets


def _timestamps_ms(headers: list[BatchHeader], counts: list[int], deltas: Int64s) -> Int64s:
    """The time of each record: its producer's, or in some batches one that the broker gave to all."""
    is_broker_time = [bool(header.attributes & LOG_APPEND_TIME) for header in headers]
    if any(is_broker_time):
        deltas[np.repeat(is_broker_time, counts)] = 0
    base_times = [
        header.max_timestamp_ms if is_broker else header.first_timestamp_ms
        for header, is_broker in zip(headers, is_broker_time, strict=True)
    ]
    return deltas + _repeated(base_times, counts)


def _repeated(values: list[int], counts: list[int]) -> Int64s:
    """A number of each batch, once for each of its records."""
    return np.repeat(np.array(values, np.int64), counts)


def _firsts(counts: list[int]) -> Int64s:
    """The index of each batch's first record."""
    return np.cumsum([0, *counts[:-1]])


def _lasts(counts: list[int]) -> Int64s:
    """The index of each batch's last record."""
    return np.cumsum(counts) - 1
