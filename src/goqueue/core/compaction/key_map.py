"""The newest message of each key, for very many keys in little memory.

A table of slots, found by a hash with secret factors, leads to entries: the key's image (its bytes, or 248
bits of a keyed BLAKE2b where it is longer than 31) and which message has it last. Images are compared in
full, so two keys that share a hash are told apart. An entry takes 36 bytes, its slots 5 to 11. Messages come
as numbers that rise, many at a time; no Python is run for each of them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Bools = NDArray[np.bool_]

ENTRY_BYTES = 36
SLOT_BYTES = 4
KEY_BYTES = 52
"""The most that a key takes, with room to grow and slots of which a quarter to five eighths are free."""
_WORDS = 4
_GROWTH_MIN = 1024


class KeyMap:
    """Keys, and the number of the newest message of each."""

    def __init__(self, keys_max: int, *, factors: Sequence[int]) -> None:
        self._keys_max = keys_max
        bits = max((keys_max * 4 // 3).bit_length(), 10)
        self._shift = np.uint64(64 - bits)
        self._mask = (1 << bits) - 1
        self._factors = [np.uint64(factor | 1) for factor in factors[:_WORDS]]
        self._slots: NDArray[np.int32] = np.zeros(1 << bits, np.int32)
        """0: free; else the number of an entry, from 1 on."""
        self._images: Words = np.zeros((_GROWTH_MIN, _WORDS), np.uint64)
        self._newest: NDArray[np.uint32] = np.zeros(_GROWTH_MIN, np.uint32)
        self._count = 1

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
        pending, places = np.arange(len(images)), self._places(images)
        while len(pending):
            entries = self._slots[places]
            is_free = entries == 0
            if is_free.any():
                self._claim(images, numbers, pending[is_free], places[is_free])
                # Where several have found a slot free one of them has it now: all look at what is there.
                entries = self._slots[places]
            is_own = (self._images[entries] == images[pending]).all(axis=1)
            own = entries[is_own]
            offered = numbers[pending[is_own]]
            before = self._newest[own].astype(np.int64)
            # All messages of a key walk together, and numpy writes in order: the newest is written last.
            self._newest[own] = offered
            now = self._newest[own].astype(np.int64)
            outdated += (offered[offered < now], before[before < now])
            pending, places = pending[~is_own], (places[~is_own] + 1) & self._mask
        return np.concatenate(outdated) if outdated else np.empty(0, np.int64)

    def holds(self, images: Words) -> Bools:
        """Which of these keys there are."""
        found = np.zeros(len(images), np.bool_)
        pending, places = np.arange(len(images)), self._places(images)
        while len(pending):
            entries = self._slots[places]
            is_own = (self._images[entries] == images[pending]).all(axis=1) & (entries > 0)
            found[pending[is_own]] = True
            goes_on = ~is_own & (entries > 0)
            pending, places = pending[goes_on], (places[goes_on] + 1) & self._mask
        return found

    def _claim(self, images: Words, numbers: Numbers, claimants: Numbers, places: Numbers) -> None:
        """Give free slots to those that have found them so, one each, with an entry."""
        # Of several for the same slot the last one stays: numpy writes in order.
        self._slots[places] = claimants + 1
        has_won = self._slots[places] == claimants + 1
        winners = claimants[has_won]
        entries = np.arange(self._count, self._count + len(winners))
        self._images[entries] = images[winners]
        self._newest[entries] = numbers[winners]
        self._slots[places[has_won]] = entries
        self._count += len(winners)

    def _places(self, images: Words) -> Numbers:
        mixed = images[:, 0] * self._factors[0]
        for column in range(1, _WORDS):
            mixed += images[:, column] * self._factors[column]
        return (mixed >> self._shift).astype(np.int64)

    def _grow(self, count: int) -> None:
        if count > len(self._newest):
            room = max(count, min(len(self._newest) * 9 // 8, self._keys_max + 1))
            # In place: a copy beside the old one would take the memory twice.
            self._images.resize((room, _WORDS), refcheck=False)
            self._newest.resize(room, refcheck=False)
