"""The HTTP door: CPU a message in large requests, requests a CPU-second in small ones."""

import json
import ssl

from bench.kafka_rows import create_topic
from bench.measured import Row, at_least, at_most, measuring
from bench.raw_client import connected
from tests.integration.running_broker import RunningBroker

CONNECTIONS = 16


class KeepAlive:
    """A connection that sends the same prepared request again and again."""

    def __init__(
        self, address: str, path: str, body: bytes, *, key: str = "", trust: ssl.SSLContext | None = None
    ) -> None:
        host = address.removeprefix("http://")
        self._socket = connected(host, trust)
        shown = f"X-API-Key: {key}\r\n" if key else ""
        self._request = (
            f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{shown}"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body

    def send(self) -> None:
        self._socket.sendall(self._request)

    def receive(self) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self._more()
        return body

    def close(self) -> None:
        self._socket.close()

    def _more(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the broker closed the connection")
        return data


def batch_cpu(broker: RunningBroker, *, requests: int = 300) -> Row:
    """1,000 messages of 100 bytes a request, with keys, acks as by default."""
    create_topic(broker, "http-batch", 3)
    body = json.dumps({"messages": [{"key": f"key-{n}", "value": "x" * 100} for n in range(1000)]}).encode()
    connection = KeepAlive(broker.http, "/topics/http-batch/messages", body)
    _once(connection)
    with measuring(broker) as spent:
        for _ in range(requests):
            _once(connection)
    connection.close()
    return at_most(
        "HTTP publish, 1,000 messages of 100 B a request, acks=all: broker CPU a message",
        spent.cpu_s / requests / 1000 * 1e6,
        "µs",
        2.5,
        f"{requests * 1000 / spent.wall_s:,.0f} messages/s on one connection",
    )


def single_rate(broker: RunningBroker, *, rounds: int = 1500) -> Row:
    """One message a request on a few kept-alive connections, acks as by default."""
    create_topic(broker, "http-single", 3)
    body = json.dumps({"messages": [{"value": "x" * 100}]}).encode()
    connections = [KeepAlive(broker.http, "/topics/http-single/messages", body) for _ in range(CONNECTIONS)]
    for connection in connections:
        _once(connection)
    with measuring(broker) as spent:
        for _ in range(rounds):
            for connection in connections:
                connection.send()
            for connection in connections:
                connection.receive()
    for connection in connections:
        connection.close()
    count = rounds * CONNECTIONS
    return at_least(
        f"HTTP publish, 1 message a request, {CONNECTIONS} connections, acks=all: requests a CPU-second",
        count / spent.cpu_s,
        "requests",
        6_000,
        f"{count / spent.wall_s:,.0f} requests/s",
    )


def _once(connection: KeepAlive) -> None:
    connection.send()
    connection.receive()
