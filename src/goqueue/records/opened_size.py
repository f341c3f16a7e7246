"""How large a compressed batch will be, as its own framing tells, without opening it.

Whoever opens batches gives them room with a bound. What needs more must not be acknowledged first and never
delivered: producers hear it at the door, and may send less at a time. The frames of zstd and lz4 consist of
blocks that say how long they are and cannot come to more than the frame allows; snappy tells its size, gzip
ends with it. A stream that makes no sense tells nothing: it comes to 0 here, and others find out.
"""

import struct

import cramjam

from goqueue.model.errors import InvalidRecord
from goqueue.records.compression import BLOCKS_MAX, snappy_blocks
from goqueue.records.layout import Codec

_RATIO_MAX: dict[int, int] = {Codec.GZIP: 1_032, Codec.SNAPPY: 64, Codec.LZ4: 255}
"""No stream of these gets larger by more: small ones need no look."""
_UINT32 = struct.Struct("<I")
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A5
"""Of such a frame the last four bits are its own."""
_ZSTD_BLOCK_BYTES = 128 * 1024
_ZSTD_RAW, _ZSTD_RLE = 0, 1
_ZSTD_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_LZ4_MAGIC = 0x184D2204
_LZ4_UNCOMPRESSED = 0x8000_0000


def opened_bytes(stream: memoryview, codec: int, *, enough: int) -> int:
    """What a stream comes to at most, by its own account; it is not looked at further than to `enough`."""
    ratio = _RATIO_MAX.get(codec)
    if ratio is not None and len(stream) * ratio <= enough:
        return len(stream) * ratio
    try:
        match codec:
            case Codec.ZSTD:
                return _zstd_bytes(stream, enough)
            case Codec.LZ4:
                return _lz4_bytes(stream, enough)
            case Codec.SNAPPY:
                return sum(map(cramjam.snappy.decompress_raw_len, snappy_blocks(stream)))
            case Codec.GZIP:
                size: int = _UINT32.unpack_from(stream, len(stream) - _UINT32.size)[0]
                return size
    except (struct.error, IndexError, InvalidRecord, cramjam.DecompressionError):
        pass
    return 0


def _zstd_bytes(stream: memoryview, enough: int) -> int:
    """Frames, one behind the other; each tells its size, or is as large as its blocks may be."""
    total = position = blocks = 0
    while position < len(stream) and total <= enough:
        (magic,) = _UINT32.unpack_from(stream, position)
        if magic >> 4 == _ZSTD_SKIPPABLE:
            position += 8 + _UINT32.unpack_from(stream, position + 4)[0]
            if (blocks := blocks + 1) > BLOCKS_MAX:
                return enough + 1
            continue
        if magic != _ZSTD_MAGIC:
            return 0
        told, has_checksum, position = _zstd_head(stream, position + 4)
        size, is_last = 0, False
        while not is_last:
            if (blocks := blocks + 1) > BLOCKS_MAX:
                return enough + 1
            head = int.from_bytes(stream[position : position + 3], "little")
            kind, length = head >> 1 & 3, head >> 3
            is_last = bool(head & 1) or position + 3 >= len(stream)
            size += length if kind in (_ZSTD_RAW, _ZSTD_RLE) else _ZSTD_BLOCK_BYTES
            position += 3 + (1 if kind == _ZSTD_RLE else length)
        position += 4 * has_checksum
        total += size if told is None else told
    return total


def _zstd_head(stream: memoryview, position: int) -> tuple[int | None, bool, int]:
    """The size that a frame tells, whether a checksum ends it, and where its blocks begin."""
    descriptor = stream[position]
    is_single, size_flag = bool(descriptor & 0x20), descriptor >> 6
    position += 1 if is_single else 2
    position += _ZSTD_DICTIONARY_ID_BYTES[descriptor & 3]
    size_bytes = (1 if is_single else 0, 2, 4, 8)[size_flag]
    told = int.from_bytes(stream[position : position + size_bytes], "little") if size_bytes else None
    if told is not None and size_flag == 1:
        told += 256  # so the format wants it
    return told, bool(descriptor & 4), position + size_bytes


def _lz4_bytes(stream: memoryview, enough: int) -> int:
    """The same of lz4's frames."""
    total = position = blocks = 0
    while position < len(stream) and total <= enough:
        (magic,) = _UINT32.unpack_from(stream, position)
        if magic != _LZ4_MAGIC:
            return 0
        flags, block_code = stream[position + 4], stream[position + 5] >> 4 & 7
        block_bytes = 1 << (8 + 2 * block_code)
        position += 6
        told = None
        if flags & 8:
            told = int.from_bytes(stream[position : position + 8], "little")
            position += 8
        position += 1 + 4 * (flags & 1)
        size, blocks = 0, blocks + 1
        while (length := _UINT32.unpack_from(stream, position)[0]) != 0:
            if (blocks := blocks + 1) > BLOCKS_MAX:
                return enough + 1
            is_plain = bool(length & _LZ4_UNCOMPRESSED)
            length &= _LZ4_UNCOMPRESSED - 1
            size += length if is_plain else min(block_bytes, length * _RATIO_MAX[Codec.LZ4])
            position += 4 + length + 4 * bool(flags & 16)
        position += 4 + 4 * bool(flags & 4)
        total += size if told is None else told
    return total
