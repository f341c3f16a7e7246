"""What a partition has written since its last flush began, kept for the commit log as long as it is little.

All of it or nothing: once it is too much, none of it is kept, and the partition's own files must be synced.
Then the next flush begins with nothing to keep.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from goqueue.log.commit_rounds import Piece
from goqueue.model.ports import Buffer

LOGGED_BYTES_MAX = 64 * 1024
"""What a partition has written goes through the commit log up to this size. To write more than that twice
costs more than to sync its file (ADR 32 has the figures)."""
_segment_base = attrgetter("segment_base")


class WrittenBytes(NamedTuple):
    """One write to a segment."""

    segment_base: int
    position: int
    end_offset: int
    data: bytes


class Unlogged:
    """Writes in the order they were made."""

    def __init__(self) -> None:
        self._writes: list[WrittenBytes] | None = []
        """None: too much for the commit log."""
        self.size_bytes = 0
        """Of all that was written, kept or not."""

    @property
    def is_small(self) -> bool:
        """Whether the commit log can take it."""
        return self._writes is not None

    def keep(
        self, segment_base: int, position: int, end_offset: int, buffers: Sequence[Buffer], *, size: int
    ) -> None:
        """Keep what was just written, unless it becomes too much."""
        self.size_bytes += size
        if self._writes is not None:
            if self.size_bytes <= LOGGED_BYTES_MAX:
                written = WrittenBytes(segment_base, position, end_offset, b"".join(buffers))
                self._writes.append(written)
            else:
                self._writes = None

    def pieces(self, folder: str, topic_id: UUID) -> list[Piece]:
        """All of it, each stretch of a file in one piece: writes to a segment follow each other."""
        assert self._writes is not None, "it is little enough for the commit log"
        pieces = []
        for segment_base, stretch in groupby(self._writes, key=_segment_base):
            writes = list(stretch)
            data = writes[0].data if len(writes) == 1 else b"".join(write.data for write in writes)
            first, last = writes[0], writes[-1]
            pieces.append(Piece(folder, topic_id, segment_base, first.position, last.end_offset, data))
        return pieces

    def clear(self) -> None:
        """A flush has begun that covers it."""
        self._writes, self.size_bytes = [], 0
