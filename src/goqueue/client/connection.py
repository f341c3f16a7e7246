"""Connections to nodes that are kept, made again when they break, and moved when a node is gone.

A call whose reply was lost is sent again if it may reach a node twice, and plain requests may. A client
belongs to one thread; `Pool` lets many threads share some. Both can be pickled and survive a fork: the copy
connects anew.
"""

import contextlib
import http.client
import select
import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from goqueue.client.addresses import Address
from goqueue.client.call import BYTES as BYTES
from goqueue.client.call import JSON as JSON
from goqueue.client.call import Attempts, Call
from goqueue.client.call import Reply as Reply
from goqueue.client.errors import NobodyAnswers
from goqueue.client.errors import Refused as Refused
from goqueue.client.forks import fork_count
from goqueue.client.leaders import HEADER, Leaders
from goqueue.client.tls import NO_MORE_THAN_USUAL, Tls, Trust
from goqueue.model.errors import Invalid

T = TypeVar("T")

_LOOK_UP_S = 0.1
"""So often a client that rests looks whether it was aborted."""


class Client:
    """Requests to whichever of the nodes answers."""

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        timeout_ms: int = 30_000,
        retry_for_ms: int = 30_000,
        api_key: str | None = None,
        api_key_file: Path | None = None,
        leaders: Leaders | None = None,
        tls: Tls | None = None,
    ) -> None:
        """`leaders` and `tls`: what others of the same program have as well.

        A key that is in a file is read where the client is, and not pickled.
        """
        self.addresses = tuple(addresses)
        self._timeout_ms = timeout_ms
        self._retry_for_ms = retry_for_ms
        self._api_key_file = api_key_file
        self._headers = key_headers(key_in(api_key_file) if api_key_file else api_key)
        self._leaders = leaders or Leaders(self.addresses)
        self._tls = tls or Tls(self.addresses)
        self._turn = 0
        self._connection: http.client.HTTPConnection | None = None
        """The one that was used last; `_others` are to other nodes."""
        self._address: Address | None = None
        self._others: dict[Address, http.client.HTTPConnection] = {}
        self._fork_count = fork_count()
        self._is_aborted = False

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
    ) -> Reply:
        """The reply to a request; Refused when the node says no, Unavailable when none answers in time."""
        return self.carry(
            Call(
                method=method,
                path=path,
                decode=lambda reply: reply,
                query=query or {},
                body=body,
                content_type=content_type,
            )
        )

    def carry(self, call: Call[T]) -> T:
        """What a call gives."""
        attempts = Attempts(
            call,
            where=", ".join(map(str, self.addresses)),
            retry_for_ms=self._retry_for_ms,
            nodes=len(self.addresses),
        )
        if self._fork_count != fork_count():
            # After a fork the line is the parent's too, and each would read the other's replies.
            self._fork_count = fork_count()
            self.close()
        while True:
            if self._is_aborted:
                raise NobodyAnswers("the client is closed")
            attempts.begin(time.monotonic_ns())
            self._turn_to(self._leaders.of(call.path) or self.addresses[self._turn % len(self.addresses)])
            was_kept = self._connection is not None
            was_sent = False
            try:
                connection = self._connected(call)
                connection.request(call.method, call.target, call.body, {**self._headers, **call.headers})
                was_sent = True
                response = connection.getresponse()
                reply = Reply(response.status, response.headers, response.read())
                if not reply.body and response.length is None and not response.chunked:
                    # A head that is cut looks like one that ends there; a node tells a length, be it 0.
                    raise http.client.IncompleteRead(b"")
            except (OSError, http.client.HTTPException) as error:
                self._hang_up()
                if self._is_aborted:
                    raise NobodyAnswers("the client was closed while it waited for a reply") from error
                if was_kept and call.is_repeatable and not isinstance(error, TimeoutError):
                    # A node closes connections that were idle for long: that is no sign of trouble.
                    continue
                pause_s = attempts.broken(error, was_sent=was_sent, now_ns=time.monotonic_ns())
            else:
                self._leaders.learn(call.path, reply.headers.get(HEADER))
                if call.accepted(reply):
                    return call.read(reply)
                pause_s = attempts.refused(reply, now_ns=time.monotonic_ns())
                self._hang_up()
            self._leaders.forget(call.path)
            self._turn += 1
            self._rest(pause_s)

    def expect(self, path: str, leader: str) -> None:
        """Ask that node first for a path, `host:port`, if it is one of those that the client knows."""
        self._leaders.learn(path, leader)

    def close(self) -> None:
        """Hang up. The next request connects again."""
        self._hang_up()
        while self._others:
            self._others.popitem()[1].close()

    def abort(self) -> None:
        """Have the call that another thread waits for end with an error, and all that follow."""
        self._is_aborted = True
        connection = self._connection
        line = None if connection is None else connection.sock
        if line is not None:
            with contextlib.suppress(OSError):
                # Not the line's own: one of TLS would take its lock off first, with a request half written.
                socket.socket.shutdown(line, socket.SHUT_RDWR)

    def __getstate__(self) -> dict[str, object]:
        state = {**self.__dict__, "_connection": None, "_others": {}}
        return {**state, "_headers": {}} if self._api_key_file else state

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        if self._api_key_file:
            self._headers = key_headers(key_in(self._api_key_file))

    def _turn_to(self, address: Address) -> None:
        """Use the connection to a node, if there is one, and keep the one used so far for later."""
        if address == self._address:
            return
        if self._connection is not None and self._address is not None:
            self._others[self._address] = self._connection
        self._connection, self._address = self._others.pop(address, None), address

    def _hang_up(self) -> None:
        """End the connection used last."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _rest(self, pause_s: float) -> None:
        """Let time pass before the next attempt, unless somebody ends it."""
        # No lock or event is asked here: a signal handler that aborts may run in the middle of either.
        end_s = time.monotonic() + pause_s
        while not self._is_aborted and (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _LOOK_UP_S))

    def _connected(self, call: Call[T]) -> http.client.HTTPConnection:
        timeout_s = (self._timeout_ms + call.wait_ms) / 1_000
        kept = self._connection
        if kept is not None and (kept.sock is None or (not call.is_repeatable and _has_ended(kept.sock))):
            self._hang_up()
        if self._connection is None:
            assert self._address is not None, "it was turned to somebody"
            connection = self._new_connection(self._address, timeout_s)
            connection.connect()
            # A request goes out in two writes, and the second would wait for the first one's receipt.
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connection = connection
        self._connection.sock.settimeout(timeout_s)
        return self._connection

    def _new_connection(self, address: Address, timeout_s: float) -> http.client.HTTPConnection:
        context = self._tls.context
        if context is None:
            return http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)
        return http.client.HTTPSConnection(address.host, address.port, timeout=timeout_s, context=context)


class Pool:
    """Clients for many threads: each call takes one that nobody uses, or a new one.

    There is no lock, only a deque, whose ends are safe for threads: a lock that another thread has while the
    process forks would never be free in the child.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        timeout_ms: int,
        retry_for_ms: int,
        api_key: str | None,
        trust: Trust = NO_MORE_THAN_USUAL,
    ) -> None:
        self.addresses = tuple(addresses)
        self.retry_for_ms = retry_for_ms
        self._timeout_ms = timeout_ms
        self._api_key = api_key
        key_headers(api_key)  # one that cannot be sent is refused here and not at the first call
        self._leaders = Leaders(self.addresses)
        self._tls = Tls(self.addresses, trust)
        self._idle: deque[Client] = deque()
        self._is_closed = False

    def carry(self, call: Call[T]) -> T:
        """What a call gives."""
        try:
            client = self._idle.pop()
        except IndexError:
            client = self.new_client()
        try:
            return client.carry(call)
        finally:
            self._idle.append(client)
            if self._is_closed:
                self._hang_up()

    def new_client(self, *, retry_for_ms: int | None = None) -> Client:
        """A client of one's own."""
        return Client(
            self.addresses,
            timeout_ms=self._timeout_ms,
            retry_for_ms=self.retry_for_ms if retry_for_ms is None else retry_for_ms,
            api_key=self._api_key,
            leaders=self._leaders,
            tls=self._tls,
        )

    def close(self) -> None:
        """Hang up. Calls under way end by themselves."""
        self._is_closed = True
        self._hang_up()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_idle": deque()}

    def _hang_up(self) -> None:
        with contextlib.suppress(IndexError):  # that all are taken
            while True:
                self._idle.pop().close()


def key_headers(api_key: str | None) -> dict[str, str]:
    """What shows a node the caller's key."""
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        raise Invalid("an API key has ASCII letters, digits and signs only, and no line ends")
    return {"x-api-key": api_key} if api_key else {}


def key_in(file: Path) -> str:
    """The key that a file holds, and nothing else; blanks around it are not meant."""
    try:
        key = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise Invalid(f"no API key can be read from {file}: {getattr(error, 'strerror', '')}") from error
    if not key:
        raise Invalid(f"there is no API key in {file}")
    return key


def _has_ended(line: socket.socket) -> bool:
    """Whether the node has hung up: nothing else can be there to read between two requests."""
    poll = select.poll()
    poll.register(line, select.POLLIN)
    return bool(poll.poll(0))
