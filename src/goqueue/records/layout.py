"""The record batch, Kafka's format v2: a 61-byte header and the records behind it.

The broker stores a batch as the producer built it. Two fields are its own to fill: base offset and
leader epoch. Both lie before the batch's CRC-32C and outside of it, so patching them is free.
"""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from goqueue.model.errors import (
    InvalidBatch,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    UnsupportedFormat,
    WrongChecksum,
)

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LENGTH_END = 12
"""The length field counts the bytes behind itself: a batch is this much longer."""
CRC_END = 21
"""The batch's CRC covers everything from here on."""
ATTRIBUTES_POSITION = 22
"""The low byte of the attributes, which holds all that are in use."""
MAGIC = 2
_MAGIC_POSITION = 16
_BASE_OFFSET = Struct(">q")
_LENGTH = Struct(">i")
_LENGTH_POSITION = 8
_LEADER_EPOCH = Struct(">i")
_LEADER_EPOCH_POSITION = 12
_CRC = Struct(">I")
_CRC_POSITION = 17
_SPAN = Struct(">iqq")
_SPAN_POSITION = 23
_MAX_TIMESTAMP = Struct(">q")
_MAX_TIMESTAMP_POSITION = 35
_PRODUCER = Struct(">qhi")
_PRODUCER_POSITION = 43
_KIND = Struct(">h20xqhii")
_KIND_POSITION = 21

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
"""The first timestamp is that at which what deletes a key may go; compaction alone writes it."""
_BROKERS_OWN = LOG_APPEND_TIME | DELETE_HORIZON

TIMESTAMP_MS_MAX = (2**63 - 1) // 1_000_000
"""Times are kept in nanoseconds on disk."""
RECORDS_MAX = 1_000_000
"""Records in a batch from outside. A batch of tiny ones takes many times its size when it is opened."""
NO_SEQUENCE = -1
SEQUENCE_MASK = 0x7FFF_FFFF
"""Sequence numbers start again at 0 behind the largest int32."""


class Codec(IntEnum):
    """Compression of a batch, as its attributes tell it."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BatchHeader(NamedTuple):
    """The fixed part of a batch, in the order of its bytes."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.length + LENGTH_END

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK


def read_header(buffer: memoryview | bytes, position: int = 0) -> BatchHeader:
    """The header of the batch that begins at `position`; the caller knows that it is there."""
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def read_kind(buffer: memoryview, position: int) -> tuple[int, int, int]:
    """Attributes, producer id and record count alone: what a replica looks at in each batch."""
    attributes, producer_id, _, _, record_count = _KIND.unpack_from(buffer, position + _KIND_POSITION)
    return attributes, producer_id, record_count


def check_batches(buffer: memoryview, *, max_batch_bytes: int) -> list[BatchHeader]:
    """The headers of all batches in a buffer from outside, or the error that names what is wrong."""
    headers = []
    position, end = 0, len(buffer)
    if end == 0:
        raise InvalidBatch("a publish needs at least one record batch")
    while position < end:
        header = _check_batch(buffer, position, end, max_batch_bytes)
        headers.append(header)
        position += header.size_bytes
    return headers


def _check_batch(buffer: memoryview, position: int, end: int, max_batch_bytes: int) -> BatchHeader:
    if end - position <= _MAGIC_POSITION:
        raise InvalidBatch(f"{end - position} bytes are too few for a record batch")
    # Formats v0 and v1 have their magic at the same place, so this can be told before the rest is read.
    magic = buffer[position + _MAGIC_POSITION]
    if magic != MAGIC:
        raise UnsupportedFormat(f"record format v{magic} is not supported: send record batches of format v2")
    (length,) = _LENGTH.unpack_from(buffer, position + _LENGTH_POSITION)
    size = length + LENGTH_END
    if size < HEADER_BYTES or position + size > end:
        raise InvalidBatch(f"a record batch says it has {size} bytes where {end - position} are left")
    if size > max_batch_bytes:
        raise MessageTooLarge(f"a record batch of {size} bytes is over the limit of {max_batch_bytes}")
    header = read_header(buffer, position)
    if crc32c(buffer[position + CRC_END : position + size]) != header.crc:
        raise WrongChecksum("a record batch does not match its CRC-32C")
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        raise InvalidBatch(
            f"a record batch of {header.record_count} records must have a last offset delta of one less, "
            f"not {header.last_offset_delta}"
        )
    if header.record_count > RECORDS_MAX:
        raise InvalidBatch(
            f"a record batch of {header.record_count} records is over the limit of {RECORDS_MAX}"
        )
    for timestamp_ms in (header.first_timestamp_ms, header.max_timestamp_ms):
        if abs(timestamp_ms) > TIMESTAMP_MS_MAX:
            raise InvalidTimestamp(f"timestamp {timestamp_ms} is too far from now: times are in milliseconds")
    if header.attributes & CONTROL:
        raise InvalidRecord("control batches are written by the broker alone")
    if header.attributes & _BROKERS_OWN:
        raise InvalidRecord("a producer can set neither the log append time nor when deletions are forgotten")
    if header.producer_id < -1:
        raise InvalidRecord(f"producer {header.producer_id} is no client: ids are given out from 0 on")
    if header.codec > Codec.ZSTD:
        raise InvalidBatch(f"compression codec {header.codec} is unknown")
    return header


def patch(buffer: memoryview, *, base_offset: int, leader_epoch: int) -> None:
    """Write the broker's two fields into a batch, in place."""
    _BASE_OFFSET.pack_into(buffer, 0, base_offset)
    _LEADER_EPOCH.pack_into(buffer, _LEADER_EPOCH_POSITION, leader_epoch)


def stamp_producer(
    buffer: memoryview,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool = False,
) -> None:
    """Make a batch one of a producer's, or of its transaction, in place."""
    _PRODUCER.pack_into(buffer, _PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    if is_transactional:
        buffer[ATTRIBUTES_POSITION] |= TRANSACTIONAL
    seal(buffer)


def stretch(
    buffer: memoryview, *, last_offset_delta: int, first_timestamp_ms: int, max_timestamp_ms: int
) -> None:
    """Let a batch cover more offsets than it has records, in place."""
    _SPAN.pack_into(buffer, _SPAN_POSITION, last_offset_delta, first_timestamp_ms, max_timestamp_ms)
    seal(buffer)


def stamp_time(buffer: memoryview, time_ms: int) -> None:
    """Give all messages of a batch the time at which it is stored, in place. Records stay as they are."""
    buffer[ATTRIBUTES_POSITION] |= LOG_APPEND_TIME
    _MAX_TIMESTAMP.pack_into(buffer, _MAX_TIMESTAMP_POSITION, time_ms)
    seal(buffer)


def pack_batch(header: BatchHeader, records: bytes | memoryview) -> memoryview:
    """A batch of a header and records, whose length and CRC are theirs."""
    length = HEADER_BYTES - LENGTH_END + len(records)
    body = memoryview(bytearray(b"".join((HEADER.pack(*header._replace(length=length)), records))))
    seal(body)
    return body


def seal(buffer: memoryview) -> None:
    """Make a batch's CRC anew, after a change to what it covers."""
    _CRC.pack_into(buffer, _CRC_POSITION, crc32c(buffer[CRC_END:]))
