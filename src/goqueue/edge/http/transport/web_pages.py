"""Stands before the app and keeps web pages out that are not trusted; for those that are, speaks CORS.

A program's request is let through after one look at its headers. A path that is no text names nothing, so
it is turned away here as well: read with stand-ins for what is wrong, two names could look alike.
"""

from collections.abc import Awaitable
from typing import cast
from urllib.parse import unquote_to_bytes

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from goqueue.edge.http.errors import body_of
from goqueue.edge.http.parts.replies import send_reply
from goqueue.edge.http.transport.page_rules import ANY, PageRules, Told
from goqueue.model.errors import GoQueueError, Invalid

_KNOWN_HOSTS_MAX = 64
_STAND_IN = "\N{REPLACEMENT CHARACTER}"
_VARY = (b"vary", b"Origin")
_JSON = (b"content-type", b"application/json")
_EXPOSED = (b"access-control-expose-headers", b"X-Request-ID, Retry-After")
_PREFLIGHT = (
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"Accept, Authorization, Content-Type, X-API-Key, X-Request-ID, traceparent",
    ),
    (b"access-control-allow-private-network", b"true"),
    (b"access-control-max-age", b"300"),
)


class WebPages:
    def __init__(self, rules: PageRules, app: ASGIApp) -> None:
        self._rules = rules
        self._app = app
        self._known_hosts: set[bytes] = set()
        """Values of `Host` that were found good: a client sends the same again and again."""

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # Not a coroutine itself: thousands of polls wait behind it, and each would hold one more.
        if scope["type"] != ScopeType.HTTP:
            return self._app(scope, receive, send)
        if _STAND_IN in scope["path"] and not _is_text(scope["raw_path"]):
            return _refuse(send, Invalid("the path is not UTF-8: encode its names so, and then with %"))
        told_headers = cast("list[tuple[bytes, bytes]]", scope["headers"])
        headers = dict(told_headers)
        host = headers.get(b"host")
        if (
            host in self._known_hosts
            and b"origin" not in headers
            and b"sec-fetch-site" not in headers
            and len(headers) == len(told_headers)  # none came twice, of which one would go unseen
        ):
            return self._app(scope, receive, send)
        told = _told(scope)
        try:
            reader = self._rules.admit(told)
        except GoQueueError as refusal:
            return _refuse(send, refusal)
        if not told.is_of_a_page:
            if host is not None and len(self._known_hosts) < _KNOWN_HOSTS_MAX:
                self._known_hosts.add(host)
            return self._app(scope, receive, send)
        if reader is None:
            return self._app(scope, receive, send)
        cors = [(b"access-control-allow-origin", reader.encode("latin-1")), _EXPOSED]
        if reader != ANY:
            cors.append(_VARY)
        if told.is_preflight:
            return send_reply(send, 204, [*cors, *_PREFLIGHT], b"")

        async def send_with_leave(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *cors]
            await send(message)

        return self._app(scope, receive, send_with_leave)


def _refuse(send: Send, refusal: GoQueueError) -> Awaitable[None]:
    body = body_of(refusal)
    return send_reply(send, body.status, [_JSON, _VARY], msgspec.json.encode(body) + b"\n")


def _is_text(raw_path: bytes) -> bool:
    try:
        unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        return False
    return True


def _told(scope: HTTPScope) -> Told:
    """What the headers say. Of those that come once in a proper request, the first counts."""
    headers: dict[bytes, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name, []).append(value.decode("latin-1"))

    def first(name: bytes) -> str | None:
        return headers.get(name, [None])[0]

    return Told(
        method=scope["method"],
        path=scope["path"],
        hosts=tuple(headers.get(b"host", ())),
        origins=tuple(headers.get(b"origin", ())),
        site=first(b"sec-fetch-site"),
        mode=first(b"sec-fetch-mode"),
        destination=first(b"sec-fetch-dest"),
        content_type=first(b"content-type"),
        has_body=b"transfer-encoding" in headers or first(b"content-length") not in (None, "0"),
        is_preflight=scope["method"] == "OPTIONS" and b"access-control-request-method" in headers,
    )
