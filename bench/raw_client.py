"""A Kafka client with next to no cost of its own: requests packed once, replies thrown away.

It measures the broker where a real client would be the slower side.
"""

import socket
import ssl
import time
from collections.abc import Callable, Sequence
from struct import Struct

from goqueue.model.messages import Message
from goqueue.records.batch import encode

_SIZE = Struct(">i")
_PRODUCED = Struct(">ihqq")
"""Of each partition its number, an error, where its batch begins, and when it was stored."""
PRODUCE, FETCH = 0, 1
IN_FLIGHT = 5
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


class RawClient:
    def __init__(self, address: str, *, trust: ssl.SSLContext | None = None) -> None:
        self._socket = connected(address, trust)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 26)

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def log_in(self, name: str, password: str) -> None:
        """By PLAIN."""
        words = f"\0{name}\0{password}".encode()
        for api, body in (
            (SASL_HANDSHAKE, _text("PLAIN")),
            (SASL_AUTHENTICATE, _SIZE.pack(len(words)) + words),
        ):
            self.send(request(api, 1, body))
            if any(self.receive()[4:6]):
                raise RuntimeError(f"{name} was not let in")

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def receive(self) -> memoryview:
        """The next reply, without its size; valid until the next call."""
        view = memoryview(self._buffer)
        self._fill(view[:4])
        (size,) = _SIZE.unpack_from(view)
        self._fill(view[:size])
        return view[:size]

    def _fill(self, view: memoryview) -> None:
        while view:
            count = self._socket.recv_into(view)
            if not count:
                raise ConnectionError("the broker closed the connection")
            view = view[count:]


def connected(address: str, trust: ssl.SSLContext | None) -> socket.socket:
    """A connection, over TLS where there is somebody to trust."""
    host, port = address.rsplit(":", 1)
    plain = socket.create_connection((host, int(port)))
    return plain if trust is None else trust.wrap_socket(plain, server_hostname=host)


def keep_busy(client: RawClient, request: Callable[[int], bytes], count: int) -> None:
    """Send so many requests, a few at a time, and wait for all replies."""
    for n in range(count):
        client.send(request(n))
        if n >= IN_FLIGHT:
            client.receive()
    for _ in range(IN_FLIGHT):
        client.receive()


def batch_of(count: int, value: bytes) -> bytes:
    """One record batch, as a producer would build it."""
    [(body, _)] = encode([Message(value) for _ in range(count)], now_ms=int(time.time() * 1000))
    return bytes(body)


def produce_request(topic: str, partition: int, batch: bytes, *, acks: int) -> bytes:
    """Produce v3."""
    return produce_request_to_many(topic, [partition], batch, acks=acks)


def produce_request_to_many(topic: str, partitions: Sequence[int], batch: bytes, *, acks: int) -> bytes:
    """The same batch to each partition."""
    shares = [_SIZE.pack(number) + _SIZE.pack(len(batch)) + batch for number in partitions]
    return request(
        PRODUCE,
        3,
        b"\xff\xff"
        + acks.to_bytes(2, "big", signed=True)
        + _SIZE.pack(30_000)
        + _SIZE.pack(1)
        + _text(topic)
        + _SIZE.pack(len(partitions))
        + b"".join(shares),
    )


def fetch_request(topic: str, partition: int, offset: int, *, max_bytes: int) -> bytes:
    """Fetch v4, without waiting."""
    return fetch_request_of_many(topic, [partition], offset, max_bytes=max_bytes)


def fetch_request_of_many(topic: str, partitions: Sequence[int], offset: int, *, max_bytes: int) -> bytes:
    """The same of each partition."""
    shares = [_SIZE.pack(number) + offset.to_bytes(8, "big") + _SIZE.pack(max_bytes) for number in partitions]
    return request(
        FETCH,
        4,
        _SIZE.pack(-1)
        + _SIZE.pack(0)
        + _SIZE.pack(0)
        + _SIZE.pack(max_bytes)
        + b"\0"
        + _SIZE.pack(1)
        + _text(topic)
        + _SIZE.pack(len(partitions))
        + b"".join(shares),
    )


def fetched_records(reply: memoryview, topic: str) -> memoryview:
    """The record bytes of a Fetch v4 reply for one partition."""
    # Before the error: correlation id, throttle time, topic count, topic, partition count, partition.
    position = 4 + 4 + 4 + 2 + len(topic) + 4 + 4
    error = int.from_bytes(reply[position : position + 2], "big", signed=True)
    if error:
        raise RuntimeError(f"fetch failed with code {error}")
    position += 2 + 8 + 8
    aborted = int.from_bytes(reply[position : position + 4], "big", signed=True)
    position += 4 + max(aborted, 0) * 16
    return reply[position + 4 :]


def stored_partitions(reply: memoryview, topic: str) -> set[int]:
    """Of a Produce v3 reply for one topic, the partitions in which the batch was stored."""
    position = 4 + 4 + 2 + len(topic)
    (count,) = _SIZE.unpack_from(reply, position)
    rows = (_PRODUCED.unpack_from(reply, position + 4 + row * _PRODUCED.size) for row in range(count))
    return {partition for partition, error, _, _ in rows if not error}


def request(api: int, version: int, body: bytes) -> bytes:
    """A request with its size and head, of a version that is not flexible."""
    head = api.to_bytes(2, "big") + version.to_bytes(2, "big") + _SIZE.pack(1) + _text("bench")
    return _SIZE.pack(len(head) + len(body)) + head + body


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()
