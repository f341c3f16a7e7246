"""Whether the records of a batch are what its header says, before anybody relies on it.

A batch is stored as its producer built it, and readers open it by themselves: one that cannot be opened
stands before all of them. Sound records fill their batch, count up from 0, and end where they say.

How much of that is looked at is a matter of cost. Of every batch the first record is read. Of large
batches all records are compared that lie like the ones before them, as those of most producers do
(`record_runs`); what lies otherwise, or has headers, is taken at its word. A thorough check reads
everything.
"""

from typing import NamedTuple

import numpy as np

from goqueue.model.errors import InvalidBatch, InvalidRecord, MessageTooLarge
from goqueue.records.compression import OPENED_BYTES_MAX, decompress
from goqueue.records.layout import CODEC_MASK, HEADER_BYTES, LENGTH_END, BatchHeader, check_batches
from goqueue.records.opened_size import opened_bytes
from goqueue.records.record_runs import OFFSET_STEPS, count_alike
from goqueue.records.record_shape import (
    RECORD_HEADERS_MAX,
    check_name,
    read_shape,
    wrong_record,
)
from goqueue.records.varints import Bytes, Int64s, read_varints
from goqueue.records.walk import find_records

LARGE_BYTES = 768 * 1024
"""From here on a look at all records does not show in what it costs to publish a batch. It takes 100 µs, and
where it finds no headers nobody has to search them, which would take as long."""
_SHORT_RUN = 256
_SHORT_RUNS_MAX = 2
_FEW_RECORDS = 16
"""So few are read one by one sooner than by numpy."""
_MORE = 0x80
_NULL = 1
_KEY_PLACE = 3
"""Behind attributes, time and offset, where each takes a byte."""
_new_checked = tuple.__new__
"""Past the named tuple's own constructor, which is Python: every publish passes here."""


class CheckedBatches(NamedTuple):
    headers: list[BatchHeader]
    are_plain: bool
    """Whether no record is known to have a header. If not, some may or may not."""


def check_incoming(
    buffer: memoryview, *, max_batch_bytes: int, inspect_compressed: bool, is_thorough: bool
) -> CheckedBatches:
    """The headers of all batches in a buffer from outside, or the error that names what is wrong."""
    headers = check_batches(buffer, max_batch_bytes=max_batch_bytes)
    position = 0
    are_plain = True
    for header in headers:
        end = position + header.length + LENGTH_END
        records = buffer[position + HEADER_BYTES : end]
        position = end
        if not header.attributes & CODEC_MASK:
            are_plain &= check_records(records, header.record_count, is_thorough=is_thorough)
            continue
        if opened_bytes(records, header.codec, enough=OPENED_BYTES_MAX) > OPENED_BYTES_MAX:
            raise MessageTooLarge(
                f"a compressed batch comes to more than {OPENED_BYTES_MAX} bytes, or consists of too many "
                "blocks: send fewer messages at a time"
            )
        if inspect_compressed:
            opened = decompress(records, header.codec, bytes_max=OPENED_BYTES_MAX)
            are_plain &= check_records(opened, header.record_count, is_thorough=True)
    return _new_checked(CheckedBatches, (headers, are_plain))


def check_records(records: memoryview, count: int, *, is_thorough: bool) -> bool:
    """Refuse records that are not sound, as far as is looked; whether it is known that none has headers."""
    if is_thorough:
        return _check_all(records, count) if count > _FEW_RECORDS else _read_each(records, count, count)
    if len(records) >= LARGE_BYTES:
        return _compare(records, count)
    if end := _usual_end(records):
        return count == 1 and _require_end(records, end, count)
    return _read_each(records, count, 1)


def _usual_end(records: memoryview) -> int:
    """Where the first record ends if it is of the usual kind: no headers, lengths of one or two bytes.

    0 if not, or if it is not sound. Every small batch passes here; by the book it takes five times as long.
    """
    try:
        low, high = records[0], records[1]
        if low < _MORE:
            body, end = 1, 1 + (low >> 1)
        else:
            body, end = 2, 2 + ((low & 0x7F | high << 7) >> 1)
        key = records[body + _KEY_PLACE]
        place = body + _KEY_PLACE + (1 if key == _NULL else 1 + (key >> 1))
        value = records[place]
        place += 1
        if value >= _MORE:
            value = value & 0x7F | records[place] << 7
            place += 1
        # Numbers that go on, or are odd and so below 0, are not of the usual kind.
        is_usual = not (low | value | key - (key == _NULL)) & 1 and key < _MORE and value < 1 << 14
        place += value >> 1
        starts_at_0 = records[body] < _MORE and not (records[body + 1] or records[body + 2])
        is_whole = place + 1 == end <= len(records) and not records[place]
        return end if is_usual and starts_at_0 and is_whole else 0
    except IndexError:
        return 0


def _read_each(records: memoryview, count: int, end_index: int) -> bool:
    position = 0
    has_headers = False
    for index in range(end_index):
        shape = read_shape(records, position, index)
        position += shape.size
        has_headers |= shape.has_headers
    return _require_end(records, position, count) and not has_headers if end_index == count else False


def _compare(records: memoryview, count: int) -> bool:
    """Compare records with those before them, until they differ too often or have headers.

    With headers there is more to compare than may be spent on it.
    """
    position = index = short_runs = 0
    while index < count:
        shape = read_shape(records, position, index)
        if shape.has_headers or short_runs == _SHORT_RUNS_MAX:
            return False
        run = count_alike(records, position, index, count - index, shape)
        position += run * shape.size
        index += run
        short_runs += run < _SHORT_RUN and index not in OFFSET_STEPS
    return _require_end(records, position, count)


def _require_end(records: memoryview, position: int, count: int) -> bool:
    if position != len(records):
        raise InvalidBatch(f"behind {count} records {len(records) - position} bytes are left in a batch")
    return True


def _check_all(records: memoryview, count: int) -> bool:
    raw: Bytes = np.frombuffer(records, np.uint8)
    try:
        return _check_fields(records, raw, find_records(raw, [0], [len(raw)], [count]))
    except IndexError as error:
        raise InvalidRecord("the records of a batch are cut off by its end") from error


def _check_fields(records: memoryview, raw: Bytes, starts: Int64s) -> bool:
    sizes, bodies = read_varints(raw, starts)
    ends = bodies + sizes
    _require(sizes > 0, "has no size")
    _require(ends == np.append(starts[1:], len(raw)), "does not end where the next begins")
    _require(raw[bodies] < _MORE, "has attributes that nobody knows")
    _, offset_places = read_varints(raw, bodies + 1)
    deltas, position = read_varints(raw, offset_places)
    _require(deltas == np.arange(len(starts)), "has an offset that does not count up")
    for _ in ("key", "value"):
        lengths, position = read_varints(raw, position)
        _require((lengths >= -1) & (lengths <= ends - position), "has a length beyond its end")
        position += np.maximum(lengths, 0)
    counts, position = read_varints(raw, position)
    _require((counts >= 0) & (counts <= RECORD_HEADERS_MAX), "has too many headers")
    _check_headers(records, raw, counts, position, ends)
    _require(position == ends, "does not end where it says")
    return not counts.any()


def _check_headers(records: memoryview, raw: Bytes, counts: Int64s, position: Int64s, ends: Int64s) -> None:
    """Pass over headers, the first of all records that have one, then the second, and so on."""
    with_more = np.flatnonzero(counts)
    round_number = 1
    while len(with_more):
        limits = ends[with_more]
        lengths, names = read_varints(raw, position[with_more])
        _require((lengths >= 0) & (lengths <= limits - names), "has a header without a name")
        name_ends = names + lengths
        for index, first, end in zip(with_more.tolist(), names.tolist(), name_ends.tolist(), strict=True):
            check_name(records, first, end, index)
        lengths, values = read_varints(raw, name_ends)
        _require((lengths >= -1) & (lengths <= limits - values), "has a length beyond its end")
        position[with_more] = values + np.maximum(lengths, 0)
        with_more = with_more[counts[with_more] > round_number]
        round_number += 1


def _require(is_so: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], otherwise: str) -> None:
    if not is_so.all():
        index = int(is_so.argmin())
        raise wrong_record(index, otherwise)
