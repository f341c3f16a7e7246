"""Entries: record batches on their way to many partitions, each with its address before it.

An entry is the topic's name (a 16-bit length and UTF-8), the partition (int32), the lane (uint8), the
size of the batch (uint32) and the batch. Entries follow each other without anything between them.
"""

from struct import Struct
from typing import NamedTuple

from goqueue.model.errors import InvalidBatch
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane

_NAME_LENGTH = Struct(">H")
_ADDRESS = Struct(">iBI")


class Entry(NamedTuple):
    """One batch, unopened, and where it is to go."""

    target: TopicPartition
    lane: Lane
    body: memoryview


def encode_entry(target: TopicPartition, lane: int, body: bytes | memoryview) -> bytes:
    """An entry as it travels."""
    name = target.topic.encode()
    address = _ADDRESS.pack(target.partition, lane, len(body))
    return b"".join((_NAME_LENGTH.pack(len(name)), name, address, body))


def read_entries(buffer: memoryview) -> list[Entry]:
    """All entries of a buffer, cut but not opened; refuses what is no sequence of them."""
    entries: list[Entry] = []
    position, end = 0, len(buffer)
    while position < end:
        number = len(entries)
        name_start = position + _NAME_LENGTH.size
        if name_start > end:
            raise _torn(number)
        (length,) = _NAME_LENGTH.unpack_from(buffer, position)
        address_start = name_start + length
        body_start = address_start + _ADDRESS.size
        if body_start > end:
            raise _torn(number)
        partition, lane, size = _ADDRESS.unpack_from(buffer, address_start)
        position = body_start + size
        if position > end:
            raise _torn(number)
        if lane >= len(Lane):
            raise InvalidBatch(f"entry {number} is for lane {lane}; lanes are 0 to {len(Lane) - 1}")
        try:
            topic = TopicName(str(buffer[name_start:address_start], "utf-8"))
        except UnicodeDecodeError as error:
            raise InvalidBatch(f"entry {number} names a topic that is not UTF-8") from error
        entries.append(Entry(TopicPartition(topic, partition), Lane(lane), buffer[body_start:position]))
    return entries


def pieces_of(buffer: memoryview, size_max: int) -> list[memoryview]:
    """A buffer of entries cut between them, each piece no longer than that unless one entry is."""
    pieces: list[memoryview] = []
    start = end = 0
    for entry in read_entries(buffer):
        length = _NAME_LENGTH.size + len(entry.target.topic.encode()) + _ADDRESS.size + len(entry.body)
        if end > start and end + length - start > size_max:
            pieces.append(buffer[start:end])
            start = end
        end += length
    return [*pieces, buffer[start:end]]


def _torn(number: int) -> InvalidBatch:
    return InvalidBatch(f"the body ends inside entry {number}")
