"""Where the records of many batches lie, and their keys: for whoever must know keys and nothing else.

All of it comes from a few steps of numpy over all batches together. What a record says of its length is
compared with where the next one begins, so that nothing is read from the wrong place.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goqueue.model.errors import InvalidRecord, KeyRequired
from goqueue.records.batch import plain_batch
from goqueue.records.layout import HEADER_BYTES, BatchHeader
from goqueue.records.varints import Bools, Bytes, Int64s, read_varints, skip_varints
from goqueue.records.walk import find_records

IMAGE_BYTES = 32
_KEY_BYTES_MAX = IMAGE_BYTES - 1
_LONG = 0xFF
_NO_VALUE = 1
"""The length -1 as it is written."""
_PAD = bytes(IMAGE_BYTES)
Words = NDArray[np.uint64]


class RecordPlaces(NamedTuple):
    """The records of some batches, one behind the other."""

    raw: Bytes
    firsts: list[int]
    """Which record is the first of each batch; behind the last batch how many there are."""
    starts: Int64s
    bodies: Int64s
    """Behind the sizes."""
    ends: Int64s


class RecordKeys(NamedTuple):
    """What can be told of them without their values."""

    starts: Int64s
    lengths: Int64s
    """-1: the message has no key."""
    is_tombstone: Bools
    """It has no value: it deletes its key."""


def find_places(batches: Sequence[tuple[BatchHeader, memoryview]]) -> RecordPlaces:
    """Where the records of batches lie, compressed or not. Raises InvalidRecord."""
    areas = [plain_batch(body, header)[HEADER_BYTES:] for header, body in batches]
    raw: Bytes = np.frombuffer(b"".join([*areas, _PAD]), np.uint8)
    borders = [0, *accumulate(map(len, areas))]
    counts = [header.record_count for header, _ in batches]
    firsts = [0, *accumulate(counts)]
    try:
        starts = find_records(raw, borders[:-1], borders[1:], counts)
        sizes, bodies = read_varints(raw, starts)
    except IndexError as error:
        raise InvalidRecord("the records of a batch are cut off by its end") from error
    ends = bodies + sizes
    due = np.append(starts[1:], borders[-1])
    if (sizes <= 0).any() or (ends != due).any() or (starts[firsts[:-1]] != borders[:-1]).any():
        raise InvalidRecord("a record does not end where the next begins")
    return RecordPlaces(raw, firsts, starts, bodies, ends)


def find_keys(places: RecordPlaces) -> RecordKeys:
    """The keys of records. Raises InvalidRecord."""
    raw, ends = places.raw, places.ends
    try:
        position = skip_varints(raw, skip_varints(raw, places.bodies + 1))
        lengths, starts = read_varints(raw, position)
        if ((lengths < -1) | (lengths > ends - starts)).any():
            raise InvalidRecord("a record has a key beyond its end")
        is_tombstone = raw.take(starts + np.maximum(lengths, 0)) == _NO_VALUE
    except IndexError as error:
        raise InvalidRecord("the records of a batch are cut off by its end") from error
    return RecordKeys(starts, lengths, is_tombstone)


def require_keys(batches: Sequence[tuple[BatchHeader, memoryview]]) -> None:
    """Refuse batches with a message that has no key. Raises KeyRequired, and InvalidRecord."""
    missing = np.flatnonzero(find_keys(find_places(batches)).lengths < 0)
    if len(missing):
        raise KeyRequired(record_index=int(missing[0]))


def counts_up(places: RecordPlaces, first: int, kept: Int64s) -> bool:
    """Whether some records of a batch say of themselves which of its records they are."""
    position = skip_varints(places.raw, places.bodies[kept + first] + 1)
    deltas, _ = read_varints(places.raw, position)
    return bool((deltas == kept).all())


def key_images(raw: Bytes, keys: RecordKeys, *, secret: bytes) -> Words:
    """Each key in 32 bytes, as four words: the same for the same key, another for another.

    Short keys are there byte for byte, with their length. Of a longer one it is 248 bits of a BLAKE2b that
    only this process could compute, so that nobody can look for two that are alike.
    """
    # As numpy's own view of windows, which takes ten times as long to make.
    windows: Bytes = np.ndarray((len(raw) - IMAGE_BYTES + 1, IMAGE_BYTES), np.uint8, raw.data, 0, (1, 1))
    images = windows[keys.starts]
    lengths = keys.lengths
    words = images.view(np.uint64)
    words &= _MASKS.take(np.clip(lengths, 0, _KEY_BYTES_MAX), axis=0)
    images[:, -1] = np.minimum(lengths, _LONG)
    for at in np.flatnonzero(lengths > _KEY_BYTES_MAX).tolist():
        start = int(keys.starts[at])
        key = raw.data[start : start + int(lengths[at])]
        digest = blake2b(key, digest_size=_KEY_BYTES_MAX, key=secret).digest()
        images[at] = np.frombuffer(digest + bytes((_LONG,)), np.uint8)
    return words


def _masks() -> Words:
    """For each length the bytes of an image that are the key's."""
    columns = np.arange(IMAGE_BYTES)
    is_key = columns[None, :] < np.arange(IMAGE_BYTES)[:, None]
    return (is_key * np.uint8(0xFF)).astype(np.uint8).view(np.uint64)


_MASKS = _masks()
