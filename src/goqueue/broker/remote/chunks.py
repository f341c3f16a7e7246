"""Batches that were fetched from other nodes, as long as they may be asked for again.

Messages are handed out a few at a time, and looked at before that: without this each look would carry the
same batches over once more. Bounded by bytes and, for each partition, by pieces; what was not asked for
longest goes first.
"""

from bisect import bisect_right
from collections import OrderedDict, deque
from typing import NamedTuple

from goqueue.log.reading import Chunk
from goqueue.model.settings import MiB
from goqueue.records.layout import read_header

BYTES_MAX = 64 * MiB
PIECES_MAX = 4
"""Of one partition: where messages are looked at, where they go out, and where some have come back."""


class _Piece(NamedTuple):
    first: int
    """The offset that was asked for: from here on nothing is missing."""
    chunk: Chunk
    ends: list[int]
    """The end offset of each batch."""

    def cut(self, offset: int, max_bytes: int) -> Chunk:
        """From the batch that holds an offset on, or the first behind it; at least one, if there is one."""
        batches, lanes, _, end_offset = self.chunk
        first = at = bisect_right(self.ends, offset)
        size = 0
        while at < len(batches) and (at == first or size + len(batches[at]) <= max_bytes):
            size += len(batches[at])
            at += 1
        end = end_offset if at == len(batches) else self.ends[at - 1]
        return Chunk(batches[first:at], lanes[first:at], size, end)


class FetchedChunks:
    """Of all partitions of a node. Used on the loop alone."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._pieces: OrderedDict[object, deque[_Piece]] = OrderedDict()
        self.size = 0

    def find(self, owner: object, offset: int, max_bytes: int) -> Chunk | None:
        """What is here of a partition from an offset on."""
        for piece in self._pieces.get(owner, ()):
            if piece.first <= offset < piece.chunk.end_offset:
                self._pieces.move_to_end(owner)
                return piece.cut(offset, max_bytes)
        return None

    def keep(self, owner: object, offset: int, chunk: Chunk) -> None:
        """What was found when a partition was asked for batches from an offset on."""
        if chunk.end_offset <= offset:
            return  # nothing was
        pieces = self._pieces.setdefault(owner, deque())
        self._pieces.move_to_end(owner)
        pieces.appendleft(_Piece(offset, chunk, [read_header(body).end_offset for body in chunk.batches]))
        self.size += chunk.size
        if len(pieces) > PIECES_MAX:
            self.size -= pieces.pop().chunk.size
        while self.size > self._bytes_max and len(self._pieces) > 1:
            self.forget(next(iter(self._pieces)))

    def forget(self, owner: object) -> None:
        """All of a partition."""
        self.size -= sum(piece.chunk.size for piece in self._pieces.pop(owner, ()))
