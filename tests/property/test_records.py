"""Rules of record batches and frames that hold for all messages."""

from itertools import groupby
from random import Random

import pytest
from aiokafka.record.default_records import (
    DefaultRecordBatchBuilder,
    _DefaultRecordBatchPy,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.model.errors import GoQueueError, InvalidRecord
from goqueue.model.messages import PRIORITY_HEADER, Headers, Lane, Message
from goqueue.records.batch import encode, open_batch, split_lanes
from goqueue.records.frame import FRAME_BYTES, encode_frame, scan_frames
from goqueue.records.layout import MAGIC, Codec, check_batches, patch, read_header

NOW_MS = 1_750_000_000_000
UNBOUNDED = 2**62
OFFSETS = st.integers(0, 2**62)
EPOCHS = st.integers(0, 2**31 - 1)
LANES = st.sampled_from(list(Lane))
HEADERS = st.lists(
    st.tuples(
        st.text(max_size=10).filter(lambda name: name != PRIORITY_HEADER), st.none() | st.binary(max_size=20)
    ),
    max_size=3,
).map(tuple)
MESSAGES = st.lists(
    st.builds(
        Message,
        value=st.none() | st.binary(max_size=200),
        key=st.none() | st.binary(max_size=30),
        headers=HEADERS,
        lane=LANES,
        timestamp_ms=st.none() | st.integers(0, 2**42),
    ),
    min_size=1,
    max_size=20,
)


def batch_of(messages: list[Message], *, codec: Codec = Codec.NONE, sequence: int = -1) -> memoryview:
    """A batch as a producer builds it, lanes asked for by header."""
    producer = (-1, -1) if sequence < 0 else (7, 0)
    builder = DefaultRecordBatchBuilder(MAGIC, codec, 0, *producer, sequence, 1 << 30)
    for index, message in enumerate(messages):
        headers: Headers = (*message.headers, (PRIORITY_HEADER, message.lane.label.encode()))
        builder.append(index, message.timestamp_ms or NOW_MS, message.key, message.value, list(headers))
    return memoryview(bytearray(builder.build()))


@given(MESSAGES)
def test_what_is_encoded_is_opened_as_it_was(messages: list[Message]) -> None:
    opened = [m for body, lane in encode(messages, now_ms=NOW_MS) for m in open_batch(body, lane)]

    assert [(m.key, m.value, m.headers, m.lane) for m in opened] == [
        (m.key, m.value, m.headers, m.lane) for m in messages
    ]
    assert [m.timestamp_ms for m in opened] == [
        NOW_MS if m.timestamp_ms is None else m.timestamp_ms for m in messages
    ]


@given(MESSAGES)
def test_encoding_begins_a_batch_where_the_lane_changes_and_nowhere_else(messages: list[Message]) -> None:
    batches = encode(messages, now_ms=NOW_MS)

    assert [lane for _, lane in batches] == [lane for lane, _ in groupby(messages, key=lambda m: m.lane)]


@given(MESSAGES)
def test_a_pure_python_decoder_reads_the_same(messages: list[Message]) -> None:
    for body, lane in encode(messages, now_ms=NOW_MS):
        reference = _DefaultRecordBatchPy(bytes(body))

        assert reference.validate_crc()
        assert [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in reference] == [
            (m.timestamp_ms, m.key, m.value, m.headers) for m in open_batch(body, lane)
        ]


@given(MESSAGES)
def test_what_is_encoded_passes_the_check_for_batches_from_outside(messages: list[Message]) -> None:
    bodies = [body for body, _ in encode(messages, now_ms=NOW_MS)]

    headers = check_batches(memoryview(b"".join(bodies)), max_batch_bytes=1 << 30)

    assert [header.size_bytes for header in headers] == [len(body) for body in bodies]
    assert sum(header.record_count for header in headers) == len(messages)


@given(MESSAGES, OFFSETS, EPOCHS)
def test_a_patch_moves_the_offsets_and_nothing_else(messages: list[Message], offset: int, epoch: int) -> None:
    body = memoryview(bytearray(encode(messages, now_ms=NOW_MS)[0].body))
    before = open_batch(body, Lane.NORMAL)

    patch(body, base_offset=offset, leader_epoch=epoch)

    check_batches(body, max_batch_bytes=1 << 30)
    assert read_header(body).leader_epoch == epoch
    assert open_batch(body, Lane.NORMAL) == [m._replace(offset=m.offset + offset) for m in before]


@given(MESSAGES, st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4]), st.integers(-1, 2**31 - 1))
def test_splitting_by_lane_keeps_order_sequence_and_content(
    messages: list[Message], codec: Codec, sequence: int
) -> None:
    body = batch_of(messages, codec=codec, sequence=sequence)
    whole = open_batch(body, Lane.NORMAL)

    parts = split_lanes(body, read_header(body), inspect_compressed=True)

    opened = [m for part, lane in parts for m in open_batch(part, lane)]
    assert [m.lane for m in opened] == [m.lane for m in messages]
    assert [(m.timestamp_ms, m.key, m.value, m.headers) for m in opened] == [
        (m.timestamp_ms, m.key, m.value, m.headers) for m in whole
    ]
    if sequence >= 0:
        due = sequence
        for part, _ in parts:
            header = read_header(part)
            assert header.base_sequence == due
            due = (due + header.record_count) % 2**31


@given(MESSAGES, OFFSETS, LANES)
def test_a_frame_is_found_again_as_it_was_written(messages: list[Message], offset: int, lane: Lane) -> None:
    data = framed(messages, offset, lane)

    scan = scan_frames(memoryview(data), stop_offset=UNBOUNDED * 2)

    (frame,) = scan.frames
    assert (frame.base_offset, frame.end_offset) == (offset, offset + len(messages))
    assert (frame.lane, frame.body_start, frame.body_end) == (lane, FRAME_BYTES, len(data))
    assert (scan.consumed_bytes, scan.problem) == (len(data), "")


@given(MESSAGES, st.data())
def test_a_frame_cut_anywhere_is_not_taken_for_whole(messages: list[Message], data: st.DataObject) -> None:
    whole = framed(messages, 0, Lane.NORMAL)
    size = data.draw(st.integers(0, len(whole) - 1))

    scan = scan_frames(memoryview(whole[:size]), stop_offset=UNBOUNDED)

    assert scan.frames == []
    assert scan.consumed_bytes == 0


@given(MESSAGES, st.data())
def test_a_flipped_bit_is_noticed_wherever_it_matters(messages: list[Message], data: st.DataObject) -> None:
    whole = bytearray(framed(messages, 5, Lane.NORMAL))
    position = data.draw(st.integers(0, len(whole) - 1))
    whole[position] ^= 1 << data.draw(st.integers(0, 7))

    scan = scan_frames(memoryview(whole), stop_offset=UNBOUNDED)

    # The flags (byte 3) are a copy of what the batch says itself; all else is covered.
    assert scan.frames == [] or position == 3


@settings(max_examples=300)
@given(st.sampled_from(list(Codec)), st.integers(0, 2**32))
def test_a_batch_that_cannot_be_opened_is_an_error_of_the_house(codec: Codec, seed: int) -> None:
    """A client can put a right checksum over wrong bytes."""
    garbage = Random(seed).randbytes(60)
    body = bytearray(bytes(batch_of([Message(b"value")])[:61]) + garbage)
    body[8:12] = (len(body) - 12).to_bytes(4, "big")
    body[21:23] = int(codec).to_bytes(2, "big")

    try:
        open_batch(memoryview(body), Lane.NORMAL)
    except GoQueueError as error:
        assert isinstance(error, InvalidRecord)


def test_lanes_that_do_not_exist_are_refused() -> None:
    message = Message(b"value", headers=((PRIORITY_HEADER, b"urgent"),))
    builder = DefaultRecordBatchBuilder(MAGIC, Codec.NONE, 0, -1, -1, -1, 1 << 30)
    builder.append(0, NOW_MS, None, message.value, list(message.headers))
    body = memoryview(bytearray(builder.build()))

    with pytest.raises(InvalidRecord):
        split_lanes(body, read_header(body), inspect_compressed=False)


def framed(messages: list[Message], offset: int, lane: Lane) -> bytes:
    """One batch of all messages, patched, with its frame."""
    body = memoryview(bytearray(encode([m._replace(lane=lane) for m in messages], now_ms=NOW_MS)[0].body))
    patch(body, base_offset=offset, leader_epoch=1)
    return encode_frame(read_header(body), body, base_offset=offset, lane=lane) + bytes(body)
