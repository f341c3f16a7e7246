"""A large batch, opened a window at a time: messages are made only of the records that somebody wants.

A batch may hold hundreds of thousands of records. To make messages of all of them takes a second, and one
of them is often all that is wanted. So the batch is taken out of its compression and its records are found,
which numpy and the decompression mostly do without the interpreter: in a thread. A window of messages is
then made in a millisecond or two, by the same decoder that opens small batches whole.
"""

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from goqueue.model.errors import InvalidRecord
from goqueue.model.messages import StoredMessage
from goqueue.records.batch import open_batch, plain_batch
from goqueue.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    Codec,
    read_header,
)
from goqueue.records.opened_size import opened_bytes
from goqueue.records.varints import read_varint
from goqueue.records.walk import find_records

LARGE_COUNT = 2_000
"""So many or fewer are opened whole, at once: it takes 2 ms, and a thread would cost more than it spares."""
LARGE_OPENED_BYTES = 1024 * 1024
"""What comes to less is decompressed at once, in about a millisecond."""
WINDOW_COUNT = 1_000
_FEW_BYTES = 16 * 1024
"""Records take seven bytes and more: in so few bytes there are not many."""
_GZIP_BYTES = 4 * 1024
"""A stream of gzip tells the size of its last part alone, and may come to a thousand times its own."""


def is_large(body: memoryview) -> bool:
    """Whether a batch is better opened by windows."""
    if not body[ATTRIBUTES_POSITION] & CODEC_MASK:
        return len(body) >= _FEW_BYTES and read_header(body).record_count > LARGE_COUNT
    header = read_header(body)
    if header.record_count > LARGE_COUNT:
        return True
    if header.codec == Codec.GZIP:
        return len(body) > _GZIP_BYTES
    return opened_bytes(body[HEADER_BYTES:], header.codec, enough=LARGE_OPENED_BYTES) > LARGE_OPENED_BYTES


class LargeBatch:
    """A batch out of its compression, and where its windows begin. Made in a thread; raises InvalidRecord."""

    __slots__ = ("_borders", "_header", "_lane", "_plain", "_starts", "end", "first", "size", "stored_bytes")

    def __init__(self, body: memoryview, lane: int) -> None:
        header = read_header(body)
        self.first, self.end = header.base_offset, header.end_offset
        self._lane = lane
        self.stored_bytes = len(body)
        try:
            self._plain = plain_batch(body, header)
            raw = np.frombuffer(self._plain, np.uint8)
            positions = find_records(raw, [HEADER_BYTES], [len(raw)], [header.record_count])
            starts = positions[::WINDOW_COUNT].tolist()
            self._borders = [*starts, len(raw)]
            self._header = read_header(self._plain)
            self._starts = [self.first, *(self._offset_at(index) for index in range(1, len(starts)))]
        except Exception as error:  # as in open_batch
            raise InvalidRecord(f"a record batch cannot be opened: {error}") from error
        self.size = len(self._plain)
        """The memory that it takes, about."""

    @property
    def message_count(self) -> int:
        """How many messages were made and are kept: none."""
        return 0

    @property
    def _has_holes(self) -> bool:
        return self._header.record_count != self._header.last_offset_delta + 1

    @property
    def count(self) -> int:
        return self._header.record_count

    def borders(self, offset: int) -> tuple[int, int]:
        """The first offset of the window that holds an offset of the batch, and the end of that window."""
        index = self._index_of(offset)
        is_last = index + 1 == len(self._starts)
        return self._starts[index], self.end if is_last else self._starts[index + 1]

    def window(self, offset: int) -> list[StoredMessage]:
        """The messages of the window that holds an offset. Raises InvalidRecord if it cannot be opened."""
        return open_batch(self._cut(self._index_of(offset)), self._lane)

    def windows(self, offset: int) -> Iterator[memoryview]:
        """From the window that holds an offset on, each as a batch of its own."""
        for index in range(self._index_of(offset), len(self._starts)):
            yield self._cut(index)

    def _index_of(self, offset: int) -> int:
        return max(bisect_right(self._starts, offset) - 1, 0)

    def _cut(self, index: int) -> memoryview:
        """A window as a batch of its own, which says of itself what is true of the large one."""
        count = min(WINDOW_COUNT, self._header.record_count - index * WINDOW_COUNT)
        header = self._header._replace(record_count=count)
        if not self._has_holes:
            # Offsets are counted from the first one; what records say of theirs came from outside.
            header = header._replace(base_offset=self._starts[index], last_offset_delta=count - 1)
        records = self._plain[self._borders[index] : self._borders[index + 1]]
        return memoryview(HEADER.pack(*header) + records)

    def _offset_at(self, index: int) -> int:
        """The offset of a window's first message."""
        if not self._has_holes:
            return self.first + index * WINDOW_COUNT
        _, position = read_varint(self._plain, self._borders[index])  # its size
        _, position = read_varint(self._plain, position + 1)  # its time, behind its attributes
        return self.first + read_varint(self._plain, position)[0]
