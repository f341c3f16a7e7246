"""One HTTP connection, guarded: uvicorn's httptools protocol with bounds on what a client may do.

As it comes, that protocol takes a head of any length, waits forever for a client that has begun a request
or has sent nothing at all, reads what was refused to its end, and resets clients that have not read why.
Here such clients are turned away, politely (`leaving`); a well-behaved one, whose request comes in one
piece, pays for none of it. It also loses the body of a request that offers to
go on in another protocol, as Java's client does with HTTP/2 on every request; here the offer is
declined and the request read on. And a connection at rest, or in a long poll, is to hold little memory,
and a small request to cost little: what uvicorn makes for each and hardly ever uses is replaced.
"""

import asyncio
import logging
from http import HTTPStatus
from typing import Protocol, cast
from urllib.parse import unquote

import httptools
import msgspec
from uvicorn import Config
from uvicorn._types import ASGIVersions, HTTPScope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.errors import ErrorBody
from goqueue.edge.http.transport.body_memory import BodyMemory
from goqueue.edge.http.transport.caller import CALLER, Caller
from goqueue.edge.http.transport.cycle import Cycle
from goqueue.edge.http.transport.flow import Flow, LazyEvent, Pipeline
from goqueue.edge.http.transport.keeper import LISTENER, PRINCIPAL, SEAT
from goqueue.edge.http.transport.leaving import PoliteTransport
from goqueue.edge.http.transport.request_ids import HEADER, REQUEST_ID, request_id_for
from goqueue.edge.listening import Listener
from goqueue.edge.seats import Seat
from goqueue.model.errors import Unavailable
from goqueue.model.settings import KiB

logger = logging.getLogger("goqueue.edge.http")

_NO_STATE: dict[str, object] = {}
_ASGI: ASGIVersions = {"version": "3.0", "spec_version": "2.3"}
"""The same for all: uvicorn makes one for each request."""
_RETRY_SOON = b"retry-after: 1\r\n"
_READ_AHEAD_BYTES = 64 * KiB
"""So much of a body may lie here before whoever serves the request has asked for it."""


class Gate(Protocol):
    """Who is let in, and with how much."""

    bodies: BodyMemory

    def admit(self, address: str) -> bool: ...

    def leave(self, address: str) -> None: ...


class GuardedConnection(HttpToolsProtocol):
    """Reads requests of a bounded head, from clients that keep sending."""

    # With more than 30 attributes outside of slots, a connection's dict would be larger by 1,300 bytes.
    __slots__ = (
        "_address",
        "_bodies",
        "_body_bytes",
        "_bounds",
        "_caller",
        "_dropped_bytes",
        "_framing_bytes",
        "_gate",
        "_has_body_grown",
        "_head_bytes",
        "_idle_since_s",
        "_is_in_head",
        "_is_leaving",
        "_is_repeating_head",
        "_is_whole",
        "_listener",
        "_principal",
        "_served",
        "_stall",
        "_stall_bytes",
    )

    def __init__(
        self, config: Config, state: ServerState, bounds: HttpConfig, gate: Gate, listener: Listener
    ) -> None:
        super().__init__(config, state, _NO_STATE)
        self.access_log = False  # a line a request would cost more than the request
        self.pipeline = Pipeline()  # type: ignore[assignment]  # see `flow`: all that uvicorn asks of it
        self._served: RequestResponseCycle | None = None
        self._bounds = bounds
        self._gate = gate
        self._listener = listener
        self._seat = Seat()
        self._bodies = gate.bodies
        self._body_bytes = 0
        """Of bodies that are not answered for yet."""
        self._address: str | None = None
        self._head_bytes = 0
        self._is_in_head = False
        self._is_whole = True
        self._is_repeating_head = False
        self._is_leaving = False
        self._dropped_bytes = 0
        self._framing_bytes = 0
        """Received since the body last grew: what frames chunks, and trailers."""
        self._has_body_grown = False
        self._stall: asyncio.TimerHandle | None = None
        self._stall_bytes = 0
        self._idle_since_s: float | None = None
        """When the last request was over; None while there is one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own narrowing
        super().connection_made(transport)
        self.transport = PoliteTransport(transport, self._leave)  # type: ignore[assignment]  # all that uvicorn uses
        address = str((transport.get_extra_info("peername") or ("unknown",))[0])
        self._principal = self._listener.principal(transport)
        if self._principal is None or not self._gate.admit(address):
            transport.abort()
        else:
            self._address = address
        flow = Flow(transport)
        self.flow = flow  # type: ignore[assignment]  # as above
        self._caller = Caller(flow)
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_keepalive_if_required()
        self._end_stall()
        self._give_back()
        self._seat.leave()
        if self._address is not None:
            self._gate.leave(self._address)
        super().connection_lost(exc)
        cast(PoliteTransport, self.transport).forget()
        if self._served is not None:
            # uvicorn says so only to the request that came last, which may be one behind.
            self._served.disconnected = True
        self._caller.hang_up()

    def data_received(self, data: bytes) -> None:
        if self._is_leaving:
            self._drop(len(data))
            return
        self._has_body_grown = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
            return
        except httptools.HttpParserError:
            self._refuse(400, "invalid", "this is not a valid HTTP request")
            return
        if self._is_whole:
            return
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self._bounds.head_bytes:
                self._refuse(
                    431,
                    "head_too_large",
                    f"the head of a request has at most {self._bounds.head_bytes} bytes",
                )
                return
            if self._stall is None:
                self._stall = self.loop.call_later(self._bounds.head_timeout_s, self._stalled)
        elif not self.transport.is_closing():
            self._framing_bytes = 0 if self._has_body_grown else self._framing_bytes + len(data)
            if self._framing_bytes > self._bounds.head_bytes:
                self._refuse(
                    431,
                    "head_too_large",
                    f"what frames a body, and its trailers, have at most {self._bounds.head_bytes} bytes",
                )
                return
            if self._body_bytes and self._bodies.is_full:
                self._refuse(
                    503,
                    Unavailable.code,
                    f"all clients together have {self._bounds.bodies_bytes} bytes under way: try again",
                )
                return
            self._stall_bytes += len(data)
            if self._stall is None:
                self._stall = self.loop.call_later(self._bounds.stall_timeout_s, self._stalled)
            if self.cycle.response_complete:
                self._drop(len(data))

    # From here on instead of uvicorn's own, which make more for each request and call more in turn.

    def on_message_begin(self) -> None:
        if not self._is_repeating_head:
            self.url = b""
            self.headers = []
            self.expect_100_continue = False
            self._head_bytes = 0
            self._is_in_head = True
            self._is_whole = False
            self._idle_since_s = None

    def on_url(self, url: bytes) -> None:
        if not self._is_repeating_head:
            self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:  # what comes behind a body in chunks, as trailers, nobody asks for
            name = name.lower()
            self.headers.append((name, value))
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True

    def on_headers_complete(self) -> None:
        if self._is_repeating_head:
            return
        self._is_in_head = False
        self._stall_bytes = self._dropped_bytes = self._framing_bytes = 0
        self._end_stall()
        request_id = request_id_for(self.headers)
        version = self.parser.get_http_version()
        ahead = self.cycle
        self.cycle = cycle = Cycle(
            scope=self._scope(version, request_id),
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            # With the headers that are on every reply.
            default_headers=[*self.server_state.default_headers, (HEADER, request_id)],
            message_event=LazyEvent(),  # type: ignore[arg-type]  # as above; nobody waits yet
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if ahead is None or ahead.response_complete:
            self._served = cycle
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def _scope(self, version: str, request_id: bytes) -> HTTPScope:
        """What the head of a request says, as an app reads it."""
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": self.parser.get_method().decode("ascii"),
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self.headers,
            "state": {},
            CALLER: self._caller,  # type: ignore[misc]  # a key of our own
            REQUEST_ID: request_id,
            PRINCIPAL: self._principal,
            LISTENER: self._listener,
            SEAT: self._seat,
        }

    def on_body(self, body: bytes) -> None:
        self._has_body_grown = True
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.body += body
            size = len(body)
            self._body_bytes += size
            self._bodies.held_bytes += size
            if len(cycle.body) > _READ_AHEAD_BYTES:
                self.flow.pause_reading()
            cycle.message_event.set()

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # said without having looked at the body, which `_decline` goes on with
        self._is_whole = True
        self._end_stall()
        if self.cycle.response_complete:
            self._rest()
        else:
            self.cycle.more_body = False
            self.cycle.message_event.set()

    def on_response_complete(self) -> None:
        self._give_back()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._served = cycle
            self._start_asgi_task(cycle, app)
        elif self._is_whole:
            self._rest()

    def _give_back(self) -> None:
        """What was sent is answered for. What came ahead of the next request is little, and forgotten too."""
        self._bodies.held_bytes -= self._body_bytes
        self._body_bytes = 0

    def _rest(self) -> None:
        """Nothing is asked for. One timer serves many requests: a new one for each would cost 3 µs."""
        self._idle_since_s = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(self._bounds.idle_timeout_s, self._look)

    def _look(self) -> None:
        """Whether the client has been quiet for too long."""
        self.timeout_keep_alive_task = None
        if self._idle_since_s is None:
            return  # who ends the request begins to count anew
        left_s = self._idle_since_s + self._bounds.idle_timeout_s - self.loop.time()
        if left_s > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left_s, self._look)
        else:
            self.transport.close()

    def _decline(self, rest: bytes) -> None:
        """Stay with HTTP/1.1 when a client offers more, as RFC 9110 lets a server do.

        The parser has stopped for good behind the head. A new one is told only how long the body is
        and takes over from there.
        """
        framing = [
            b"%s: %s\r\n" % header
            for header in self.headers
            if header[0] in (b"content-length", b"transfer-encoding")
        ]
        self.parser = httptools.HttpRequestParser(self)
        self._is_repeating_head = True
        try:
            self.parser.feed_data(b"POST / HTTP/1.1\r\n%s\r\n" % b"".join(framing))
        except httptools.HttpParserError:
            self._refuse(400, "invalid", "it cannot be told where this request ends")
            return
        finally:
            self._is_repeating_head = False
        self.data_received(rest)

    def _stalled(self) -> None:
        """Time is up: a head should be whole by now, a body have grown, unless it is we who do not read."""
        self._stall = None
        has_grown = not self._is_in_head and self._stall_bytes >= self._bounds.stall_bytes
        if has_grown or self.flow.read_paused:
            self._stall_bytes = 0
            self._stall = self.loop.call_later(self._bounds.stall_timeout_s, self._stalled)
        else:
            self.hang_up()

    def _leave(self) -> bool:
        """All is said. Whoever is still sending is given time to read it."""
        self._is_leaving = not self._is_whole
        if self._is_leaving:
            self._end_stall()
            self._dropped_bytes = 0
            self._stall = self.loop.call_later(self._bounds.leave_timeout_s, self.hang_up)
            self.flow.resume_reading()
        return self._is_leaving

    def _drop(self, size: int) -> None:
        """Bytes that nobody reads any more: of a request that is answered, or behind the last reply."""
        self._dropped_bytes += size
        if self._dropped_bytes > self._bounds.leave_bytes:
            self.hang_up()

    def hang_up(self) -> None:
        """At once: whoever is there has had its time."""
        self._end_stall()
        cast(PoliteTransport, self.transport).hang_up()

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _refuse(self, status: int, code: str, text: str) -> None:
        """Answer on our own, without the app, and hang up: what follows on the wire cannot be trusted.

        Whoever waits for the reply to a request before it gets that, as the last one.
        """
        self._end_stall()
        self._give_back()
        is_in_body = not (self._is_whole or self._is_in_head)
        self._is_whole = False  # it may be going on
        served = self._served
        if served is not None and not served.response_complete:
            if served is not self.cycle or not is_in_body:
                self.pipeline.clear()
                served.keep_alive = False
                self._is_leaving = True
                self.flow.resume_reading()
                return
            # It is this one, and whoever serves it waits for a body that will never be whole.
            served.disconnected = True
            served.message_event.set()
            self._caller.hang_up()
            if served.response_started:
                self.hang_up()
                return
        request_id = request_id_for(())
        logger.debug(
            "http_request_refused status=%d reason=%s request_id=%s", status, text, request_id.decode("ascii")
        )
        body = msgspec.json.encode(ErrorBody(text, status, code)) + b"\n"
        self.transport.write(
            b"%s%scontent-type: application/json\r\n%s: %s\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%s"
            % (
                STATUS_LINE[status],
                _RETRY_SOON if status == HTTPStatus.SERVICE_UNAVAILABLE else b"",
                HEADER,
                request_id,
                len(body),
                body,
            )
        )
        self.transport.close()
