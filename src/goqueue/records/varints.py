"""Kafka's variable-length integers, many at a time.

A varint holds seven bits a byte, lowest first, and a set top bit says that another byte follows.
Negative numbers are folded in between (zigzag: 0, -1, 1, -2 …), so that small ones stay short.
"""

import numpy as np
from numpy.typing import NDArray

from goqueue.model.errors import InvalidRecord

Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MORE = 0x80
_BITS = 0x7F
_VARINT_BYTES_MAX = 10
_LAST_SHIFT = 63


def read_varints(raw: Bytes, positions: Int64s) -> tuple[Int64s, Int64s]:
    """The numbers that begin at each position, and the positions behind them.

    A position outside of the buffer is an IndexError; the callers' checks make that a corrupt batch.
    """
    low = raw[positions]
    after = positions + 1
    has_more = low >= _MORE
    if not has_more.any():
        return _unfold(low.view(np.int8)), after
    # Sizes mostly have two bytes: to gather a second one of all is quicker than to pick out those that do.
    high = raw.take(after, mode="clip")
    after += has_more
    if after.max() > len(raw):
        raise IndexError("a number is cut off by the end of the buffer")
    folded = (low & _BITS) | ((high & _BITS) * has_more).astype(np.int16) << 7
    unfinished = np.flatnonzero(has_more & (high >= _MORE))
    if not len(unfinished):
        return _unfold(folded), after
    longer = folded.astype(np.uint64)
    _read_on(raw, longer, after, unfinished)
    return (longer >> 1).view(np.int64) ^ -(longer & 1).view(np.int64), after


def skip_varints(raw: Bytes, positions: Int64s) -> Int64s:
    """The positions behind the numbers that begin at each position."""
    after = positions + 1
    goes_on = raw.take(positions) >= _MORE
    while goes_on.any():
        after += goes_on
        goes_on &= raw.take(after - 1) >= _MORE
    return after


def _unfold(folded: NDArray[np.int8] | NDArray[np.int16]) -> Int64s:
    """Signed numbers of unsigned ones that leave the sign bit free."""
    return ((folded >> 1) ^ -(folded & 1)).astype(np.int64)


def _read_on(raw: Bytes, folded: NDArray[np.uint64], after: Int64s, unfinished: Int64s) -> None:
    """Go on with the numbers that have more than two bytes."""
    shift = 14
    while len(unfinished):
        if shift > _LAST_SHIFT:
            raise InvalidRecord("a number has more than ten bytes")
        here = after[unfinished]
        following = raw[here]
        folded[unfinished] |= (following & _BITS).astype(np.uint64) << shift
        after[unfinished] = here + 1
        unfinished = unfinished[following >= _MORE]
        shift += 7


def read_varint(data: Bytes | bytes | memoryview, position: int) -> tuple[int, int]:
    """The one number that begins at a position, and the position behind it."""
    folded = 0
    for index in range(_VARINT_BYTES_MAX):
        byte = int(data[position + index])
        folded |= (byte & _BITS) << (7 * index)
        if byte < _MORE:
            return (folded >> 1) ^ -(folded & 1), position + index + 1
    raise InvalidRecord("a number has more than ten bytes")


def fold(values: Int64s) -> NDArray[np.uint64]:
    """Signed numbers as the unsigned ones that are written, seven bits a byte."""
    return ((values << 1) ^ (values >> _LAST_SHIFT)).view(np.uint64)


def varint_sizes(folded: NDArray[np.uint64]) -> Int64s:
    """How many bytes each folded number takes."""
    sizes = np.ones(len(folded), np.int64)
    largest = int(folded.max(initial=0))
    bound = 1 << 7
    while bound <= largest:
        sizes += folded >= bound
        bound <<= 7
    return sizes


def varint_columns(folded: NDArray[np.uint64], sizes: Int64s) -> list[tuple[Bytes, Bools]]:
    """The written bytes, column by column: the n-th byte of each number, and which numbers have one."""
    columns = []
    for index in range(int(sizes.max(initial=0))):
        bits = (folded >> (7 * index)) & _BITS
        is_followed = sizes > index + 1
        columns.append(((bits | is_followed * np.uint64(_MORE)).astype(np.uint8), sizes > index))
    return columns
