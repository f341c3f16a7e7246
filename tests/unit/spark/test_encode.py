"""encode: rows of Arrow into record batches, corner by corner."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from goqueue.model.errors import Invalid, InvalidRecord, PartitionNotFound
from goqueue.model.messages import Lane
from goqueue.records.layout import Codec, check_batches
from goqueue.spark.codec.encode import EncodedBatch, Target, encode
from tests.unit.spark.framed import NOW_MS

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ONE_PARTITION = Target("orders", 1)


def rows(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def values_in(batches: list[EncodedBatch]) -> dict[tuple[int, Lane], list[bytes | None]]:
    found: dict[tuple[int, Lane], list[bytes | None]] = {}
    for made in batches:
        found.setdefault((made.partition, made.lane), []).extend(
            r.value for r in DefaultRecordBatch(made.body)
        )
    return found


def test_a_batch_is_fit_for_the_door() -> None:
    [made] = encode(rows(value=pa.array([b"a", b"b"])), ONE_PARTITION, now_ms=NOW_MS)

    [header] = check_batches(memoryview(made.body), max_batch_bytes=1 << 20)
    assert (made.partition, made.lane, made.record_count) == (0, Lane.NORMAL, 2)
    assert (header.base_offset, header.producer_id, header.producer_epoch, header.base_sequence) == (
        0,
        -1,
        -1,
        -1,
    )
    assert (header.first_timestamp_ms, header.max_timestamp_ms, header.record_count) == (NOW_MS, NOW_MS, 2)


def test_no_rows_make_no_batch() -> None:
    assert encode(rows(value=pa.array([], pa.binary())), ONE_PARTITION, now_ms=NOW_MS) == []


def test_keys_go_to_their_partitions_as_at_every_door() -> None:
    """The vectors of the contract: a 1009084850, ab 2613040991, abc 3017643002, hello 613153351."""
    keys = ["a", "ab", "abc", "hello"]
    batches = encode(
        rows(value=pa.array([key.encode() for key in keys]), key=pa.array(keys)),
        Target("orders", 1_000_003),
        now_ms=NOW_MS,
    )

    hashes = {b"a": 1009084850, b"ab": 2613040991, b"abc": 3017643002, b"hello": 613153351}
    assert values_in(batches) == {(number % 1_000_003, Lane.NORMAL): [key] for key, number in hashes.items()}


def test_rows_without_a_key_take_turns_and_an_empty_key_is_none() -> None:
    table = rows(value=pa.array([b"0", b"1", b"2", b"3"]), key=pa.array([None, b"", None, b""], pa.binary()))

    batches = encode(table, Target("orders", 3), now_ms=NOW_MS, first_turn=2)

    assert values_in(batches) == {
        (0, Lane.NORMAL): [b"1"],
        (1, Lane.NORMAL): [b"2"],
        (2, Lane.NORMAL): [b"0", b"3"],
    }


def test_a_partition_named_comes_before_the_key() -> None:
    table = rows(
        value=pa.array([b"x", b"y"]), key=pa.array([b"a", b"a"]), partition=pa.array([0, None], pa.int32())
    )

    batches = encode(table, Target("orders", 3), now_ms=NOW_MS)

    assert values_in(batches) == {(0, Lane.NORMAL): [b"x"], (1009084850 % 3, Lane.NORMAL): [b"y"]}


@pytest.mark.parametrize("partition", [-1, 3])
def test_a_partition_that_is_not_there_is_named(partition: int) -> None:
    table = rows(value=pa.array([b"x", b"y"]), partition=pa.array([0, partition], pa.int64()))

    with pytest.raises(PartitionNotFound, match=f"topic orders has no partition {partition}"):
        encode(table, Target("orders", 3), now_ms=NOW_MS)


@pytest.mark.parametrize(
    "priority",
    [
        pa.array([0, None, 4, 0], pa.int32()),
        pa.array([0, None, 4, 0], pa.int8()),
        pa.array(["critical", None, "BACKGROUND", "Critical"]),
    ],
)
def test_lanes_get_batches_of_their_own_in_order(priority: pa.Array) -> None:
    batches = encode(
        rows(value=pa.array([b"a", b"b", b"c", b"d"]), priority=priority), ONE_PARTITION, now_ms=NOW_MS
    )

    assert values_in(batches) == {
        (0, Lane.CRITICAL): [b"a", b"d"],
        (0, Lane.NORMAL): [b"b"],
        (0, Lane.BACKGROUND): [b"c"],
    }


@pytest.mark.parametrize("priority", [pa.array([2, 5]), pa.array([2, -1]), pa.array(["low", "urgent"])])
def test_an_unknown_lane_names_its_row(priority: pa.Array) -> None:
    with pytest.raises(InvalidRecord, match="is none of critical, high") as raised:
        encode(rows(value=pa.array([b"a", b"b"]), priority=priority), ONE_PARTITION, now_ms=NOW_MS)

    assert raised.value.record_index == 1


def test_headers_keep_their_order_repeats_and_nulls() -> None:
    headers = [
        [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        None,
        [],
        [{"key": "é", "value": b""}],
    ]
    table = rows(value=pa.array([b"v"] * 4), headers=pa.array(headers, HEADERS))

    [made] = encode(table, ONE_PARTITION, now_ms=NOW_MS)

    assert [record.headers for record in DefaultRecordBatch(made.body)] == [
        [("a", b"1"), ("a", None)],
        [],
        [],
        [("é", b"")],
    ]


def test_a_header_without_a_name_is_refused() -> None:
    table = rows(value=pa.array([b"v"]), headers=pa.array([[{"key": None, "value": b"1"}]], HEADERS))

    with pytest.raises(InvalidRecord, match="a header has no name"):
        encode(table, ONE_PARTITION, now_ms=NOW_MS)


def test_a_slice_of_rows_is_only_that_slice() -> None:
    table = rows(
        value=pa.array([b"%d" % n if n % 3 else None for n in range(20)]),
        key=pa.array([None if n % 2 else b"k%d" % n for n in range(20)]),
        headers=pa.array([[{"key": f"h{n}", "value": b"%d" % n}] * (n % 4) for n in range(20)], HEADERS),
    )

    [made] = encode(table.slice(7, 9), ONE_PARTITION, now_ms=NOW_MS)

    records = list(DefaultRecordBatch(made.body))
    assert [r.value for r in records] == [b"%d" % n if n % 3 else None for n in range(7, 16)]
    assert [r.key for r in records] == [None if n % 2 else b"k%d" % n for n in range(7, 16)]
    assert [r.headers for r in records] == [[(f"h{n}", b"%d" % n)] * (n % 4) for n in range(7, 16)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_a_timestamp_is_kept_and_a_missing_one_is_now(unit: str, zone: str | None) -> None:
    time = datetime(2025, 6, 15, 12, 0, 1, tzinfo=UTC)
    times = pa.array([time, None], pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone))

    [made] = encode(rows(value=pa.array([b"a", b"b"]), timestamp=times), ONE_PARTITION, now_ms=NOW_MS)

    assert [record.timestamp for record in DefaultRecordBatch(made.body)] == [
        int(time.timestamp() * 1000),
        NOW_MS,
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary()])
def test_text_and_large_types_are_taken_for_bytes(kind: pa.DataType) -> None:
    table = rows(value=pa.array(["väl", None], pa.string()).cast(kind), key=pa.array(["k", "k"]).cast(kind))

    [made] = encode(table, ONE_PARTITION, now_ms=NOW_MS)

    assert [(r.key, r.value) for r in DefaultRecordBatch(made.body)] == [(b"k", "väl".encode()), (b"k", None)]


def test_a_large_message_has_a_batch_to_itself() -> None:
    values = [b"small", b"x" * 3_000_000, b"small"]

    batches = encode(rows(value=pa.array(values)), ONE_PARTITION, now_ms=NOW_MS)

    assert [made.record_count for made in batches] == [1, 1, 1]
    assert values_in(batches) == {(0, Lane.NORMAL): values}


def test_rows_too_large_to_be_joined_at_once_are_encoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.spark.codec.encode._ROWS_BYTES_MAX", 1_000)
    values = [b"%d" % n * 50 for n in range(100)]

    batches = encode(rows(value=pa.array(values)), ONE_PARTITION, now_ms=NOW_MS)

    assert len(batches) > 10
    assert values_in(batches) == {(0, Lane.NORMAL): values}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4, Codec.ZSTD])
def test_batches_are_compressed_as_asked(codec: Codec) -> None:
    values = [b"value " * 50] * 1_000

    [made] = encode(rows(value=pa.array(values)), Target("orders", 1, codec), now_ms=NOW_MS)

    assert check_batches(memoryview(made.body), max_batch_bytes=1 << 20)[0].codec == codec
    assert (len(made.body) < 50_000) == (codec != Codec.NONE)
    assert values_in([made]) == {(0, Lane.NORMAL): values}


def test_other_codecs_are_refused() -> None:
    with pytest.raises(Invalid, match="none, lz4, zstd, not gzip"):
        encode(rows(value=pa.array([b"a"])), Target("orders", 1, Codec.GZIP), now_ms=NOW_MS)


def test_rows_need_a_value_and_nothing_unknown() -> None:
    with pytest.raises(Invalid, match="need a column value"):
        encode(rows(key=pa.array([b"a"])), ONE_PARTITION, now_ms=NOW_MS)
    with pytest.raises(Invalid, match="offset: a topic takes the columns value, key"):
        encode(rows(value=pa.array([b"a"]), offset=pa.array([1])), ONE_PARTITION, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("value", pa.array([1])),
        ("key", pa.array([1.5])),
        ("partition", pa.array(["first"])),
        ("priority", pa.array([1.5])),
        ("timestamp", pa.array([[1]])),
        ("headers", pa.array(["a"])),
    ],
)
def test_a_column_of_another_type_is_named(name: str, column: pa.Array) -> None:
    with pytest.raises(Invalid, match=f"column {name} must be"):
        encode(rows(**{"value": pa.array([b"v"]), name: column}), ONE_PARTITION, now_ms=NOW_MS)
