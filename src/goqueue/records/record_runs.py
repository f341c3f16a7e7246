"""How many records in a row lie alike, by a few steps of numpy for all of them.

The bytes of the first that matter are gathered into words of eight; each word is compared at once with
those at the same place of all records behind it, which follow at equal distances as long as they lie
alike. A word may reach beyond its record into the next: its mask leaves out what does not matter.
Offsets count up, so in their place stand what they must be.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goqueue.records.record_shape import WHOLE, Field, Shape
from goqueue.records.varints import fold, varint_columns, varint_sizes

_WORD_BYTES = 8
_TABLE_RECORDS = 16_384
OFFSET_STEPS = (1 << 6, 1 << 13, 1 << 20)
"""From here on an offset takes a byte more."""
_KEPT_SHAPES = 256

Words = NDArray[np.uint64]


class _Word(NamedTuple):
    place: int
    mask: int
    fixed_mask: int
    """Without the offset."""
    offset_shift: int | None
    """How far in the offset stands, in the word that holds it."""


def count_alike(records: memoryview, position: int, index: int, left: int, shape: Shape) -> int:
    """Of so many records that are left, how many lie as the one at a position, and count on from it."""
    size = shape.size
    left = min(left, next((step - index for step in OFFSET_STEPS if index < step), left))
    words = _words(shape.fields, shape.offset)
    run = min(left, (len(records) - position - words[-1].place - _WORD_BYTES) // size + 1)
    for place, mask, fixed_mask, offset_shift in words:
        if run < 2:
            return 1
        start = position + place
        if mask == WHOLE:
            # A byte that stands alone is quicker to compare as one.
            is_alike = np.ndarray((run,), np.uint8, records, start, (size,)) == records[start]
        else:
            fixed = int.from_bytes(records[start : start + _WORD_BYTES], "little") & fixed_mask
            expected: Words | np.uint64 = np.uint64(fixed)
            if offset_shift is not None:
                expected = _offset_words(index, index + run) << np.uint64(offset_shift) | expected
            is_alike = (np.ndarray((run,), "<u8", records, start, (size,)) & np.uint64(mask)) == expected
        if not is_alike.all():
            run = int(is_alike.argmin())
    return max(run, 1)


@lru_cache(_KEPT_SHAPES)
def _words(fields: tuple[Field, ...], offset: Field) -> tuple[_Word, ...]:
    """As few words as hold all that matters. The offset is never cut in two."""
    words: list[_Word] = []
    begun: list[Field] = []
    for field in sorted((*_pieces(fields), offset)):
        if begun and field.end > begun[0].place + _WORD_BYTES:
            words.append(_word(begun, offset))
            begun = []
        begun.append(field)
    return (*words, _word(begun, offset))


def _pieces(fields: Sequence[Field]) -> Iterator[Field]:
    for place, end, mask in fields:
        for first in range(place, end, _WORD_BYTES):
            yield Field(first, min(first + _WORD_BYTES, end), mask)


def _word(fields: Sequence[Field], offset: Field) -> _Word:
    first = fields[0].place
    mask = fixed_mask = 0
    offset_shift = None
    for field in fields:
        bits = sum(field.mask << 8 * (place - first) for place in range(field.place, field.end))
        mask |= bits
        if field is offset:
            offset_shift = 8 * (field.place - first)
        else:
            fixed_mask |= bits
    return _Word(first, mask, fixed_mask, offset_shift)


def _offset_words(first: int, end: int) -> Words:
    """Offsets within a batch as the bytes that stand in its records, the lowest first."""
    return _TABLE[first:end] if end <= _TABLE_RECORDS else _as_words(first, end)


def _as_words(first: int, end: int) -> Words:
    folded = fold(np.arange(first, end, dtype=np.int64))
    words = np.zeros(end - first, np.uint64)
    for place, (data, is_there) in enumerate(varint_columns(folded, varint_sizes(folded))):
        words |= np.where(is_there, data, 0).astype(np.uint64) << np.uint64(8 * place)
    return words


_TABLE = _as_words(0, _TABLE_RECORDS)
