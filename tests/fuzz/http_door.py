"""Attacks on the HTTP door: every operation, whole and damaged, alone and in rows, and what is no HTTP."""

import json
import random
import re
import socket
from contextlib import suppress
from typing import Any
from urllib.request import urlopen

from tests.fuzz.frame import Failed
from tests.fuzz.http_requests import Maker, Stock
from tests.integration.running_broker import RunningBroker

PATIENCE_S = 20.0
SHORT_PATIENCE_S = 0.03
"""Where an answer may rightly take long, or not come."""
TOPIC = "neighbour"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "get", "X")
_MALFORMED = (
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET http://evil.example/topics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /topics\r\n\r\n",
    b"GET //topics///x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /%zz%00%ff?%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /topics HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
    b"GET /topics HTTP/1.1\r\nbad header\r\n\r\n",
    b"GET /topics HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n",
    b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /topics HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /topics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    b"POST /topics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\n{}   \r\n0\r\nX-T: y\r\n\r\n",
    b"POST /topics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"\r\n\r\n\r\nGET /health HTTP/1.0\r\n\r\n",
    b"A" * 100_000,
)
_LEARNT = re.compile(
    rb'"(member_id|receipt_handle|transaction_id|producer_id|epoch|generation|backup_id|offset|id|trace_id)":'
    rb'("[^"\\]{1,200}"|\d{1,15})'
)
_HEAD_END = b"\r\n\r\n"


class HttpDoor:
    def __init__(self, broker: RunningBroker) -> None:
        self._address = (
            broker.http.removeprefix("http://").split(":")[0],
            int(broker.http.rpartition(":")[2]),
        )
        self._base = broker.http
        self._stock = Stock()
        with urlopen(f"{self._base}/openapi.json", timeout=PATIENCE_S) as reply:
            self._document = json.load(reply)
        self._rows = [
            (method.upper(), path, operation)
            for path, item in self._document["paths"].items()
            for method, operation in item.items()
        ]
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._sent = 0
        self._ask("POST", "/topics", {"name": TOPIC, "num_partitions": 1})

    def attack(self, chance: random.Random) -> str:
        if self._socket is None or chance.random() < 0.1:
            self._connect()
        if chance.random() < 0.05:
            raw = chance.choice(_MALFORMED)
            self._send(chance, raw, [])
            self._await([None])
            self._hang_up()
            return repr(raw[:100])
        requests, what, methods = [], [], []
        for _ in range(chance.choice((1, 1, 1, 1, 2, 5))):
            request, told, method = self._request(chance)
            requests.append(request)
            what.append(told)
            methods.append(method)
        self._send(chance, b"".join(requests), what)
        self._await(methods)
        return ", ".join(what)

    def probe(self) -> None:
        with urlopen(f"{self._base}/health", timeout=PATIENCE_S) as reply:
            if json.load(reply).get("status") is None:
                raise Failed("a probe was answered wrongly")

    def work(self) -> None:
        """Publish a few numbered messages and read them back."""
        values = [f"{number}" for number in range(self._sent, self._sent + 3)]
        messages = {"messages": [{"value": value} for value in values]}
        results = self._ask("POST", f"/topics/{TOPIC}/messages", messages)["results"]
        if [result["offset"] for result in results] != list(range(self._sent, self._sent + 3)):
            raise Failed(f"the neighbour's messages went to {results}, not {self._sent}")
        read = self._ask("GET", f"/topics/{TOPIC}/partitions/0/messages?offset={self._sent}")
        if [message["value"] for message in read["messages"]] != values:
            raise Failed("the neighbour does not get its messages back")
        self._sent += 3

    def close(self) -> None:
        self._hang_up()

    def _request(self, chance: random.Random) -> tuple[bytes, str, str | None]:
        method, path, operation = chance.choice(self._rows)
        lies = chance.choice((0.0, 0.0, 0.05, 0.2))
        maker = Maker(chance, self._stock, self._document, lies)
        target, body = maker.target(path, operation), maker.body(operation)
        is_odd = chance.random() < lies
        if is_odd:
            method = chance.choice(_METHODS)
        headers = [("Host", "localhost"), *maker.headers()]
        framed = b"" if body is None else body
        if body is not None and chance.random() < 0.15:
            headers.append(("Transfer-Encoding", "chunked"))
            framed = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        elif body is not None:
            headers.append(("Content-Length", str(len(body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers)
        request = f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1", "replace") + framed
        may_wait = any(word in target for word in ("wait", "timeout", "/poll")) or b"wait" in framed
        has_odd_headers = len(headers) > 2
        told = f"{method} {target[:200]} {framed[:200]!r}"
        return request, told, None if is_odd or may_wait or has_odd_headers else method

    def _send(self, chance: random.Random, data: bytes, what: list[str]) -> None:
        assert self._socket is not None
        kind = chance.random()
        with suppress(ConnectionError):
            if kind < 0.06:
                what.append("cut off")
                self._socket.sendall(data[: chance.randrange(len(data))])
                if chance.random() < 0.5:
                    self._socket.shutdown(socket.SHUT_WR)
                self._hang_up()
            elif kind < 0.12:
                what.append("in pieces")
                step = max(len(data) // 7, 1)
                for at in range(0, len(data), step):
                    self._socket.sendall(data[at : at + step])
            elif kind < 0.15:
                what.append("not waited for")
                self._socket.sendall(data)
                self._hang_up()
            else:
                self._socket.sendall(data)

    def _await(self, methods: list[str | None]) -> None:
        """Each request is answered, and never with 500, or the connection ends."""
        if self._socket is None:
            return
        is_certain = None not in methods
        self._socket.settimeout(PATIENCE_S if is_certain else SHORT_PATIENCE_S)
        try:
            for method in methods:
                self._reply(method or "GET")
        except TimeoutError:
            self._hang_up()
            if is_certain:
                raise Failed("neither answered nor closed") from None
        except (ConnectionError, ValueError):
            self._hang_up()

    def _reply(self, method: str) -> None:
        head = self._until(_HEAD_END)
        status = int(head[9:12])
        if status == 500:
            raise Failed(f"answered with {bytes(head)!r} {bytes(self._received[:500])!r}")
        if status == 100:
            self._reply(method)
            return
        length = re.search(rb"content-length: (\d+)", head)
        body = b""
        if method != "HEAD" and status not in (204, 304) and length is not None:
            body = self._exactly(int(length[1]))
        for name, value in _LEARNT.findall(body):
            self._stock.learn(name.decode(), json.loads(value))
        if b"connection: close" in head:
            raise ConnectionError

    def _until(self, end: bytes) -> bytes:
        while end not in self._received:
            self._receive()
        at = self._received.index(end) + len(end)
        return self._take(at)

    def _exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            self._receive()
        return self._take(size)

    def _receive(self) -> None:
        assert self._socket is not None
        chunk = self._socket.recv(1 << 20)
        if not chunk:
            raise ConnectionError
        self._received += chunk

    def _take(self, size: int) -> bytes:
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """As a client that means well, on a connection of its own."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n"
        with socket.create_connection(self._address, timeout=PATIENCE_S) as connection:
            connection.sendall(f"{head}Connection: close\r\n\r\n".encode() + data)
            received = b""
            while part := connection.recv(1 << 20):
                received += part
        return json.loads(received.partition(_HEAD_END)[2])

    def _connect(self) -> None:
        self._hang_up()
        self._socket = socket.create_connection(self._address, timeout=PATIENCE_S)

    def _hang_up(self) -> None:
        self._received.clear()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
