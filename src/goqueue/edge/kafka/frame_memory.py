"""Memory for frames, used again and again.

A batch of a megabyte in fresh memory costs more in page faults than in copying. Frames that are answered
give their memory back, and the next one of that size is read into pages that are there already. What is
kept is bounded; the rest is left to the allocator. So is what all clients' frames take together.
"""

import mmap

from goqueue.model.settings import GiB, KiB, MiB

SMALLEST_KEPT_BYTES = 64 * KiB
LARGEST_KEPT_BYTES = 2 * MiB
KEPT_BYTES_MAX = 32 * MiB
HELD_BYTES_MAX = GiB


class FrameMemory:
    """Buffers of a few sizes that wait for their next frame."""

    def __init__(self, *, held_bytes_max: int = HELD_BYTES_MAX, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._held_bytes_max = held_bytes_max
        self._kept_bytes_max = kept_bytes_max
        self._kept: dict[int, list[bytearray]] = {}
        self.kept_bytes = 0
        self.held_bytes = 0
        """Of frames that are being read or answered, by the sizes their clients have told."""

    def has_room(self, size: int) -> bool:
        """Whether a frame of this size may be taken in beside all others."""
        return self.held_bytes + size <= self._held_bytes_max

    def take(self, size: int) -> memoryview:
        """Room for a frame. What stands in it is of no meaning."""
        self.held_bytes += size
        if size < SMALLEST_KEPT_BYTES:
            return memoryview(bytearray(size))
        if size > LARGEST_KEPT_BYTES:
            # Takes memory only as its bytes arrive, whatever size the client claims.
            return memoryview(mmap.mmap(-1, size))
        room = 1 << (size - 1).bit_length()
        if kept := self._kept.get(room):
            self.kept_bytes -= room
            return memoryview(kept.pop())[:size]
        return memoryview(bytearray(room))[:size]

    def give_back(self, frame: memoryview) -> None:
        """The frame is answered. Its memory is used again unless somebody still looks at it."""
        self.held_bytes -= len(frame)
        buffer = frame.obj
        frame.release()
        if not isinstance(buffer, bytearray) or len(buffer) < SMALLEST_KEPT_BYTES:
            return
        room = len(buffer)
        if self.kept_bytes + room > self._kept_bytes_max or not _is_free(buffer):
            return
        self._kept.setdefault(room, []).append(buffer)
        self.kept_bytes += room

    def abandon(self, size: int) -> None:
        """Frames of a client that is gone, so many bytes in all, are nobody's any more.

        Their memory is not used again: what is in the log may still be on its way to the disk.
        """
        self.held_bytes -= size


def _is_free(buffer: bytearray) -> bool:
    """Whether no view of the buffer is left: only then may it change its size."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True
