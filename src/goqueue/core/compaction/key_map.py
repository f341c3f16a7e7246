"""The newest message of each key, for very many keys in little memory.

A table of slots, found by a hash with secret factors, leads to entries: the key's image (its bytes, or 248
bits of a keyed BLAKE2b where it is longer than 31) and which message has it last. Images are compared in
full, so two keys that share a hash are told apart. An entry takes 36 bytes, its slots 8 to 16. Messages come
as numbers that rise, many at a time; no Python is run for each of them.

There is place for all entries that there may be from the start on, so none is ever moved. Slots become more
step by step. Nothing here takes longer than a millisecond or two: so long whoever else wants the interpreter
waits for it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from goqueue.core.compaction.memory import zeroes

Words = NDArray[np.uint64]
Places = NDArray[np.int64]
Numbers = NDArray[np.uint32]
Bools = NDArray[np.bool_]

KEY_BYTES = 52
"""The most that a key takes."""
_WORDS = 4
_BITS_MIN = 11
_FULL_PERCENT = 50
"""Of the slots, before there are twice as many."""
_MOVED_AT_ONCE = 1_024
"""Each of them may be the first on its page."""


class KeyMap:
    """Keys, and the number of the newest message of each."""

    def __init__(self, keys_max: int, *, factors: Sequence[int]) -> None:
        self._keys_max = keys_max
        self._factors = [np.uint64(factor | 1) for factor in factors[:_WORDS]]
        self._images: Words = zeroes((keys_max + 1) * _WORDS, np.uint64).reshape(-1, _WORDS)
        self._newest: Numbers = zeroes(keys_max + 1, np.uint32)
        self._count = 1
        self._slots: NDArray[np.int32]
        """0: free; else the number of an entry, from 1 on."""
        self._moved = 1
        """Entries before this one have their slot; the others get one, step by step."""
        self._have_slots(_BITS_MIN)

    def __len__(self) -> int:
        return self._count - 1

    @property
    def size_bytes(self) -> int:
        return self._slots.nbytes + self._count * (self._images.itemsize * _WORDS + self._newest.itemsize)

    def has_room(self, count: int) -> bool:
        """Whether so many messages can be taken in, were all of other keys."""
        return len(self) + count <= self._keys_max

    def make_room(self, count: int) -> bool:
        """Go on with making room for so many messages; False: there is more to do before they are offered."""
        while (self._count + count) * 100 > _FULL_PERCENT << self._bits:
            self._have_slots(self._bits + 1)
        if self._moved < self._count:
            self._move_some()
        return self._moved == self._count

    def offer(self, images: Words, numbers: Numbers) -> Numbers:
        """Take in messages, newer than all before and rising; the numbers of those that are outdated by that.

        A number may come twice.
        """
        assert self.has_room(len(images)), "whoever offers messages has asked whether there is room"
        assert self._moved == self._count, "whoever offers messages has made room for them"
        entries = self._find_or_claim(images, numbers)
        before = self._newest.take(entries)
        # Numpy writes in order: of several messages of a key the newest is written last.
        self._newest[entries] = numbers
        now = self._newest.take(entries)
        self._moved = self._count
        return np.concatenate((numbers[numbers < now], before[before < now]))

    def _find_or_claim(self, images: Words, numbers: Numbers) -> NDArray[np.int32]:
        """The entries of keys, made where there were none."""
        places = self._places(images)
        found = self._slots.take(places)
        pending = np.arange(len(images))
        while len(pending):
            entries = self._slots.take(places)
            free = (entries == 0).nonzero()[0]
            if len(free):
                self._claim(images, numbers, free, pending, places[free])
                # Where several have found a slot free one of them has it now: all look at what is there.
                entries = self._slots.take(places)
            # What is not its own is overwritten by the next look. All messages of a key walk together.
            found[pending] = entries
            left = (~self._is_own(entries, images.take(pending, axis=0))).nonzero()[0]
            pending = pending.take(left)
            places = (places.take(left) + 1) & self._mask
        return found

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

    def _claim(self, images: Words, numbers: Numbers, free: Places, pending: Places, places: Places) -> None:
        """Give free slots to those that have found them so, one each, with an entry."""
        # Of several for the same slot the last one stays: numpy writes in order.
        self._slots[places] = free + 1
        has_won = self._slots.take(places) == free + 1
        winners = pending.take(free[has_won])
        end = self._count + len(winners)
        self._images[self._count : end] = images.take(winners, axis=0)
        self._newest[self._count : end] = numbers.take(winners)
        self._slots[places[has_won]] = np.arange(self._count, end)
        self._count = end

    def _places(self, images: Words) -> Places:
        mixed = images[:, 0] * self._factors[0]
        for column in range(1, _WORDS):
            mixed += images[:, column] * self._factors[column]
        return (mixed >> self._shift).view(np.int64)

    def _have_slots(self, bits: int) -> None:
        """Have so many slots, two to that power, all of them free; entries are to be moved there."""
        self._bits, self._shift, self._mask = bits, np.uint64(64 - bits), (1 << bits) - 1
        self._slots = zeroes(1 << bits, np.int32)
        self._moved = 1

    def _move_some(self) -> None:
        entries = np.arange(self._moved, min(self._moved + _MOVED_AT_ONCE, self._count), dtype=np.int32)
        places = self._places(self._images[self._moved : self._moved + len(entries)])
        self._moved += len(entries)
        while len(entries):
            is_free = self._slots.take(places) == 0
            self._slots[places[is_free]] = entries[is_free]
            is_left = self._slots.take(places) != entries
            entries, places = entries[is_left], (places[is_left] + 1) & self._mask
