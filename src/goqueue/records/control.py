"""Control batches: the markers behind a transaction's messages, one in each partition it has written to.

A marker is a batch of one record, written by the broker alone. Its key says whether the transaction was
committed or aborted; its value has the epoch of the coordinator that wrote it. Readers never see it as
a message.
"""

from struct import Struct

from goqueue.model.transactions import Marker
from goqueue.records.layout import (
    ATTRIBUTES_POSITION,
    CONTROL,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    NO_SEQUENCE,
    TRANSACTIONAL,
    seal,
)

_RECORD = Struct(">bbbbbhhbhib")
"""Size, attributes, deltas of time and offset, key (version and type), value (version and epoch), headers.

All sizes are the same in every marker and small enough for a byte, doubled as in a signed varint.
"""
_KEY_BYTES = 4
_VALUE_BYTES = 6
_VERSION = 0
_TYPE_POSITION = HEADER_BYTES + 8
MARKER_BYTES = HEADER_BYTES + _RECORD.size


def encode_marker(
    marker: Marker, *, producer_id: int, producer_epoch: int, coordinator_epoch: int, timestamp_ms: int
) -> memoryview:
    """A control batch, ready to be appended."""
    record = _RECORD.pack(
        2 * (_RECORD.size - 1), 0, 0, 0,
        2 * _KEY_BYTES, _VERSION, marker,
        2 * _VALUE_BYTES, _VERSION, coordinator_epoch, 0,
    )  # fmt: skip
    body = bytearray(MARKER_BYTES)
    HEADER.pack_into(
        body, 0, 0, MARKER_BYTES - LENGTH_END, 0, MAGIC, 0, TRANSACTIONAL | CONTROL, 0,
        timestamp_ms, timestamp_ms, producer_id, producer_epoch, NO_SEQUENCE, 1,
    )  # fmt: skip
    body[HEADER_BYTES:] = record
    marked = memoryview(body)
    seal(marked)
    return marked


def marker_of(body: memoryview) -> Marker:
    """How a stored control batch says that its transaction ended."""
    return Marker(int.from_bytes(body[_TYPE_POSITION - 1 : _TYPE_POSITION + 1], "big"))


def is_control(body: memoryview) -> bool:
    """Whether a batch is a marker, and holds no messages."""
    return bool(body[ATTRIBUTES_POSITION] & CONTROL)


def is_transactional(body: memoryview) -> bool:
    """Whether a batch is part of a transaction, or a marker."""
    return bool(body[ATTRIBUTES_POSITION] & TRANSACTIONAL)
