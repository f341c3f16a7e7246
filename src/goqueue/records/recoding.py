"""Batches in the compression that their topic has.

The header stays but for the codec: offsets, times, producer, sequence numbers and transaction are what they
were. Records stay byte for byte. What came compressed has never been looked into, so it is checked as it is
opened. A batch that would only grow is left uncompressed.
"""

from collections.abc import Sequence

from goqueue.model.errors import MessageTooLarge
from goqueue.model.settings import CompressionType, TopicSettings
from goqueue.records.batch import plain_batch
from goqueue.records.compression import compress
from goqueue.records.layout import CODEC_MASK, HEADER_BYTES, BatchHeader, Codec, pack_batch
from goqueue.records.record_check import check_records

_CODECS = {
    CompressionType.UNCOMPRESSED: Codec.NONE,
    CompressionType.GZIP: Codec.GZIP,
    CompressionType.SNAPPY: Codec.SNAPPY,
    CompressionType.LZ4: Codec.LZ4,
    CompressionType.ZSTD: Codec.ZSTD,
}


def is_otherwise(headers: Sequence[BatchHeader], settings: TopicSettings) -> bool:
    """Whether a batch has another compression than its topic."""
    codec = _CODECS.get(settings.compression_type)
    return codec is not None and any(header.codec != codec for header in headers)


def recode(body: memoryview, header: BatchHeader, settings: TopicSettings) -> memoryview:
    """The batch in the compression of its topic. Raises InvalidRecord, and MessageTooLarge. For threads."""
    codec = _CODECS.get(settings.compression_type, header.codec)
    if codec == header.codec:
        return body
    records = plain_batch(body, header)[HEADER_BYTES:]
    if header.codec != Codec.NONE:
        check_records(records, header.record_count, is_thorough=True)
    attributes = header.attributes & ~CODEC_MASK
    if codec != Codec.NONE:
        compressed = compress(records, codec)
        if len(compressed) < len(records):
            return _sized(pack_batch(header._replace(attributes=attributes | codec), compressed), settings)
    if header.codec == Codec.NONE:
        return body
    return _sized(pack_batch(header._replace(attributes=attributes), records), settings)


def _sized(body: memoryview, settings: TopicSettings) -> memoryview:
    if len(body) > settings.max_message_bytes:
        raise MessageTooLarge(
            f"a record batch of {len(body)} bytes, compressed as the topic is, is over the limit of "
            f"{settings.max_message_bytes}"
        )
    return body
