"""Batches as no library builds them: right by every checksum, and wrong or monstrous inside."""

import struct

import cramjam

from goqueue.records.layout import HEADER, HEADER_BYTES, LENGTH_END, MAGIC, Codec, seal

MiB = 1024 * 1024


def batch_of(records: bytes, *, count: int = 1, codec: Codec = Codec.NONE) -> memoryview:
    """A batch with these bytes behind its header, whatever they are."""
    length = HEADER_BYTES - LENGTH_END + len(records)
    header = HEADER.pack(0, length, 0, MAGIC, 0, codec, count - 1, 0, 0, -1, -1, -1, count)
    body = memoryview(bytearray(header + records))
    seal(body)
    return body


def record(
    *, timestamp_delta: int = 0, offset_delta: int = 0, value: bytes = b"v", value_length: int | None = None
) -> bytes:
    """One record without key and headers; its numbers may be lies."""
    length = len(value) if value_length is None else value_length
    inner = b"\0" + varint(timestamp_delta) + varint(offset_delta) + varint(-1) + varint(length) + value
    return varint(len(inner) + 1) + inner + varint(0)


def varint(number: int) -> bytes:
    rest = ((number << 1) ^ (number >> 63)) & (2**64 - 1)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def bomb(codec: Codec) -> bytes:
    """Little that decompresses to a gigabyte; by snappy, which is weak, to 128 MiB."""
    part = bytes(MiB)
    match codec:
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(part)) * 1024
        case Codec.LZ4:
            return bytes(cramjam.lz4.compress(part)) * 1024
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(part)) * 1024
        case Codec.SNAPPY:
            block = bytes(cramjam.snappy.compress_raw(part))
            return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + (struct.pack(">i", len(block)) + block) * 128
    raise AssertionError(f"{codec!r} does not compress")
