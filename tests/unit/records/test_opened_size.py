"""What compressed batches come to is known before anybody opens them, whichever library made them."""

import gzip
from collections.abc import Callable

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import MessageTooLarge
from goqueue.records.compression import OPENED_BYTES_MAX
from goqueue.records.layout import Codec
from goqueue.records.opened_size import opened_bytes
from goqueue.records.record_check import check_incoming
from tests.unit.records.hostile import batch_of, bomb

MiB = 1024 * 1024
ZSTD_BLOCK = 128 * 1024
LZ4_BLOCK = 4 * MiB
MADE: dict[Codec, Callable[[bytes], bytes]] = {
    Codec.GZIP: lambda data: gzip.compress(data, 1),
    Codec.SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    Codec.LZ4: lambda data: bytes(cramjam.lz4.compress(data)),
    Codec.ZSTD: lambda data: bytes(cramjam.zstd.compress(data)),
}
CODECS = pytest.mark.parametrize("codec", list(MADE), ids=lambda codec: codec.name.lower())


def compressed(codec: Codec, data: bytes) -> memoryview:
    return memoryview(MADE[codec](data))


def checked(body: memoryview) -> None:
    check_incoming(body, max_batch_bytes=16 * MiB, inspect_compressed=False, is_thorough=False)


@CODECS
@pytest.mark.parametrize("size", [0, 1, 1_000, 300_000, 5 * MiB])
def test_a_stream_never_comes_to_more_than_it_tells(codec: Codec, size: int) -> None:
    stream = compressed(codec, b"some words " * (size // 11) + bytes(size % 11))

    told = opened_bytes(stream, codec, enough=0)

    assert size <= told <= size + LZ4_BLOCK


@CODECS
def test_a_batch_that_nobody_could_open_here_is_refused_at_the_door(codec: Codec) -> None:
    stream = compressed(codec, bytes(OPENED_BYTES_MAX + LZ4_BLOCK))

    with pytest.raises(MessageTooLarge, match="fewer messages"):
        checked(batch_of(bytes(stream), codec=codec, count=40))


@CODECS
def test_a_batch_that_just_fits_is_taken(codec: Codec) -> None:
    checked(batch_of(bytes(compressed(codec, bytes(OPENED_BYTES_MAX - LZ4_BLOCK))), codec=codec))


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD, Codec.SNAPPY])
def test_many_frames_in_a_row_are_added_up(codec: Codec) -> None:
    assert opened_bytes(memoryview(bomb(codec)), codec, enough=127 * MiB) >= 128 * MiB


@pytest.mark.parametrize(
    ("codec", "head", "block"),
    [
        (Codec.ZSTD, b"\x28\xb5\x2f\xfd\0\0", b"\0\0\0"),
        (Codec.LZ4, b"\x04\x22\x4d\x18\x40\x40\0", b"\1\0\0\0x"),
    ],
)
def test_a_stream_of_too_many_blocks_is_not_counted_to_its_end(
    codec: Codec, head: bytes, block: bytes
) -> None:
    stream = memoryview(head + block * 20_000)

    assert opened_bytes(stream, codec, enough=100_000) > 100_000


@given(data=st.binary(max_size=300), codec=st.sampled_from(list(MADE)), head=st.booleans())
def test_what_makes_no_sense_is_left_to_others(data: bytes, codec: Codec, head: bool) -> None:
    magic = {Codec.ZSTD: b"\x28\xb5\x2f\xfd", Codec.LZ4: b"\x04\x22\x4d\x18"}.get(codec, b"")

    assert opened_bytes(memoryview(magic * head + data), codec, enough=0) >= 0
