"""A node that is scripted: it does what a healthy broker never does.

It cuts connections in the middle of a reply, answers with what is no JSON, holds a reply until it is told,
and refuses what it is told to refuse. `asked` has every request, in order, with the number of its connection.
"""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

from goqueue.client.addresses import Address

PATIENCE_S = 20.0
"""For so long a test waits for a request that does not come."""


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: Message
    body: bytes
    line: int
    """Which connection it came over: 1 is the first."""

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the node does with one request."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beside its length; one that is empty is left out."""
    is_last: bool = False
    """The connection is closed behind it."""
    cut_bytes: int | None = None
    """So much of the reply goes out, head and all; then the connection is closed."""
    until: threading.Event | None = None
    """It is held until this is set."""


Script = Callable[[Asked], Answer]


def said(told: object = None, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A reply with these bytes, or with this as JSON."""
    body = told if isinstance(told, bytes) else msgspec.json.encode({} if told is None else told)
    return Answer(status=status, body=body, headers=headers or {})


def refused(status: int, code: str, text: str = "no", *, retry_after_ms: int | None = None) -> Answer:
    """A node's no."""
    told = {"error": text, "status": status, "code": code}
    return said(told if retry_after_ms is None else {**told, "retry_after_ms": retry_after_ms}, status=status)


def cut(answer: Answer, *, after_bytes: int) -> Answer:
    """The same reply, of which only the beginning comes."""
    return replace(answer, cut_bytes=after_bytes)


def held(until: threading.Event, answer: Answer) -> Answer:
    """The same reply, late."""
    return replace(answer, until=until)


def delivering(*texts: str) -> Answer:
    """A poll's reply with messages whose receipts are their texts."""
    return said(
        {
            "messages": [
                {
                    "topic": "t",
                    "partition": 0,
                    "offset": offset,
                    "timestamp": "2030-01-01T00:00:00Z",
                    "value": text,
                    "priority": "normal",
                    "receipt_handle": text,
                    "delivery_count": 1,
                }
                for offset, text in enumerate(texts)
            ]
        }
    )


OK = said()
BUSY = refused(503, "unavailable", "later")
HANG_UP = cut(OK, after_bytes=0)
LAST = replace(OK, is_last=True)


class ScriptedNode:
    """Where it listens, and what it was asked."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._changed = threading.Condition()
        self._held: list[threading.Event] = []
        self._lines: list[socket.socket] = []
        self._is_closing = False
        self.asked: list[Asked] = []
        self.address = Address("127.0.0.1", 0)

    @property
    def paths(self) -> list[str]:
        """What was asked, in short."""
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    @property
    def line_count(self) -> int:
        """How many connections there have been."""
        return len(self._lines)

    def of(self, path: str) -> list[Asked]:
        """The requests to a path that ends so."""
        return [asked for asked in list(self.asked) if asked.path.endswith(path)]

    def wait_for(self, path: str, count: int = 1) -> list[Asked]:
        """Until so many requests to a path that ends so have come."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.of(path)) >= count, PATIENCE_S)
        assert came, f"{path} was asked for {len(self.of(path))} times, not {count}: {self.paths}"
        return self.of(path)

    def hang_up(self) -> None:
        """All connections are closed, as after a restart."""
        for line in list(self._lines):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._is_closing = True
        for event in self._held:
            event.set()
        self.hang_up()

    def connected(self, line: socket.socket) -> int:
        """The number of a new connection."""
        with self._changed:
            self._lines.append(line)
            return len(self._lines)

    def answer(self, asked: Asked) -> Answer:
        with self._changed:
            self.asked.append(asked)
            self._changed.notify_all()
        answer = self._script(asked)
        if answer.until is not None and not self._is_closing:
            self._held.append(answer.until)
            answer.until.wait(PATIENCE_S)
        return answer


@contextmanager
def scripted(script: Script) -> Iterator[ScriptedNode]:
    """A node that answers each request as the script says."""
    node = ScriptedNode(script)
    with _Server(("127.0.0.1", 0), _line_of(node)) as server:
        node.address = Address("127.0.0.1", server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield node
        finally:
            node.close()
            server.shutdown()
            thread.join()


@contextmanager
def answering(*answers: Answer) -> Iterator[ScriptedNode]:
    """A node that gives these answers in turn, and is asked no more often than that."""
    overdue: list[str] = []
    left = list(answers)
    taking = threading.Lock()

    def script(asked: Asked) -> Answer:
        with taking:
            if left:
                return left.pop(0)
            overdue.append(f"{asked.method} {asked.path}")
        return HANG_UP

    with scripted(script) as node:
        yield node
    assert overdue == [], f"asked after the script was over: {overdue}"


def by_path(**answers: Answer | Sequence[Answer]) -> Script:
    """Answers by a path's last part, in turn; the last of them again and again. Others are OK."""
    left = {name: list(given) if isinstance(given, Sequence) else [given] for name, given in answers.items()}
    taking = threading.Lock()

    def script(asked: Asked) -> Answer:
        with taking:
            queue = left.get(asked.path.rpartition("/")[2].replace("-", "_"), [OK])
            return queue.pop(0) if len(queue) > 1 else queue[0]

    return script


def before(url: str, meddle: Callable[[Asked, Answer], Answer]) -> Script:
    """A wire to a real node: what that does is done, whatever the client hears of it."""

    def script(asked: Asked) -> Answer:
        target = urlsplit(url)
        line = HTTPConnection(target.hostname or "", target.port, timeout=PATIENCE_S)
        query = f"?{urlencode(asked.query)}" if asked.query else ""
        headers = {"content-type": asked.headers["content-type"] or "application/json"}
        line.request(asked.method, quote(unquote(asked.path)) + query, asked.body or None, headers)
        reply = line.getresponse()
        answer = said(reply.read(), status=reply.status)
        line.close()
        return meddle(asked, answer)

    return script


def nobody() -> Address:
    """An address where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return Address("127.0.0.1", unused.getsockname()[1])


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def _line_of(node: ScriptedNode) -> type[BaseHTTPRequestHandler]:
    class Line(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            self._number = node.connected(self.connection)

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            target = urlsplit(self.path)
            query = dict(parse_qsl(target.query))
            answer = node.answer(Asked(self.command, target.path, query, self.headers, body, self._number))
            head = f"HTTP/1.1 {answer.status} Scripted\r\n"
            given = {"content-length": str(len(answer.body)), **answer.headers}
            head += "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
            reply = head.encode() + b"\r\n" + answer.body
            self.wfile.write(reply[: answer.cut_bytes])
            if answer.is_last or answer.cut_bytes is not None:
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815  # the server's own names

        def handle(self) -> None:
            with suppress(OSError):  # that the client is gone
                super().handle()

        def finish(self) -> None:
            with suppress(OSError):
                super().finish()

        def log_message(self, format: str, *arguments: object) -> None:
            """Tests are quiet."""

    return Line
