"""The records of a batch, out of their compression, as Kafka's producers write it."""

import struct

import cramjam

from goqueue.model.errors import InvalidRecord
from goqueue.records.layout import Codec

RAW_BYTES_MAX = 2**31 - 1
"""Arrow counts the bytes of a column by 32 bits, and so does Kafka those of a batch."""
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER_BYTES = 16
_BLOCK_SIZE = struct.Struct(">i")


def decompress(body: memoryview, codec: int) -> memoryview:
    """The records behind a batch's header, as they were before the producer compressed them."""
    try:
        raw = _decompress(body, codec)
    except (cramjam.DecompressionError, struct.error) as error:
        raise InvalidRecord(f"a batch cannot be decompressed: {error}") from error
    if len(raw) > RAW_BYTES_MAX:
        raise InvalidRecord(f"a batch of {len(raw)} bytes, decompressed, is over {RAW_BYTES_MAX}")
    return raw


def _decompress(body: memoryview, codec: int) -> memoryview:
    match codec:
        case Codec.NONE:
            return body
        case Codec.GZIP:
            return memoryview(cramjam.gzip.decompress(body))
        case Codec.SNAPPY:
            return _decompress_snappy(body)
        case Codec.LZ4:
            return memoryview(cramjam.lz4.decompress(body))
        case Codec.ZSTD:
            return memoryview(cramjam.zstd.decompress(body))
        case _:
            raise InvalidRecord(f"compression codec {codec} is unknown")


def _decompress_snappy(body: memoryview) -> memoryview:
    """Java producers write blocks, each behind its size (xerial's format); others write one bare block."""
    if body[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return memoryview(_decompress_block(body))
    raw = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(body):
        (size,) = _BLOCK_SIZE.unpack_from(body, position)
        position += _BLOCK_SIZE.size
        if size < 0 or position + size > len(body):
            raise InvalidRecord(f"a snappy block of {size} bytes does not fit into its batch")
        raw += _decompress_block(body[position : position + size])
        position += size
    return memoryview(raw)


def _decompress_block(block: memoryview) -> cramjam.Buffer:
    # The block tells its size in advance, and memory is taken for it: not for one that cannot be.
    if cramjam.snappy.decompress_raw_len(block) > RAW_BYTES_MAX:
        raise InvalidRecord("a snappy block is larger than any batch")
    return cramjam.snappy.decompress_raw(block)
