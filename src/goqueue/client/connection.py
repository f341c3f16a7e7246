"""One connection to a node that is kept, made again when it breaks, and moved when the node is gone.

A request whose reply was lost is sent again, so it may reach a node twice: every call of this client is
one that may. A client belongs to one thread. It can be pickled; the copy connects anew.
"""

import http.client
import time
from collections.abc import Mapping, Sequence
from email.message import Message
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from goqueue.client.addresses import Address
from goqueue.model.errors import Unavailable

JSON = "application/json"
BYTES = "application/octet-stream"
_LATER = (429, 503)
_PAUSE_FIRST_S = 0.05
_PAUSE_MAX_S = 1.0


class Refused(Exception):
    """A node's no. `code` and the text are the node's own."""

    def __init__(self, text: str, *, code: str, status: int) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


class Reply(NamedTuple):
    """A node's yes."""

    status: int
    headers: Message
    body: bytes


class _ErrorBody(msgspec.Struct):
    error: str = ""
    code: str = ""


class Client:
    """Requests to whichever of the nodes answers."""

    def __init__(
        self, addresses: Sequence[Address], *, timeout_ms: int = 30_000, retry_for_ms: int = 30_000
    ) -> None:
        self.addresses = tuple(addresses)
        self._timeout_ms = timeout_ms
        self._retry_for_ms = retry_for_ms
        self._turn = 0
        self._connection: http.client.HTTPConnection | None = None

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
        target = f"{path}?{urlencode(query)}" if query else path
        headers = {} if body is None else {"content-type": content_type}
        give_up_ns = time.monotonic_ns() + self._retry_for_ms * 1_000_000
        pause_s = 0.0
        while True:
            was_kept = self._connection is not None
            try:
                reply = self._ask(method, target, body, headers)
                if reply.status < 400:
                    return reply
                refused = _refused(reply)
                if reply.status not in _LATER:
                    raise refused
                problem: Exception = refused
            except (OSError, http.client.HTTPException) as error:
                self.close()
                problem = error
                if was_kept:
                    # A node closes connections that were idle for long: that is no sign of trouble.
                    continue
            if time.monotonic_ns() >= give_up_ns:
                raise self._unavailable(problem) from problem
            self.close()
            self._turn += 1
            pause_s = min(pause_s * 2 or _PAUSE_FIRST_S, _PAUSE_MAX_S)
            time.sleep(pause_s)

    def close(self) -> None:
        """Hang up. The next request connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_connection": None}

    def _ask(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        if self._connection is None:
            host, port = self.addresses[self._turn % len(self.addresses)]
            self._connection = http.client.HTTPConnection(host, port, timeout=self._timeout_ms / 1_000)
        self._connection.request(method, target, body, dict(headers))
        response = self._connection.getresponse()
        return Reply(response.status, response.headers, response.read())

    def _unavailable(self, problem: Exception) -> Unavailable:
        where = ", ".join(map(str, self.addresses))
        reason = str(problem) or type(problem).__name__
        return Unavailable(f"no node answers at {where} ({reason}): is the HTTP door of a broker there?")


def _refused(reply: Reply) -> Refused:
    try:
        told = msgspec.json.decode(reply.body, type=_ErrorBody)
    except msgspec.MsgspecError:
        told = _ErrorBody()
    text = told.error or f"status {reply.status}: {reply.body[:200]!r}"
    return Refused(text, code=told.code or str(reply.status), status=reply.status)
