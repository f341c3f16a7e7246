"""What one file holds on a simulated disk: the bytes the OS shows, and the bytes a power cut would leave.

The picture: `content` is the page cache. `_durable` is the platter. `_pending` are the changes made since
the last sync; a sync carries them over to the platter, a power cut carries over some of them or none.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from goqueue.model.ports import Buffer

PAGE_BYTES = 4096


class _Written(NamedTuple):
    position: int
    data: bytes


class _Resized(NamedTuple):
    size: int


_Change = _Written | _Resized


class StoredBytes:
    """The bytes of one file, whatever its name is."""

    def __init__(self, durable: bytes = b"") -> None:
        self.content = bytearray(durable)
        self._durable = bytearray(durable)
        self._pending: list[_Change] = []

    @property
    def is_synced(self) -> bool:
        return self.content == self._durable

    def append(self, buffers: Sequence[Buffer], *, room: int | None = None) -> bool:
        """Write at the end, at most `room` bytes; whether all fitted."""
        return self.write(len(self.content), b"".join(buffers), room=room)

    def write(self, position: int, data: bytes, *, room: int | None = None) -> bool:
        """Write at a place; the file may grow by `room` bytes at most. Whether all fitted."""
        end = len(data) if room is None else len(self.content) + max(room, 0) - position
        fitting = data[: max(end, 0)]
        change = _Written(position, fitting)
        self._pending.append(change)
        _apply(self.content, change)
        return len(fitting) == len(data)

    def truncate(self, size: int) -> None:
        self._pending.append(_Resized(size))
        _resize(self.content, size)

    def sync(self) -> None:
        """Carry every change since the last sync over to the platter."""
        for change in self._pending:
            _apply(self._durable, change)
        self._pending.clear()

    def fail_to_sync(self, random: Random) -> None:
        """Fail as on Linux: every page is marked clean, though some never reached the disk.

        A later sync will not try them again, and succeeds. Until then a reader sees the new bytes or,
        when the cache has been dropped in between, whatever the platter holds.
        """
        self._durable = self.after_power_loss(random)
        self._pending.clear()
        if random.random() < 0.5:
            size = len(self.content)
            self.content = bytearray(self._durable)
            _resize(self.content, size)

    def after_power_loss(self, random: Random) -> bytearray:
        """What the platter may hold when the power fails now: all that was synced, and a draw of the rest."""
        if not self._pending:
            return bytearray(self._durable)
        return random.choice((self._vanished, self._arrived, self._torn, self._torn, self._scattered))(random)

    def flip_bit(self, position: int, bit: int) -> None:
        """Rot: one bit turns, in the cache as on the platter."""
        for image in (self.content, self._durable):
            if position < len(image):
                image[position] ^= 1 << bit

    def _vanished(self, random: Random) -> bytearray:
        return bytearray(self._durable)

    def _arrived(self, random: Random) -> bytearray:
        return bytearray(self._on_the_way(len(self._pending)))

    def _torn(self, random: Random) -> bytearray:
        """The first changes arrived, one was cut at any byte, the later ones are gone."""
        arrived_count = random.randrange(len(self._pending))
        image = self._on_the_way(arrived_count)
        cut = self._pending[arrived_count]
        if isinstance(cut, _Written):
            _apply(image, _Written(cut.position, cut.data[: random.randint(0, len(cut.data))]))
        return image

    def _scattered(self, random: Random) -> bytearray:
        """The file has grown, its pages came in any order: those missing hold old bytes or zeros."""
        newest = self._on_the_way(len(self._pending))
        low, high = sorted((len(self._durable), len(newest)))
        size = random.choice((len(newest), random.randint(low, high)))
        image = bytearray(self._durable)
        _resize(image, size)
        changed_from = min(change[0] for change in self._pending)
        for page_start in range(changed_from - changed_from % PAGE_BYTES, size, PAGE_BYTES):
            if random.random() < 0.5:
                page = slice(page_start, min(page_start + PAGE_BYTES, size))
                fresh = newest[page]
                image[page_start : page_start + len(fresh)] = fresh
        return image

    def _on_the_way(self, change_count: int) -> bytearray:
        image = bytearray(self._durable)
        for change in self._pending[:change_count]:
            _apply(image, change)
        return image


def _apply(image: bytearray, change: _Change) -> None:
    match change:
        case _Written(position, data):
            if len(image) < position:
                _resize(image, position)
            image[position : position + len(data)] = data
        case _Resized(size):
            _resize(image, size)


def _resize(image: bytearray, size: int) -> None:
    if size <= len(image):
        del image[size:]
    else:
        image += bytes(size - len(image))
