"""Which sealed segments keep their files open: the last so many that were opened, over all partitions.

Without a bound every segment that was ever written or read would keep a descriptor until retention takes it.
A file that is let go is closed when its last reader is done with it, and opened again when it is needed: some
ten microseconds, so that the order in which they came is good enough.
"""

import weakref
from collections import deque
from typing import Protocol

SEALED_FILES_MAX = 256
"""Beside these each partition has the file of the segment being written."""


class Shelved(Protocol):
    def let_go(self) -> None: ...


class FileShelf:
    """Threads that read put segments here, too: a deque's own steps are atomic, one too many does no harm."""

    def __init__(self, count_max: int = SEALED_FILES_MAX) -> None:
        self._count_max = count_max
        # Weak: a segment that retention has removed is not kept alive, and its file closes with it.
        self._opened: deque[weakref.ref[Shelved]] = deque()

    def put(self, segment: Shelved) -> None:
        self._opened.append(weakref.ref(segment))
        while len(self._opened) > self._count_max:
            oldest = self._opened.popleft()()
            if oldest is not None:
                oldest.let_go()
