"""The records of a batch, out of their compression and into it, as Kafka's producers write it.

How much comes out is decided by whoever made the batch: a few kilobytes can stand for gigabytes. So it comes
out into room that the caller sets a bound to, and what needs more is refused before it has taken it.
"""

import struct
from collections.abc import Callable
from functools import partial

import cramjam
import numpy as np
from aiokafka import codec as codecs

from goqueue.model.errors import InvalidRecord
from goqueue.records.layout import Codec

OPENED_BYTES_MAX = 64 * 1024 * 1024
"""What a compressed batch may come to when it is opened here. Kafka's clients open them by themselves."""
BLOCKS_MAX = 10_000
"""Of how many blocks a stream may consist: five times what the smallest that libraries write come to."""
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEADER_BYTES = 16
_BLOCK_SIZE = struct.Struct(">i")
_ROOM_BYTES_MIN = 4096
_USUAL_RATIO = 16
"""Most batches need less room than so many times their size, and are done at the first attempt."""
_Into = Callable[[memoryview, memoryview], int]
_INTO: dict[int, _Into] = {
    Codec.GZIP: cramjam.gzip.decompress_into,
    Codec.LZ4: cramjam.lz4.decompress_into,
    Codec.ZSTD: cramjam.zstd.decompress_into,
}

_COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    Codec.GZIP: partial(codecs.gzip_encode, compresslevel=6),
    Codec.SNAPPY: codecs.snappy_encode,
    Codec.LZ4: codecs.lz4_encode,
    Codec.ZSTD: codecs.zstd_encode,
}


def decompress(body: memoryview, codec: int, *, bytes_max: int, margin: int = 0) -> memoryview:
    """What a producer compressed, if it is not more than so many bytes; before it `margin` bytes are free."""
    try:
        match codec:
            case Codec.SNAPPY:
                return _decompress_snappy(body, bytes_max, margin)
            case Codec.GZIP | Codec.LZ4 | Codec.ZSTD:
                return _decompress_stream(_INTO[codec], body, bytes_max, margin)
    except (cramjam.DecompressionError, struct.error) as error:
        raise InvalidRecord(f"a batch cannot be decompressed: {error}") from error
    raise InvalidRecord(f"compression codec {codec} is unknown")


def compress(records: bytes | memoryview, codec: int) -> bytes:
    """Records as a producer compresses them."""
    return _COMPRESS[codec](bytes(records))


def _decompress_stream(into: _Into, body: memoryview, bytes_max: int, margin: int) -> memoryview:
    """Streams do not tell their size: room is made until it is enough."""
    room_bytes = min(max(len(body) * _USUAL_RATIO, _ROOM_BYTES_MIN), bytes_max)
    while True:
        room = _room(margin + room_bytes)
        try:
            return room[: margin + into(body, room[margin:])]
        except cramjam.DecompressionError as error:
            # Too little room and damage are told apart by the text alone. A damaged stream fails again with
            # more room, so it does no harm to take one for the other but for the work.
            if room_bytes == bytes_max:
                raise InvalidRecord(
                    f"a batch cannot be decompressed into {bytes_max} bytes, the most there may be: {error}"
                ) from error
        room_bytes = min(room_bytes * _USUAL_RATIO, bytes_max)


def _decompress_snappy(body: memoryview, bytes_max: int, margin: int) -> memoryview:
    """Java producers write blocks, each behind its size (xerial's format); others write one bare block."""
    blocks = snappy_blocks(body)
    # Each block says what it needs. That is only what it says, so not more is believed than there may be.
    sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
    if sum(sizes) > bytes_max:
        raise InvalidRecord(f"a batch says it needs {sum(sizes)} bytes, decompressed: over {bytes_max}")
    room = _room(margin + sum(sizes))
    position = margin
    for block, size in zip(blocks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(block, room[position : position + size])
        position += size
    return room


def snappy_blocks(body: memoryview) -> list[memoryview]:
    """The blocks of a stream, bare of what stands around them."""
    if body[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return [body]
    blocks: list[memoryview] = []
    position = _XERIAL_HEADER_BYTES
    while position < len(body):
        (size,) = _BLOCK_SIZE.unpack_from(body, position)
        position += _BLOCK_SIZE.size
        if size < 0 or position + size > len(body):
            raise InvalidRecord(f"a snappy block of {size} bytes does not fit into its batch")
        if len(blocks) == BLOCKS_MAX:
            raise InvalidRecord(f"a batch of more than {BLOCKS_MAX} snappy blocks")
        blocks.append(body[position : position + size])
        position += size
    return blocks


def _room(size: int) -> memoryview:
    """Memory that is not touched before it is needed, which a byte array would be."""
    return np.empty(size, np.uint8).data
