"""Messages as JSON Lines and CSV, and back.

Bytes that are UTF-8 are written as text; others in base64, in a field whose name says so (`value_base64`). A
row without a value of its own *is* the value: any file of JSON objects, or any table, can be imported.
A loop over messages is right here: text has a Python object for each of them anyway.
"""

import base64
import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

import msgspec
import pyarrow as pa

from goqueue.model.errors import Invalid
from goqueue.model.messages import Lane
from goqueue.spark.codec.columns import COLUMN_TYPES
from goqueue.spark.options.values import parse_time_ms

Row = dict[str, object]
_row_decoder = msgspec.json.Decoder(Row)
CSV_FIELDS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key",
    "key_base64",
    "value",
    "value_base64",
    "headers",
    "priority",
)
SINK_SCHEMA = pa.schema(
    [(name, COLUMN_TYPES[name]) for name in ("value", "key", "headers", "priority", "timestamp", "partition")]
)
_OWN_FIELDS = ("value", "value_base64")
_BASE64 = "_base64"
_US_PER_MS = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_json_lines(file: BinaryIO, batches: Iterable[pa.RecordBatch]) -> int:
    """One JSON object a message and line; how many."""
    encoder = msgspec.json.Encoder()
    count = 0
    for rows in batches:
        file.write(encoder.encode_lines([exported(row) for row in rows.to_pylist()]))
        count += rows.num_rows
    return count


def write_csv(file: BinaryIO, batches: Iterable[pa.RecordBatch]) -> int:
    """A heading and one line a message, headers as JSON; how many messages."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.DictWriter(text, CSV_FIELDS)
    writer.writeheader()
    count = 0
    for rows in batches:
        for row in rows.to_pylist():
            told = exported(row)
            told["headers"] = msgspec.json.encode(told["headers"]).decode()
            writer.writerow(told)
        count += rows.num_rows
    text.flush()
    text.detach()
    return count


def exported(row: Mapping[str, object]) -> Row:
    """A row of the source as text."""
    timestamp = row["timestamp"]
    assert isinstance(timestamp, datetime), "a message has a time"
    headers = row["headers"]
    assert isinstance(headers, list), "a message has a list of headers"
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "offset": row["offset"],
        "timestamp": timestamp.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **_text("key", row["key"]),
        **_text("value", row["value"]),
        "headers": [{"key": header["key"], **_text("value", header["value"])} for header in headers],
        "priority": row["priority"],
    }


def read_json_lines(lines: Iterable[bytes]) -> Iterator[Row]:
    """The objects of a file, one a line; empty lines are passed over."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _row_decoder.decode(line)
            except msgspec.MsgspecError as error:
                raise Invalid(f"line {number} is not a JSON object: {error}") from error


def read_csv(file: BinaryIO) -> Iterator[Row]:
    """The lines of a table under its heading; an empty field is none."""
    reader = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))
    for row in reader:
        if None in row:
            raise Invalid(f"line {reader.line_num} has more fields than the heading")
        plain: Row = {name: value for name, value in row.items() if value}
        headers = plain.get("headers")
        if isinstance(headers, str):
            plain["headers"] = msgspec.json.decode(headers)
        yield plain


def to_batches(
    rows: Iterable[Row], *, key_field: str, keep_partitions: bool, row_count: int = 10_000
) -> Iterator[pa.RecordBatch]:
    """Rows with the columns of the sink for topics."""
    taken: list[Row] = []
    for row in rows:
        taken.append(imported(row, key_field=key_field, keep_partitions=keep_partitions))
        if len(taken) == row_count:
            yield pa.RecordBatch.from_pylist(taken, SINK_SCHEMA)
            taken = []
    if taken:
        yield pa.RecordBatch.from_pylist(taken, SINK_SCHEMA)


def imported(row: Row, *, key_field: str, keep_partitions: bool) -> Row:
    """A message for the sink, from a row of a file."""
    if not any(name in row for name in _OWN_FIELDS) and "offset" not in row:
        return {"value": msgspec.json.encode(row, enc_hook=_plain), "key": _bytes(row, key_field or "key")}
    message: Row = {
        "value": _bytes(row, "value"),
        "key": _bytes(row, key_field or "key"),
        "headers": _headers(row.get("headers")),
        "priority": _priority(row.get("priority")),
        "timestamp": _time_us(row.get("timestamp")),
    }
    if keep_partitions and row.get("partition") is not None:
        message["partition"] = int(str(row["partition"]))
    return message


def _text(name: str, value: object) -> Row:
    if value is None:
        return {name: None}
    assert isinstance(value, bytes), "keys and values are bytes"
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name + _BASE64: base64.b64encode(value).decode()}


def _bytes(row: Mapping[str, object], name: str) -> bytes | None:
    coded = row.get(name + _BASE64)
    if isinstance(coded, str):
        try:
            return base64.b64decode(coded, validate=True)
        except ValueError as error:
            raise Invalid(f"{name}{_BASE64} is not base64: {coded[:40]!r}") from error
    value = row.get(name)
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value, enc_hook=_plain)


def _headers(value: object) -> list[Row]:
    if value is None:
        return []
    if isinstance(value, dict):
        return [{"key": str(name), "value": _bytes(value, name)} for name in value]
    if not isinstance(value, Sequence) or not all(isinstance(each, dict) and "key" in each for each in value):
        raise Invalid(f"headers are an object, or a list of objects with key and value, not {value!r}")
    return [{"key": str(each["key"]), "value": _bytes(each, "value")} for each in value]


def _priority(value: object) -> int | None:
    if value is None:
        return None
    text = str(value)
    if text.isdigit() and int(text) < len(Lane):
        return int(text)
    if text.upper() in Lane.__members__:
        return int(Lane[text.upper()])
    raise Invalid(f"priority is 0 to {len(Lane) - 1} or the name of a lane, not {value!r}")


def _time_us(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        # A time without a zone is taken for UTC, as Spark's session has it.
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    return parse_time_ms(str(value)) * _US_PER_MS


def _plain(value: object) -> object:
    """What JSON has no word for, in a table of somebody else's."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
