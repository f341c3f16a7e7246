"""Where the records of many batches begin.

Each record begins with its size, so records are a chain: the only sequential part of a decode.
Four walks follow it, each where it is fast; whichever is taken, the answer is the same.

- The cast holds a batch against an earlier one of its length: where the size bytes at all the places
  of that one are the same, the chain is the same, by induction.
- The gallop guesses that the next records are as long as this one and compares all their size
  bytes in one strided step. Everything up to the first mismatch is certain, by induction.
- Lock-step moves many batches on together, one record of each a step.
- The plain loop follows one chain at a time.

A walk takes bytes at their word: the reader of the fields compares every size with where the walk went.
"""

from typing import NamedTuple

import numpy as np

from goqueue.model.errors import InvalidRecord
from goqueue.records.varints import Bytes, Int64s, read_varint, read_varints

LOCK_STEP_CHAINS = 80
"""A step of numpy costs as much as the plain loop takes for this many records."""
_SHORT_RUN = 8
_SHORT_RUNS_MAX = 4
_LOST_BATCHES_MAX = 2
_MORE = 0x80


class _Chain(NamedTuple):
    """Records of one batch still to be found: from a position on, so many, for a slot in the answer."""

    position: int
    end: int
    left: int
    slot: int


class _Cast(NamedTuple):
    """Where the records of a batch begin, counted from its start, and the two bytes at each place."""

    places: Int64s
    first: Bytes
    second: Bytes


def find_records(raw: Bytes, batch_starts: list[int], batch_ends: list[int], counts: list[int]) -> Int64s:
    """The position of every record, batch after batch."""
    found = np.empty(sum(counts), np.int64)
    unfinished: list[_Chain] = []
    slot = 0
    # A gallop costs a few steps of numpy a batch, lock-step a few a record of the longest batch.
    guesses_left = 0 if max(counts) <= len(counts) else _LOST_BATCHES_MAX
    casts: dict[tuple[int, int], _Cast] = {}
    for start, end, count in zip(batch_starts, batch_ends, counts, strict=True):
        chain = _Chain(start, end, count, slot)
        slot += count
        # Where sizes vary in two batches they will vary in the others too.
        if guesses_left:
            cast = casts.get((end - start, count))
            if cast is not None and _fits(raw, start, cast):
                found[slot - count : slot] = cast.places + start
                continue
            chain = _gallop(raw, chain, found)
            guesses_left -= chain.left > 0
            if not chain.left:
                casts[end - start, count] = _cast(raw, start, found[slot - count : slot])
        if chain.left:
            unfinished.append(chain)
    if len(unfinished) >= LOCK_STEP_CHAINS:
        unfinished = _walk_in_step(raw, unfinished, found)
    if unfinished:
        data = raw.tobytes()
        for chain in unfinished:
            _walk_alone(data, chain, found)
    return found


def _cast(raw: Bytes, start: int, positions: Int64s) -> _Cast:
    return _Cast(positions - start, raw[positions], raw[positions + 1])


def _fits(raw: Bytes, start: int, cast: _Cast) -> bool:
    """Whether the records of a batch that begins here lie as those of the cast do."""
    positions = cast.places + start
    first, second = raw[positions], raw[positions + 1]
    # Sizes of three bytes would need a third look; they are too rare to be worth it.
    is_longer = (first & second) >= _MORE
    return bool((first == cast.first).all() and (second == cast.second).all() and not is_longer.any())


def _gallop(raw: Bytes, chain: _Chain, found: Int64s) -> _Chain:
    """Walk in runs of equal sizes; what is left once the runs have been too short too often."""
    position, end, count, slot = chain
    short_runs = 0
    while count and short_runs < _SHORT_RUNS_MAX:
        size, body = read_varint(raw, position)
        stride = body + size - position
        if size < 0 or position + stride > end:
            raise InvalidRecord("a record's size is negative or beyond its batch")
        run = min(count, (end - position) // stride)
        for first in range(position, body):
            is_same = raw[first : position + run * stride : stride] == raw[first]
            if not is_same.all():
                run = int(is_same.argmin())
        found[slot : slot + run] = np.arange(position, position + run * stride, stride)
        short_runs = short_runs + 1 if run < _SHORT_RUN else 0
        position += run * stride
        slot += run
        count -= run
    return _Chain(position, end, count, slot)


def _walk_in_step(raw: Bytes, chains: list[_Chain], found: Int64s) -> list[_Chain]:
    """Move all chains on together while enough of them have records left; what is left of the others."""
    chains = sorted(chains, key=lambda chain: chain.left, reverse=True)
    counts = [chain.left for chain in chains]
    positions = np.array([chain.position for chain in chains], np.int64)
    slots = np.array([chain.slot for chain in chains], np.int64)
    steps = counts[LOCK_STEP_CHAINS - 1]
    moving = len(chains)
    last = len(raw) - 1
    for step in range(steps):
        while counts[moving - 1] <= step:
            moving -= 1
        here = positions[:moving]
        found[slots[:moving] + step] = here
        low = raw[here].astype(np.int64)
        has_more = low >= 0x80
        high = raw[np.minimum(here + 1, last)].astype(np.int64)
        if (has_more & (high >= 0x80)).any():
            sizes, bodies = read_varints(raw, here)
            positions[:moving] = bodies + sizes
        else:
            folded = np.where(has_more, (low & 0x7F) | (high << 7), low)
            positions[:moving] = here + (folded >> 1) + has_more + 1
    return [
        _Chain(position, chain.end, chain.left - steps, chain.slot + steps)
        for position, chain in zip(positions.tolist(), chains, strict=True)
        if chain.left > steps
    ]


def _walk_alone(data: bytes, chain: _Chain, found: Int64s) -> None:
    """Follow one chain in plain Python: sizes of one and two bytes at once, longer ones by the book."""
    position, _, count, slot = chain
    positions: list[int] = []
    append = positions.append
    for _ in range(count):
        append(position)
        low = data[position]
        if low < 0x80:
            position += 1 + (low >> 1)
            continue
        high = data[position + 1]
        if high < 0x80:
            position += 2 + ((low & 0x7F | high << 7) >> 1)
            continue
        size, body = read_varint(data, position)
        if not 0 <= size <= len(data):
            raise InvalidRecord("a record's size is negative or beyond its batch")
        position = body + size
    found[slot : slot + count] = positions
