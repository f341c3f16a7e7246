"""Rules of the Spark codec that hold for all messages: it agrees with aiokafka, both ways."""

from random import Random

import mmh3
import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.model.errors import Corrupt
from goqueue.model.messages import Lane, Message
from goqueue.records.layout import HEADER_BYTES, Codec, check_batches
from goqueue.spark.codec.columns import COLUMN_TYPES, Columns
from goqueue.spark.codec.decode import decode
from goqueue.spark.codec.encode import EncodedBatch, Target, encode
from tests.unit.spark.framed import (
    ALL_COLUMNS,
    EVERYTHING,
    NOW_MS,
    Row,
    Stored,
    batch,
    decoded,
    frame,
    plain_rows,
    rewritten,
    rows_by_aiokafka,
    window,
)

HEADER_NAMES = st.sampled_from(["traceparent", "traceParent", "", "source"]) | st.text(max_size=12)
MESSAGES = st.builds(
    Message,
    value=st.none() | st.binary(max_size=300),
    key=st.none() | st.binary(max_size=70),
    headers=st.lists(st.tuples(HEADER_NAMES, st.none() | st.binary(max_size=80)), max_size=4).map(tuple),
    lane=st.just(Lane.NORMAL),
    partition=st.none(),
    timestamp_ms=st.integers(-1, 2**42),
    due_ms=st.none(),
)
BATCHES = st.builds(
    Stored,
    messages=st.lists(MESSAGES, min_size=1, max_size=12),
    lane=st.sampled_from(list(Lane)),
    codec=st.sampled_from(list(Codec)),
)
WINDOWS = st.lists(BATCHES, min_size=1, max_size=6)
PARTITIONS = 5


@given(WINDOWS, st.integers(0, 2**40))
def test_decoding_finds_what_aiokafka_finds(batches: list[Stored], base_offset: int) -> None:
    frames = window(batches, base_offset=base_offset)

    assert decoded(frames) == rows_by_aiokafka(batches, base_offset=base_offset)


@given(WINDOWS, st.integers(0, 40), st.integers(0, 40))
def test_only_the_offsets_asked_for_are_decoded(batches: list[Stored], first: int, count: int) -> None:
    rows = decoded(window(batches), offset_range=(first, first + count))

    assert rows == rows_by_aiokafka(batches)[first : first + count]


@given(WINDOWS, st.lists(st.sampled_from(list(COLUMN_TYPES)), unique=True, min_size=1))
def test_only_the_columns_asked_for_are_decoded(batches: list[Stored], names: list[str]) -> None:
    rows = decoded(window(batches), columns=Columns.named(names))

    assert rows == [{name: row[name] for name in names} for row in rows_by_aiokafka(batches)]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 200),
    st.integers(1, 40),
    st.sampled_from([(50, 50), (0, 300), (9_000, 9_000), (0, 20_000)]),
)
def test_every_walk_over_many_records_finds_them_all(
    seed: int, batch_count: int, records_max: int, sizes: tuple[int, int]
) -> None:
    """Equal and varying sizes, few batches and many: each of the walks has its turn, and so have mixtures."""
    random = Random(seed)
    noise = bytes(20_000)
    batches = [
        Stored([Message(noise[: random.randint(*sizes)]) for _ in range(random.randint(1, records_max))])
        for _ in range(min(batch_count, 4_000_000 // (records_max * sizes[1])) + 1)
    ]

    rows = decoded(window(batches), columns=Columns.named(["offset", "value"]))

    stored = [message.value for messages, _, _ in batches for message in messages]
    assert rows == [{"offset": offset, "value": value} for offset, value in enumerate(stored)]


@given(WINDOWS, st.data())
def test_a_window_cut_anywhere_goes_on_where_it_ended(batches: list[Stored], data: st.DataObject) -> None:
    frames = window(batches)
    size = data.draw(st.integers(0, len(frames)))

    first = decode(frames[:size], columns=ALL_COLUMNS, offset_range=EVERYTHING, topic="orders", partition=3)
    second = decoded(frames[first.consumed_bytes :], offset_range=(first.next_offset, EVERYTHING[1]))

    assert [row for rows in first.batches for row in plain_rows(rows)] + second == rows_by_aiokafka(batches)
    assert (first.wanted_bytes > 0) == (first.consumed_bytes < size)


@settings(max_examples=300)
@given(st.lists(MESSAGES, min_size=1, max_size=5), st.data())
def test_a_batch_built_wrongly_is_corrupt_and_never_worse(
    messages: list[Message], data: st.DataObject
) -> None:
    """A producer can put a right checksum over wrong bytes."""
    body = batch(messages)
    records = bytearray(body[HEADER_BYTES:])
    for position in data.draw(st.lists(st.integers(0, len(records) - 1), min_size=1, max_size=4)):
        records[position] = data.draw(st.integers(0, 255))
    wrong = rewritten(body, records=bytes(records))

    try:
        rows = decoded(frame(wrong, base_offset=7))
    except Corrupt as error:
        assert (error.topic, error.partition, error.offset) == ("orders", 3, 7)
    else:
        assert len(rows) <= len(messages)


@given(st.sampled_from(list(Codec)), st.binary(min_size=1, max_size=80), st.integers(1, 12))
def test_senseless_bytes_behind_a_header_are_corrupt(codec: Codec, garbage: bytes, count: int) -> None:
    body = rewritten(batch([Message(b"value")] * count), attributes=codec, records=garbage)

    try:
        decoded(frame(body))
    except Corrupt as error:
        assert error.offset == 0


@given(st.lists(st.tuples(MESSAGES, st.none() | st.integers(0, PARTITIONS - 1), st.sampled_from(Lane))))
def test_aiokafka_finds_what_was_encoded(rows: list[tuple[Message, int | None, Lane]]) -> None:
    for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD):
        batches = encode(outgoing(rows), Target("orders", PARTITIONS, codec, 2_000), now_ms=NOW_MS)

        assert found_by_aiokafka(batches) == expected(rows)


@given(st.lists(st.tuples(MESSAGES, st.none() | st.integers(0, PARTITIONS - 1), st.sampled_from(Lane))))
def test_what_is_encoded_is_decoded_as_it_was(rows: list[tuple[Message, int | None, Lane]]) -> None:
    names = ["key", "value", "headers", "priority", "timestamp"]
    batches = encode(outgoing(rows), Target("orders", PARTITIONS, Codec.ZSTD, 2_000), now_ms=NOW_MS)

    found: dict[tuple[int, Lane], list[Row]] = {}
    for partition, lane, _, body in batches:
        frames = frame(bytearray(body), lane=lane)
        found.setdefault((partition, lane), []).extend(decoded(frames, columns=Columns.named(names)))

    assert found == {
        (partition, lane): [{**as_row(message), "priority": int(lane)} for message in messages]
        for (partition, lane), messages in expected(rows).items()
    }


@given(st.lists(MESSAGES, min_size=1, max_size=30), st.integers(100, 3_000))
def test_no_batch_is_larger_than_asked_unless_one_message_is(
    messages: list[Message], batch_bytes: int
) -> None:
    rows: list[tuple[Message, int | None, Lane]] = [(message, 0, Lane.LOW) for message in messages]

    batches = encode(outgoing(rows), Target("orders", 1, batch_bytes=batch_bytes), now_ms=NOW_MS)

    assert all(len(made.body) <= batch_bytes or made.record_count == 1 for made in batches)
    headers = check_batches(memoryview(b"".join(made.body for made in batches)), max_batch_bytes=1 << 30)
    assert [header.record_count for header in headers] == [made.record_count for made in batches]


def outgoing(rows: list[tuple[Message, int | None, Lane]]) -> pa.RecordBatch:
    """Rows as Spark hands them to a sink."""
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array([message.value for message, _, _ in rows], pa.binary()),
            "key": pa.array([message.key for message, _, _ in rows], pa.binary()),
            "headers": pa.array([as_row(m)["headers"] for m, _, _ in rows], COLUMN_TYPES["headers"]),
            "partition": pa.array([partition for _, partition, _ in rows], pa.int32()),
            "priority": pa.array([int(lane) for _, _, lane in rows], pa.int32()),
            "timestamp": pa.array([m.timestamp_ms for m, _, _ in rows], pa.timestamp("ms", "UTC")),
        }
    )


def as_row(message: Message) -> Row:
    return {
        "key": message.key,
        "value": message.value,
        "headers": [{"key": name, "value": value} for name, value in message.headers],
        "timestamp": message.timestamp_ms,
    }


def expected(rows: list[tuple[Message, int | None, Lane]]) -> dict[tuple[int, Lane], list[Message]]:
    """What belongs into each lane of each partition, in order, by the naive rule."""
    routed: dict[tuple[int, Lane], list[Message]] = {}
    turn = 0
    for message, partition, lane in rows:
        if partition is None and message.key:
            partition = mmh3.hash(message.key, 0, signed=False) % PARTITIONS
        elif partition is None:
            partition, turn = turn % PARTITIONS, turn + 1
        routed.setdefault((partition, lane), []).append(message)
    return routed


def found_by_aiokafka(batches: list[EncodedBatch]) -> dict[tuple[int, Lane], list[Message]]:
    found: dict[tuple[int, Lane], list[Message]] = {}
    for partition, lane, record_count, body in batches:
        opened = DefaultRecordBatch(body)
        assert opened.validate_crc()
        records = list(opened)
        assert [record.offset for record in records] == list(range(record_count))
        assert opened.max_timestamp == max(record.timestamp for record in records)
        found.setdefault((partition, lane), []).extend(
            Message(r.value, r.key, tuple(r.headers), timestamp_ms=r.timestamp) for r in records
        )
    return found
