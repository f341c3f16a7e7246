"""Stands before the app and asks who is there, where a listener does.

A key, a token or a password comes in the headers `Authorization` (Bearer or Basic) or `X-API-Key`, and in
the address only where a setting allows it, since addresses are logged. A certificate that was checked is as
good. Probes may stay open.
"""

import binascii
from base64 import b64decode
from collections.abc import Awaitable, Mapping
from typing import Any, cast
from urllib.parse import parse_qs

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from goqueue.edge.authentication import NOBODY, Authenticator, Known
from goqueue.edge.http.errors import body_of
from goqueue.edge.http.parts.replies import send_reply
from goqueue.edge.listening import Listener
from goqueue.model.errors import NotAuthenticated
from goqueue.model.identity import ANONYMOUS, Principal
from goqueue.model.settings import KiB

LISTENER = "goqueue.listener"
PRINCIPAL = "goqueue.principal"
"""Where a connection puts where it came in, and who its client is by a certificate."""
SEAT = "goqueue.seat"
"""And the place that it takes among the connections of its client's tenant."""
KNOWN = "goqueue.known"
"""Where routes find who asks."""
PROBES = frozenset({"/health", "/healthz", "/livez", "/readyz", "/version"})
_JSON = (b"content-type", b"application/json")
_CHALLENGES = (
    (b"www-authenticate", b'Bearer realm="goqueue"'),
    (b"www-authenticate", b'Basic realm="goqueue", charset="UTF-8"'),
)
_SECRET_BYTES_MAX = 32 * KiB
_DOTS_OF_A_TOKEN = 2


class Keeper:
    def __init__(
        self, authenticator: Authenticator, app: ASGIApp, *, are_probes_open: bool, takes_query_keys: bool
    ) -> None:
        self._authenticator = authenticator
        self._app = app
        self._open_paths = PROBES if are_probes_open else frozenset[str]()
        self._takes_query_keys = takes_query_keys

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # Not a coroutine itself: thousands of polls wait behind it, and each would hold one more.
        if scope["type"] != ScopeType.HTTP:
            return self._app(scope, receive, send)
        extra = cast(dict[str, Any], scope)
        listener: Listener = extra[LISTENER]
        principal: Principal = extra[PRINCIPAL]
        if principal != ANONYMOUS and self._authenticator.is_shut_out(principal):
            return _refuse(send, "the user that the certificate names is not let in")
        if not listener.protocol.asks_who or principal != ANONYMOUS:
            return self._pass(Known(principal), scope, receive, send)
        if scope["path"] in self._open_paths:
            return self._pass(NOBODY, scope, receive, send)
        headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
        if (login := _basic(headers)) is not None:
            return self._pass_by_password(login, scope, receive, send)
        secret = self._key(scope, headers)
        if secret is None:
            return _refuse(send, "show a key or a password that is good")
        known = self._authenticator.by_key(secret)
        if known is None and self._authenticator.takes_tokens:
            known = self._authenticator.by_remembered_token(secret)
        if known is None:
            return self._pass_by_secret(secret, scope, receive, send)
        return self._pass(known, scope, receive, send)

    def _pass(self, known: Known, scope: HTTPScope, receive: Receive, send: Send) -> Awaitable[None]:
        cast(dict[str, Any], scope)[KNOWN] = known
        if known.principal is not ANONYMOUS:
            self._authenticator.note_use(known, str((scope["client"] or ("",))[0]))
        return self._app(scope, receive, send)

    async def _pass_by_password(
        self, login: tuple[str, str], scope: HTTPScope, receive: Receive, send: Send
    ) -> None:
        try:
            known = await self._authenticator.by_password(*login)
        except NotAuthenticated as refusal:
            await self._refuse_later(login[0], refusal, scope, send)
            return
        await self._pass(known, scope, receive, send)

    async def _pass_by_secret(self, secret: str, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """With a token that has not been seen before, or not at all."""
        try:
            if not self._authenticator.takes_tokens or secret.count(".") != _DOTS_OF_A_TOKEN:
                raise NotAuthenticated("this key is not good")
            known = await self._authenticator.by_token(secret)
        except NotAuthenticated as refusal:
            await self._refuse_later("", refusal, scope, send)
            return
        await self._pass(known, scope, receive, send)

    async def _refuse_later(self, name: str, refusal: NotAuthenticated, scope: HTTPScope, send: Send) -> None:
        """Whoever guesses waits."""
        await self._authenticator.delay_failure(name, str((scope["client"] or ("",))[0]), str(refusal))
        await _refuse(send, str(refusal))

    def _key(self, scope: HTTPScope, headers: Mapping[bytes, bytes]) -> str | None:
        kind, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer":
            return bearer.strip().decode("latin-1")[:_SECRET_BYTES_MAX]
        if (key := headers.get(b"x-api-key")) is not None:
            return key.decode("latin-1")[:_SECRET_BYTES_MAX]
        if self._takes_query_keys and b"api_key=" in scope["query_string"]:
            return parse_qs(scope["query_string"].decode("latin-1")).get("api_key", [""])[0]
        return None


def listener_in(scope: Scope) -> str:
    """The name of the listener through which a request came."""
    listener: Listener = cast(dict[str, Any], scope)[LISTENER]
    return listener.name


def known_in(scope: Scope) -> Known:
    """Who asks, by what was shown, or else by a certificate; nobody, where nobody is asked."""
    extra = cast(dict[str, Any], scope)
    known: Known | None = extra.get(KNOWN)
    return known or Known(extra.get(PRINCIPAL, ANONYMOUS))


def _basic(headers: Mapping[bytes, bytes]) -> tuple[str, str] | None:
    kind, _, encoded = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() != b"basic":
        return None
    try:
        decoded = b64decode(encoded.strip()[:_SECRET_BYTES_MAX], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    name, _, password = decoded.partition(":")
    return name, password


def _refuse(send: Send, text: str) -> Awaitable[None]:
    body = body_of(NotAuthenticated(text))
    return send_reply(send, body.status, [_JSON, *_CHALLENGES], msgspec.json.encode(body) + b"\n")
