"""decode: frames of the log into rows of Arrow, corner by corner."""

import gc

import cramjam
import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from goqueue.model.errors import Corrupt
from goqueue.model.messages import Headers, Lane, Message
from goqueue.records.layout import CONTROL, HEADER_BYTES, LOG_APPEND_TIME, Codec
from goqueue.spark.codec.columns import Columns
from goqueue.spark.codec.decode import Decoded, decode
from goqueue.spark.codec.groups import GROUP_BYTES, GROUP_RECORDS
from tests.unit.spark.framed import EVERYTHING, NOW_MS, Stored, batch, decoded, frame, rewritten, window

VALUES = Columns.named(["offset", "value"])


def decode_values(frames: bytes, offset_range: tuple[int, int] = EVERYTHING) -> Decoded:
    return decode(frames, columns=VALUES, offset_range=offset_range, topic="orders", partition=3)


def numbered(deltas: list[int], *, last_delta: int) -> bytearray:
    """A batch whose records have these offsets, as compaction leaves it or a bad producer builds it."""
    builder = DefaultRecordBatchBuilder(2, Codec.NONE, 0, -1, -1, -1, 1 << 20)
    for delta in deltas:
        builder.append(delta, NOW_MS, None, b"v%d" % delta, [])
    body = bytearray(builder.build())
    body[23:27] = last_delta.to_bytes(4, "big")
    return rewritten(body)


def test_a_row_has_every_column_of_its_message() -> None:
    headers: Headers = (("traceparent", b"00-ab-cd-01"), ("source", b"web"))
    frames = window(
        [Stored([Message(b"value", b"key", headers, timestamp_ms=NOW_MS)], Lane.HIGH)], base_offset=41
    )

    assert decoded(frames) == [
        {
            "topic": "orders",
            "partition": 3,
            "offset": 41,
            "timestamp": NOW_MS,
            "key": b"key",
            "value": b"value",
            "headers": [{"key": "traceparent", "value": b"00-ab-cd-01"}, {"key": "source", "value": b"web"}],
            "priority": 1,
            "traceparent": "00-ab-cd-01",
        }
    ]


def test_nothing_in_gives_no_rows() -> None:
    assert decode_values(b"") == Decoded([], 0, 0, 0)


def test_null_and_empty_are_not_the_same() -> None:
    frames = window([Stored([Message(None, None), Message(b"", b""), Message(None, b"k"), Message(b"v")])])

    rows = decoded(frames, columns=Columns.named(["key", "value"]))

    assert [(row["key"], row["value"]) for row in rows] == [
        (None, None),
        (b"", b""),
        (b"k", None),
        (None, b"v"),
    ]


def test_headers_may_repeat_be_null_and_differ_in_number() -> None:
    lists: list[Headers] = [(), (("a", b"1"), ("a", None), ("", b"")), (("b", b"2"),), ()]
    frames = window([Stored([Message(b"v", headers=headers) for headers in lists])])

    rows = decoded(frames, columns=Columns.named(["headers"]))

    assert [row["headers"] for row in rows] == [
        [{"key": name, "value": value} for name, value in headers] for headers in lists
    ]


def test_a_message_with_very_many_headers_is_read_to_its_end() -> None:
    many: Headers = tuple((f"name-{n}", None if n % 7 == 0 else b"%d" % n) for n in range(5_000))
    frames = window([Stored([Message(b"a"), Message(b"b", headers=many), Message(b"c", headers=many[:3])])])

    rows = decoded(frames, columns=Columns.named(["headers"]))

    assert rows[1]["headers"] == [{"key": name, "value": value} for name, value in many]
    assert rows[2]["headers"] == [{"key": name, "value": value} for name, value in many[:3]]


def test_the_last_traceparent_counts_and_a_null_one_is_none() -> None:
    traces: list[Headers] = [
        (("traceparent", b"first"), ("traceparent", b"last")),
        (("traceparent", b"first"), ("traceparent", None)),
        (("tracestate--", b"x"), ("Traceparent", b"x")),
        (),
    ]
    frames = window([Stored([Message(b"v", headers=headers) for headers in traces])])

    rows = decoded(frames, columns=Columns.named(["traceparent"]))

    assert [row["traceparent"] for row in rows] == ["last", None, None, None]


def test_a_header_that_is_no_text_spoils_nothing() -> None:
    body = batch([Message(b"v", headers=(("name", b"1"), ("traceparent", b"\xff-trace")))])
    wrong = rewritten(body, records=bytes(body[HEADER_BYTES:]).replace(b"name", b"na\xffe"))

    [row] = decoded(frame(wrong), columns=Columns.named(["headers", "traceparent"]))

    assert row["headers"] == [
        {"key": "na\ufffde", "value": b"1"},
        {"key": "traceparent", "value": b"\xff-trace"},
    ]
    assert row["traceparent"] == "\ufffd-trace"


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_of_every_codec_are_read_side_by_side(codec: Codec) -> None:
    batches = [
        Stored([Message(b"plain %d" % n) for n in range(50)]),
        Stored([Message(b"packed %d" % n) for n in range(5_000)], Lane.LOW, codec),
        Stored([Message(b"plain again")], Lane.BACKGROUND),
    ]

    rows = decoded(window(batches), columns=Columns.named(["offset", "value", "priority"]))

    assert rows == [
        {"offset": offset, "value": value, "priority": int(lane)}
        for offset, (value, lane) in enumerate(
            (m.value, lane) for messages, lane, _ in batches for m in messages
        )
    ]


def test_a_bare_snappy_block_is_read_as_well_as_a_java_stream_of_blocks() -> None:
    body = batch([Message(b"value")] * 3)
    bare = bytes(cramjam.snappy.compress_raw(bytes(body[HEADER_BYTES:])))

    rows = decoded(frame(rewritten(body, attributes=Codec.SNAPPY, records=bare)), columns=VALUES)

    assert [row["value"] for row in rows] == [b"value"] * 3


def test_large_and_small_messages_stand_together() -> None:
    values = [b"x" * 3_000_000, b"", b"y" * 20_000, b"z" * 70]
    frames = window([Stored([Message(value) for value in values])])

    assert [row["value"] for row in decoded(frames, columns=VALUES)] == values


def test_a_batch_with_the_brokers_time_has_one_time_for_all() -> None:
    body = batch([Message(b"v", timestamp_ms=NOW_MS + delta) for delta in (0, 500, -20)])

    rows = decoded(frame(rewritten(body, attributes=LOG_APPEND_TIME)), columns=Columns.named(["timestamp"]))

    assert [row["timestamp"] for row in rows] == [NOW_MS + 500] * 3


def test_times_may_go_back_within_a_batch() -> None:
    times = [NOW_MS, NOW_MS - 1, NOW_MS - 10**9, 0, -1, NOW_MS + 10**9]
    frames = window([Stored([Message(b"v", timestamp_ms=time) for time in times])])

    rows = decoded(frames, columns=Columns.named(["timestamp"]))

    assert [row["timestamp"] for row in rows] == times


def test_a_time_beyond_arrows_becomes_its_last() -> None:
    body = batch([Message(b"v", timestamp_ms=time) for time in (0, 2**60, -(2**60))])
    # A frame has no room for such a time either, but only the header's largest one goes there.
    body[35:43] = bytes(8)

    rows = decoded(frame(rewritten(body)), columns=Columns.named(["timestamp"]))

    last_ms = (2**63 - 1) // 1000
    assert [row["timestamp"] for row in rows] == [0, last_ms, -last_ms]


def test_control_batches_never_appear() -> None:
    data = frame(batch([Message(b"a")]))
    marker = frame(rewritten(batch([Message(b"", key=b"\0\0\0\1")]), attributes=CONTROL), base_offset=1)
    more = frame(batch([Message(b"b")]), base_offset=2)

    found = decode_values(data + marker + more)

    assert [row["value"] for rows in found.batches for row in rows.to_pylist()] == [b"a", b"b"]
    assert found.next_offset == 3


def test_a_gap_left_by_compaction_does_not_stop_a_range() -> None:
    frames = frame(batch([Message(b"a")])) + frame(batch([Message(b"b")]), base_offset=50)

    assert decode_values(frames, (0, 20)).next_offset == 20
    assert decode_values(frames, (10, 20)) == Decoded([], 20, len(frame(batch([Message(b"a")]))), 0)


def test_a_batch_may_leave_offsets_out() -> None:
    rows = decoded(
        frame(numbered([1, 4, 5], last_delta=9), base_offset=10), columns=VALUES, offset_range=(12, 15)
    )

    assert rows == [{"offset": 14, "value": b"v4"}]


@pytest.mark.parametrize("deltas", [[0, 0], [1, 0], [0, 10], [-1, 0]])
def test_offsets_that_do_not_rise_within_their_batch_are_corrupt(deltas: list[int]) -> None:
    with pytest.raises(Corrupt, match="do not rise"):
        decoded(frame(numbered(deltas, last_delta=9), base_offset=10), columns=VALUES)


def test_the_part_of_a_frame_at_the_end_waits_for_the_rest() -> None:
    first = frame(batch([Message(b"a"), Message(b"b")]))
    second = frame(batch([Message(b"c")]), base_offset=2)

    found = decode_values(first + second[:-1])

    assert [rows.num_rows for rows in found.batches] == [2]
    assert (found.next_offset, found.consumed_bytes, found.wanted_bytes) == (2, len(first), len(second))


def test_rows_come_in_batches_of_bounded_size() -> None:
    small = window([Stored([Message(b"v")] * 1_000)] * 70)
    large = window([Stored([Message(b"v" * 500_000)])] * 20)

    small_rows = [rows.num_rows for rows in decode_values(small).batches]
    large_bytes = [rows.nbytes for rows in decode_values(large).batches]

    assert sum(small_rows) == 70_000
    assert max(small_rows) <= GROUP_RECORDS
    assert len(large_bytes) > 1
    assert max(large_bytes) <= GROUP_BYTES


@pytest.mark.parametrize("position", [5, 30, 34 + 3, 34 + 17, 34 + 70, -1])
def test_a_flipped_bit_is_corrupt_and_named(position: int) -> None:
    good = frame(batch([Message(b"good")] * 4), base_offset=10)
    bad = bytearray(frame(batch([Message(b"bad")]), base_offset=14))
    bad[position] ^= 0x04

    with pytest.raises(Corrupt, match="orders/3 is corrupt at offset 14") as raised:
        decode_values(good + bad, (10, 100))

    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 3, 14)


def test_the_one_batch_built_wrongly_is_named_among_good_ones() -> None:
    body = batch([Message(b"a"), Message(b"b")])
    wrong = rewritten(body, records=bytes(body[HEADER_BYTES:-1]) + b"\x09")
    frames = frame(body) + frame(wrong, base_offset=2) + frame(body, base_offset=4)

    with pytest.raises(Corrupt, match="messages go on at offset 4") as raised:
        decoded(frames)

    assert raised.value.offset == 2


def test_a_header_that_promises_more_records_than_there_are_bytes_takes_no_memory() -> None:
    body = batch([Message(b"a")])
    body[57:61] = (2**31 - 1).to_bytes(4, "big")

    with pytest.raises(Corrupt, match="cannot hold 2147483647 records"):
        decode_values(frame(rewritten(body)))


def test_the_collector_is_as_it_was_before() -> None:
    decode_values(window([Stored([Message(b"v")])]))
    assert gc.isenabled()

    with pytest.raises(Corrupt):
        decode_values(b"no frame" * 20)
    assert gc.isenabled()


def test_the_schema_given_is_the_schema_of_the_rows() -> None:
    pair = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    schema = pa.schema(
        [
            pa.field("value", pa.binary()),
            pa.field("headers", pa.list_(pa.field("element", pair, nullable=False))),
            pa.field("offset", pa.int64(), nullable=False),
        ]
    )

    [rows] = decode(
        window([Stored([Message(b"v", headers=(("a", b"1"),))])]),
        columns=Columns(schema),
        offset_range=EVERYTHING,
        topic="orders",
        partition=0,
    ).batches

    assert rows.schema.equals(schema, check_metadata=True)
    assert str(rows.schema) == str(schema)
    rows.validate(full=True)
