"""The newest message of each key, for very many keys in little memory.

A table of slots, found by a hash with secret factors, leads to entries: the key's image (its bytes, or 248
bits of a keyed BLAKE2b where it is longer than 31) and which message has it last. Images are compared in
full, so two keys that share a hash are told apart. An entry takes 36 bytes, its slots 6 to 12. Messages come
as numbers that rise, many at a time; no Python is run for each of them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Places = NDArray[np.int64]
Numbers = NDArray[np.uint32]
Bools = NDArray[np.bool_]

KEY_BYTES = 50
"""The most that a key takes, with room to grow."""
_WORDS = 4
_ENTRIES_MIN = 1024
_BITS_MIN = 11
_FULL_PERCENT = 70
"""Of the slots, before there are twice as many."""
_REHASHED_AT_ONCE = 16_384


class KeyMap:
    """Keys, and the number of the newest message of each."""

    def __init__(self, keys_max: int, *, factors: Sequence[int]) -> None:
        self._keys_max = keys_max
        self._factors = [np.uint64(factor | 1) for factor in factors[:_WORDS]]
        self._images: Words = np.zeros((_ENTRIES_MIN, _WORDS), np.uint64)
        self._newest: Numbers = np.zeros(_ENTRIES_MIN, np.uint32)
        self._count = 1
        self._slots: NDArray[np.int32]
        """0: free; else the number of an entry, from 1 on."""
        self._rehash(_BITS_MIN)

    def __len__(self) -> int:
        return self._count - 1

    @property
    def size_bytes(self) -> int:
        return self._slots.nbytes + self._images.nbytes + self._newest.nbytes

    def has_room(self, count: int) -> bool:
        """Whether so many messages can be taken in, were all of other keys."""
        return len(self) + count <= self._keys_max

    def offer(self, images: Words, numbers: Numbers) -> Numbers:
        """Take in messages, newer than all before and rising; the numbers of those that are outdated by that.

        A number may come twice.
        """
        assert self.has_room(len(images)), "whoever offers messages has asked whether there is room"
        self._grow(self._count + len(images))
        outdated: list[Numbers] = []
        places = self._places(images)
        while len(numbers):
            entries = self._slots.take(places)
            free = np.flatnonzero(entries == 0)
            if len(free):
                self._claim(images, numbers, free, places[free])
                # Where several have found a slot free one of them has it now: all look at what is there.
                entries = self._slots.take(places)
            is_own = self._is_own(entries, images)
            is_done = bool(is_own.all())
            own, offered = (entries, numbers) if is_done else (entries[is_own], numbers[is_own])
            before = self._newest.take(own)
            # All messages of a key walk together, and numpy writes in order: the newest is written last.
            self._newest[own] = offered
            now = self._newest.take(own)
            outdated += (offered[offered < now], before[before < now])
            if is_done:
                break
            is_left = ~is_own
            images, numbers = images[is_left], numbers[is_left]
            places = (places[is_left] + 1) & self._mask
        return np.concatenate(outdated) if outdated else np.empty(0, np.uint32)

    def holds(self, images: Words) -> Bools:
        """Which of these keys there are."""
        found = np.zeros(len(images), np.bool_)
        pending, places = np.arange(len(images)), self._places(images)
        while len(pending):
            entries = self._slots.take(places)
            is_own = self._is_own(entries, images) & (entries > 0)
            found[pending[is_own]] = True
            goes_on = ~is_own & (entries > 0)
            pending, images = pending[goes_on], images[goes_on]
            places = (places[goes_on] + 1) & self._mask
        return found

    def _is_own(self, entries: NDArray[np.int32], images: Words) -> Bools:
        """Whether the keys of entries are these."""
        found = self._images.take(entries, axis=0)
        found ^= images
        is_own: Bools = (found[:, 0] | found[:, 1] | found[:, 2] | found[:, 3]) == 0
        return is_own

    def _claim(self, images: Words, numbers: Numbers, claimants: Places, places: Places) -> None:
        """Give free slots to those that have found them so, one each, with an entry."""
        # Of several for the same slot the last one stays: numpy writes in order.
        self._slots[places] = claimants + 1
        has_won = self._slots.take(places) == claimants + 1
        winners = claimants[has_won]
        end = self._count + len(winners)
        self._images[self._count : end] = images[winners]
        self._newest[self._count : end] = numbers[winners]
        self._slots[places[has_won]] = np.arange(self._count, end)
        self._count = end

    def _places(self, images: Words) -> Places:
        mixed = images[:, 0] * self._factors[0]
        for column in range(1, _WORDS):
            mixed += images[:, column] * self._factors[column]
        return (mixed >> self._shift).view(np.int64)

    def _grow(self, count: int) -> None:
        if count > len(self._newest):
            room = max(count, len(self._newest) * 33 // 32)
            # In place: a copy beside the old one would take the memory twice.
            self._images.resize((room, _WORDS), refcheck=False)
            self._newest.resize(room, refcheck=False)
        bits = 64 - int(self._shift)
        while count * 100 > _FULL_PERCENT << bits:
            bits += 1
        if bits > 64 - int(self._shift):
            self._rehash(bits)

    def _rehash(self, bits: int) -> None:
        """Have so many slots, two to that power."""
        self._shift, self._mask = np.uint64(64 - bits), (1 << bits) - 1
        self._slots = np.zeros(1 << bits, np.int32)
        for first in range(1, self._count, _REHASHED_AT_ONCE):
            entries = np.arange(first, min(first + _REHASHED_AT_ONCE, self._count), dtype=np.int32)
            places = self._places(self._images[first : first + len(entries)])
            while len(entries):
                is_free = self._slots.take(places) == 0
                self._slots[places[is_free]] = entries[is_free]
                is_left = self._slots.take(places) != entries
                entries, places = entries[is_left], (places[is_left] + 1) & self._mask
