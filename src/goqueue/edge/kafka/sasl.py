"""What one Kafka client has said of who it is, and what it may ask before it has.

A stranger may ask for versions and log in, with few and small requests, and not for long. Whoever has logged
in may do so again on the same connection (KIP-368), as the same; a session that has ended serves nothing
else.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from goqueue.edge.authentication import Authenticator, Known
from goqueue.edge.kafka.oauth_bearer import read_bearer
from goqueue.edge.kafka.scram import ScramExchange
from goqueue.model.errors import NotAuthenticated
from goqueue.model.identity import ScramMechanism
from goqueue.model.settings import KiB

PLAIN = "PLAIN"
OAUTH_BEARER = "OAUTHBEARER"
MECHANISMS = (PLAIN, *(mechanism.value for mechanism in ScramMechanism))
"""Those of users that are kept here; tokens are taken where an issuer is named."""
STRANGER_REQUESTS_MAX = 16
STRANGER_BYTES_MAX = 64 * KiB
STRANGER_S = 10.0
"""How many requests, of which size, and how much time somebody has to log in."""
_HANDSHAKE, _API_VERSIONS, _AUTHENTICATE = 17, 18, 36


class LoggedIn(NamedTuple):
    """What a client hears of a step that went well."""

    token: bytes
    session_ms: int = 0


class Sasl:
    """The login of one connection."""

    def __init__(self, authenticator: Authenticator, host: str) -> None:
        self._authenticator = authenticator
        self._host = host
        self.known: Known | None = None
        self.has_failed = False
        self.on_known: Callable[[Known], None] = lambda _: None
        self._until_s: float | None = None
        self._requests = 0
        self._mechanism = ""
        self._name = ""
        """As whom it tries to log in, as far as it has said."""
        self._scram: ScramExchange | None = None

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """By which somebody may log in here."""
        return (*MECHANISMS, OAUTH_BEARER) if self._authenticator.takes_tokens else MECHANISMS

    @property
    def is_shut_out(self) -> bool:
        """Whether somebody has logged in who could not do so now."""
        return self.known is not None and not self._authenticator.is_still_good(self.known)

    def refusal(self, api_key: int) -> str | None:
        """Why a request is not even looked at now; None: it is."""
        if self.has_failed:
            return "its login has failed"
        if api_key in (_API_VERSIONS, _HANDSHAKE, _AUTHENTICATE):
            self._requests += 1
            return "too many requests of a stranger" if self._requests > STRANGER_REQUESTS_MAX else None
        if self.known is None:
            return "it has not said who it is"
        if self._until_s is not None and asyncio.get_running_loop().time() > self._until_s:
            return "its session has ended, and it has not logged in again"
        return None

    def choose(self, mechanism: str) -> bool:
        """Begin to log in; whether that mechanism is served."""
        self._scram = None
        self._mechanism = mechanism if mechanism in self.mechanisms else ""
        return bool(self._mechanism)

    async def step(self, token: bytes) -> LoggedIn:
        """One message of the client's login. Raises NotAuthenticated, and the client is lost then."""
        try:
            if not self._mechanism:
                raise NotAuthenticated("it is not said by which mechanism: SaslHandshake comes first")
            if self._mechanism == PLAIN:
                return self._know(await self._plain(token), b"")
            if self._mechanism == OAUTH_BEARER:
                return self._know(await self._bearer(token), b"")
            if self._scram is None:
                self._scram = ScramExchange(ScramMechanism(self._mechanism), self._authenticator.scram_form)
                answer = self._scram.first(token)
                self._name = self._scram.name
                return LoggedIn(answer)
            return self._proved(self._scram, token)
        except NotAuthenticated as refusal:
            self.has_failed = True
            await self._authenticator.delay_failure(self._name, self._host, str(refusal))
            raise

    async def _plain(self, token: bytes) -> Known:
        try:
            asked_for, name, password = token.decode().split("\0")
        except ValueError:
            raise NotAuthenticated("this is no message of PLAIN") from None
        if asked_for not in ("", name):
            raise NotAuthenticated("nobody logs in for another here")
        self._name = name
        return await self._authenticator.by_password(name, password)

    async def _bearer(self, message: bytes) -> Known:
        bearer = read_bearer(message)
        known = await self._authenticator.by_token(bearer.token)
        if bearer.asked_for not in ("", known.principal.name):
            raise NotAuthenticated("nobody logs in for another here")
        return known

    def _proved(self, scram: ScramExchange, token: bytes) -> LoggedIn:
        answer = scram.final(token)
        known = self._authenticator.by_name(scram.name)
        if known is None:
            raise NotAuthenticated("the name or the password is not right")
        return self._know(known, answer)

    def _know(self, known: Known, answer: bytes) -> LoggedIn:
        if self.known is not None and self.known.principal != known.principal:
            raise NotAuthenticated("who logs in again is the same as before")
        self.known = known
        self._authenticator.note_login(known, self._host, self._mechanism)
        self._mechanism, self._scram, self._requests = "", None, 0
        session_ms = self._authenticator.session_ms(known)
        self._until_s = asyncio.get_running_loop().time() + session_ms / 1_000 if session_ms else None
        self.on_known(known)
        return LoggedIn(answer, session_ms)
