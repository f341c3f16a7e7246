"""Compressed batches: what comes out, and that never more comes out than there may be."""

import resource
import struct

import cramjam
import pytest

from goqueue.model.errors import InvalidRecord
from goqueue.records.batch import open_batch
from goqueue.records.compression import OPENED_BYTES_MAX, decompress
from goqueue.records.layout import Codec
from tests.unit.records.hostile import MiB, batch_of, bomb, record

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def compressed(raw: bytes, codec: Codec) -> bytes:
    match codec:
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(raw))
        case Codec.SNAPPY:
            return bytes(cramjam.snappy.compress_raw(raw))
        case Codec.LZ4:
            return bytes(cramjam.lz4.compress(raw))
        case _:
            return bytes(cramjam.zstd.compress(raw))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [0, 1, 1000, 3 * MiB])
def test_what_was_compressed_comes_out_however_well_it_was(codec: Codec, size: int) -> None:
    raw = bytes(size)

    found = decompress(memoryview(compressed(raw, codec)), codec, bytes_max=max(size, 1), margin=61)

    assert found[61:] == raw


@pytest.mark.parametrize("codec", CODECS)
def test_one_byte_more_than_there_may_be_is_refused(codec: Codec) -> None:
    stored = memoryview(compressed(bytes(MiB + 1), codec))

    with pytest.raises(InvalidRecord, match=f"{MiB}"):
        decompress(stored, codec, bytes_max=MiB)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_comes_to_a_gigabyte_is_refused_before_it_has_taken_it(codec: Codec) -> None:
    body = batch_of(bomb(codec), codec=codec)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(InvalidRecord, match="decompressed"):
        open_batch(body, 2)

    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib * 1024 < 2 * OPENED_BYTES_MAX


def test_a_snappy_block_that_only_says_it_needs_gigabytes_is_not_believed() -> None:
    body = batch_of(b"\xff\xff\xff\xff\x0f" + b"\0" * 20, codec=Codec.SNAPPY)

    with pytest.raises(InvalidRecord, match="says it needs 4294967295 bytes"):
        open_batch(body, 2)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("damage", [b"", b"\0" * 20, b"\xff" * 20])
def test_what_is_no_compressed_stream_is_refused(codec: Codec, damage: bytes) -> None:
    with pytest.raises(InvalidRecord, match="cannot be decompressed"):
        decompress(memoryview(damage), codec, bytes_max=MiB)


@pytest.mark.parametrize("size", [-1, 1000])
def test_a_block_of_a_java_producer_that_reaches_beyond_its_batch_is_refused(size: int) -> None:
    stored = b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, size) + b"\0" * 10

    with pytest.raises(InvalidRecord, match="does not fit into its batch"):
        decompress(memoryview(stored), Codec.SNAPPY, bytes_max=MiB)


@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_batch_is_opened_like_any_other(codec: Codec) -> None:
    records = record(value=b"one") + record(value=b"two", offset_delta=1)

    [one, two] = open_batch(batch_of(compressed(records, codec), count=2, codec=codec), 2)

    assert (one.offset, one.value, two.offset, two.value) == (0, b"one", 1, b"two")
