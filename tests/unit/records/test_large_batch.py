"""A large batch by its windows is the same as the batch opened whole."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from goqueue.model.errors import InvalidRecord
from goqueue.model.messages import Lane
from goqueue.records.batch import leave_out, open_batch
from goqueue.records.large_batch import LARGE_COUNT, WINDOW_COUNT, LargeBatch, is_large
from goqueue.records.layout import HEADER_BYTES, MAGIC, Codec, read_header
from tests.unit.records.hostile import batch_of, bomb


def batch(count: int, *, codec: Codec = Codec.NONE, is_uneven: bool = False) -> memoryview:
    builder = DefaultRecordBatchBuilder(MAGIC, codec, 0, -1, -1, -1, 2**31 - 1)
    for index in range(count):
        value = b"v" * (index * 37 % 300) if is_uneven else b"value-%09d" % index
        headers = [("name", b"%d" % index)] if index % 3 == 0 else []
        builder.append(index, 1_000 + index, b"key-%d" % index if index % 2 else None, value, headers)
    body = bytearray(builder.build())
    body[:8] = (7).to_bytes(8, "big")
    return memoryview(body)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("is_uneven", [False, True])
def test_windows_hold_what_the_batch_opened_whole_holds(codec: Codec, is_uneven: bool) -> None:
    body = batch(2 * WINDOW_COUNT + 17, codec=codec, is_uneven=is_uneven)
    large = LargeBatch(body, Lane.HIGH)

    opened = [message for piece in large.windows(large.first) for message in open_batch(piece, Lane.HIGH)]

    assert opened == open_batch(body, Lane.HIGH)
    assert large.borders(7 + WINDOW_COUNT) == (7 + WINDOW_COUNT, 7 + 2 * WINDOW_COUNT)
    assert large.window(7 + WINDOW_COUNT - 1) == opened[:WINDOW_COUNT]
    assert large.window(large.end - 1) == opened[2 * WINDOW_COUNT :]


def test_messages_of_a_batch_with_holes_keep_their_offsets() -> None:
    whole = batch(3 * WINDOW_COUNT)
    gone = set(range(500, 2_300)) | {0, 3 * WINDOW_COUNT - 1}
    body = leave_out(open_batch(whole, Lane.NORMAL), read_header(whole), gone)
    body[:8] = (100).to_bytes(8, "big")
    large = LargeBatch(body, Lane.NORMAL)

    found = {message.offset: message for message in open_batch(body, Lane.NORMAL)}

    assert len(found) == 3 * WINDOW_COUNT - len(gone)
    for offset in range(large.first, large.end):
        first, end = large.borders(offset)
        assert first <= offset < end
        by_window = {message.offset: message for message in large.window(offset) if message.offset == offset}
        assert by_window == ({offset: found[offset]} if offset in found else {})


def test_small_batches_are_opened_at_once() -> None:
    assert not is_large(batch(1_000))
    assert not is_large(batch(1_000, codec=Codec.ZSTD))
    assert not is_large(batch(LARGE_COUNT))
    assert is_large(batch(LARGE_COUNT + 1))
    assert is_large(batch(LARGE_COUNT + 1, codec=Codec.LZ4))


@pytest.mark.parametrize("codec", [Codec.ZSTD, Codec.GZIP, Codec.LZ4])
def test_few_bytes_that_come_to_many_are_large(codec: Codec) -> None:
    body = batch_of(bomb(codec), codec=codec)

    assert is_large(body)
    with pytest.raises(InvalidRecord):
        LargeBatch(body, Lane.NORMAL)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_a_batch_that_ends_early_cannot_be_opened(codec: Codec) -> None:
    whole = batch(3 * WINDOW_COUNT, codec=codec, is_uneven=True)

    with pytest.raises(InvalidRecord):
        LargeBatch(whole[: HEADER_BYTES + 1_000], Lane.NORMAL)


def test_what_is_damaged_in_one_window_leaves_the_others() -> None:
    body = batch(3 * WINDOW_COUNT)
    large = LargeBatch(body, Lane.NORMAL)
    start = large.borders(7 + WINDOW_COUNT)[0]
    # The size of the key of that window's first record, behind size, attributes, time and offset.
    position = bytes(body).index(b"value-%09d" % WINDOW_COUNT) - 2
    body[position : position + 2] = b"\xff\x7f"

    assert [message.offset for message in large.window(7)] == list(range(7, start))
    with pytest.raises(InvalidRecord):
        large.window(start)
