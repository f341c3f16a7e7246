"""A Kafka client without comfort: one socket, any version, any bytes."""

import io
import itertools
import socket
import ssl
import struct
import time
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

PATIENCE_S = 20
CLIENT_ID = "raw"
UNBOUNDED = 1 << 30
RECENT_MS = int(time.time() * 1_000) - 60_000
"""A time that retention has no reason to look at."""


class RawClient:
    """Requests are objects with the fields of all versions; each version takes those it knows."""

    def __init__(
        self, port: int, *, receive_buffer_bytes: int | None = None, over: ssl.SSLSocket | None = None
    ) -> None:
        """`over`: a connection that is made already."""
        self._correlation_ids = itertools.count(1)
        if over is not None:
            self.socket: socket.socket = over
            return
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(("127.0.0.1", port))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def ask(self, api_key: int, version: int, **fields: object) -> Any:
        """Send a request and wait for its reply."""
        self.send(api_key, version, **fields)
        return self.receive(api_key, version)

    def send(self, api_key: int, version: int, **fields: object) -> int:
        correlation_id = next(self._correlation_ids)
        self.send_frame(encode_request(api_key, version, correlation_id, **fields))
        return correlation_id

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, api_key: int, version: int) -> Any:
        """The next reply, which must be one to this kind of request."""
        _, reply = self.receive_with_id(api_key, version)
        return reply

    def receive_with_id(self, api_key: int, version: int) -> tuple[int, Any]:
        frame = self.receive_frame()
        schema = load_response_schema(api_key, version)
        header, header_size = entity_reader(schema.__header_schema__)(frame, 0)
        body, size = entity_reader(schema)(frame, header_size)
        assert header_size + size == len(frame), "the reply has bytes that its schema does not know"
        return header.correlation_id, body

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed(self) -> bool:
        """Whether the broker closed this connection, waiting for that."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            chunk = self.socket.recv(size - len(received))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            received += chunk
        return bytes(received)


def encode_request(api_key: int, version: int, correlation_id: int, **fields: object) -> bytes:
    schema = load_request_schema(api_key, version)
    buffer = io.BytesIO()
    header = SimpleNamespace(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=CLIENT_ID,
    )
    write_header: Any = entity_writer(schema.__header_schema__)
    write_header(buffer, header)
    write_body: Any = entity_writer(schema)
    write_body(buffer, SimpleNamespace(**fields))
    return buffer.getvalue()


def record_batch(
    *values: bytes,
    codec: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    timestamp_ms: int = RECENT_MS,
    headers: list[tuple[str, bytes]] | None = None,
    is_transactional: bool = False,
) -> bytes:
    """A batch as a producer builds it; each record is a millisecond later than the one before."""
    builder = DefaultRecordBatchBuilder(
        2, codec, int(is_transactional), producer_id, producer_epoch, base_sequence, UNBOUNDED
    )
    for index, value in enumerate(values):
        builder.append(index, timestamp_ms + index, b"key", value, headers or [])
    return bytes(builder.build())
