"""The Spark codec by itself: CPU a record to decode frames into Arrow, and to encode rows into batches."""

import time
from collections.abc import Callable
from random import Random

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from bench.measured import Row, at_most, reported
from goqueue.records.frame import encode_frame
from goqueue.records.layout import MAGIC, Codec, patch, read_header
from goqueue.spark.codec.columns import COLUMN_TYPES, Columns
from goqueue.spark.codec.decode import decode
from goqueue.spark.codec.encode import Target, encode

RECORDS = 200_000
WINDOW_BYTES = 8 * 1024 * 1024
RUNS = 7
NOW_MS = 1_750_000_000_000
EVERYTHING = (0, 2**63 - 1)
COLUMNS = Columns.named([name for name in COLUMN_TYPES if name != "traceparent"])
WITHOUT_HEADERS = Columns.named([name for name in COLUMNS.schema.names if name != "headers"])
EQUAL, VARYING = (100, 100), (20, 180)


def decoding() -> list[Row]:
    """Keys of 16 bytes, one header, all columns; 1,000 records a batch but where another number is told."""
    detail = "200 k records, key of 16 bytes, one header, 1,000 records a batch, all columns"
    return [
        at_most("decode v2 → Arrow, values of 100 bytes", _decode_ns(EQUAL), "ns a record", 280, detail),
        at_most(
            "decode v2 → Arrow, values of 20 to 180 bytes", _decode_ns(VARYING), "ns a record", 700, detail
        ),
        reported("decode, 100 records a batch", _decode_ns(VARYING, batch_records=100), "ns a record"),
        reported("decode, without headers", _decode_ns(EQUAL, columns=WITHOUT_HEADERS), "ns a record"),
        reported("decode, zstd", _decode_ns(VARYING, codec=Codec.ZSTD), "ns a record"),
    ]


def encoding() -> list[Row]:
    """Rows with key, value and one header to 12 partitions by key, 50,000 rows at a time."""
    rows = _rows(50_000)
    return [
        reported(
            f"encode Arrow → v2, {codec.name.lower()}",
            _encode_ns(rows, Target("bench", 12, codec)),
            "ns a record",
        )
        for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD)
    ]


def _decode_ns(
    sizes: tuple[int, int],
    *,
    batch_records: int = 1_000,
    codec: Codec = Codec.NONE,
    columns: Columns = COLUMNS,
) -> float:
    windows = _windows(sizes, batch_records, codec)

    def run() -> None:
        for window in windows:
            decode(window, columns=columns, offset_range=EVERYTHING, topic="bench", partition=0)

    return _least_cpu_s(run) / RECORDS * 1e9


def _encode_ns(rows: pa.RecordBatch, target: Target) -> float:
    count: int = rows.num_rows
    return _least_cpu_s(lambda: encode(rows, target, now_ms=NOW_MS)) / count * 1e9


def _least_cpu_s(run: Callable[[], object]) -> float:
    """The least of several runs: what the work costs when nothing else disturbs it."""
    taken = []
    for _ in range(RUNS):
        began = time.process_time()
        run()
        taken.append(time.process_time() - began)
    return min(taken)


def _windows(sizes: tuple[int, int], batch_records: int, codec: Codec) -> list[bytes]:
    random = Random(1)
    noise = random.randbytes(4_096)
    windows, window = [], bytearray()
    for base_offset in range(0, RECORDS, batch_records):
        builder = DefaultRecordBatchBuilder(MAGIC, codec, 0, -1, -1, -1, 1 << 30)
        for index in range(batch_records):
            start = random.randrange(3_000)
            value = noise[start : start + random.randint(*sizes)]
            time_ms = NOW_MS + (base_offset + index) // 20
            builder.append(index, time_ms, value[:16], value, [("source", b"12345678")])
        body = memoryview(builder.build())
        patch(body, base_offset=base_offset, leader_epoch=1)
        window += encode_frame(read_header(body), body, base_offset=base_offset, lane=2) + body
        if len(window) >= WINDOW_BYTES:
            windows.append(bytes(window))
            window = bytearray()
    return [*windows, bytes(window)]


def _rows(count: int) -> pa.RecordBatch:
    random = Random(1)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([random.randbytes(16) for _ in range(count)]),
            "value": pa.array([random.randbytes(100) for _ in range(count)]),
            "headers": pa.array([[{"key": "source", "value": b"12345678"}]] * count, COLUMN_TYPES["headers"]),
        }
    )
