"""Windows of frames for the codec's tests, and the rows that aiokafka's decoder finds in them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from crc32c import crc32c

from goqueue.model.messages import Lane, Message
from goqueue.records.frame import encode_frame
from goqueue.records.layout import CRC_END, HEADER_BYTES, MAGIC, Codec, patch, read_header
from goqueue.spark.codec.columns import COLUMN_TYPES, Columns
from goqueue.spark.codec.decode import decode

NOW_MS = 1_750_000_000_000
EVERYTHING = (0, 2**63 - 1)
ALL_COLUMNS = Columns.named(list(COLUMN_TYPES))
Row = dict[str, object]


class Stored(NamedTuple):
    """A batch as it is to lie in the log."""

    messages: Sequence[Message]
    lane: Lane = Lane.NORMAL
    codec: Codec = Codec.NONE


def batch(messages: Iterable[Message], *, codec: Codec = Codec.NONE) -> bytearray:
    """A batch as a Kafka producer builds it."""
    builder = DefaultRecordBatchBuilder(MAGIC, codec, 0, -1, -1, -1, 1 << 30)
    for index, message in enumerate(messages):
        time_ms = NOW_MS if message.timestamp_ms is None else message.timestamp_ms
        builder.append(index, time_ms, message.key, message.value, list(message.headers))
    return bytearray(builder.build())


def rewritten(body: bytearray, *, attributes: int | None = None, records: bytes | None = None) -> bytearray:
    """The batch with other attributes or other bytes behind its header, its checksum right again."""
    changed = bytearray(body if records is None else bytes(body[:HEADER_BYTES]) + records)
    changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    if attributes is not None:
        changed[21:23] = attributes.to_bytes(2, "big")
    changed[17:21] = crc32c(changed[CRC_END:]).to_bytes(4, "big")
    return changed


def frame(body: bytearray, *, base_offset: int = 0, lane: Lane = Lane.NORMAL) -> bytes:
    """The batch as it lies in the log at an offset."""
    view = memoryview(bytearray(body))
    patch(view, base_offset=base_offset, leader_epoch=1)
    return encode_frame(read_header(view), view, base_offset=base_offset, lane=lane) + bytes(view)


def window(batches: Iterable[Stored], *, base_offset: int = 0) -> bytes:
    """Frames one behind the other, offsets without a gap."""
    frames = []
    for messages, lane, codec in batches:
        frames.append(frame(batch(messages, codec=codec), base_offset=base_offset, lane=lane))
        base_offset += len(messages)
    return b"".join(frames)


def decoded(
    frames: bytes, *, columns: Columns = ALL_COLUMNS, offset_range: tuple[int, int] = EVERYTHING
) -> list[Row]:
    """The rows that our decoder finds, as plain values; times in ms."""
    found = decode(frames, columns=columns, offset_range=offset_range, topic="orders", partition=3)
    rows: list[Row] = []
    for rows_batch in found.batches:
        rows_batch.validate(full=True)
        assert rows_batch.schema.equals(columns.schema, check_metadata=True)
        rows += plain_rows(rows_batch)
    return rows


def plain_rows(rows: pa.RecordBatch) -> list[Row]:
    if "timestamp" in rows.schema.names:
        times_ms = pa.array([us // 1000 for us in rows.column("timestamp").cast(pa.int64()).to_pylist()])
        rows = rows.set_column(rows.schema.get_field_index("timestamp"), "timestamp", times_ms)
    plain: list[Row] = rows.to_pylist()
    return plain


def rows_by_aiokafka(batches: Iterable[Stored], *, base_offset: int = 0) -> list[Row]:
    """The rows that aiokafka's decoder finds in the same batches."""
    rows: list[Row] = []
    for messages, lane, codec in batches:
        body = batch(messages, codec=codec)
        patch(memoryview(body), base_offset=base_offset, leader_epoch=1)
        base_offset += len(messages)
        for record in DefaultRecordBatch(bytes(body)):
            traces = [value for name, value in record.headers if name == "traceparent"]
            rows.append(
                {
                    "topic": "orders",
                    "partition": 3,
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "key": record.key,
                    "value": record.value,
                    "headers": [{"key": name, "value": value} for name, value in record.headers],
                    "priority": int(lane),
                    "traceparent": None
                    if not traces or traces[-1] is None
                    else traces[-1].decode(errors="replace"),
                }
            )
    return rows
