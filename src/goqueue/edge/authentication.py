"""Who stands behind a key, a password or a token: asked by all doors, in one place.

A key is looked up. A password takes tens of milliseconds to check, so that is done in a thread, a few at a
time, and remembered for a while under a digest that only this process can make. Whoever fails is answered the
later the more often that name fails from that address; others wait for nothing.
"""

import asyncio
import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from goqueue.core.access.identities import Identities
from goqueue.edge.credentials import (
    KEY_MARK,
    PASSWORD_BYTES_MAX,
    is_password,
    is_scram_password,
    key_digest,
    unknown_form,
)
from goqueue.edge.token_claims import TokenHolder
from goqueue.model.access import Asking, Role
from goqueue.model.audit import AuditEvent
from goqueue.model.errors import NotAuthenticated
from goqueue.model.identity import (
    ANONYMOUS,
    ROOT,
    USER,
    PasswordForm,
    Principal,
    ScramForm,
    ScramMechanism,
    User,
)
from goqueue.model.settings import require
from goqueue.model.tenants import TenantId

if TYPE_CHECKING:  # the settings are read by way of this module, before there is anything to serve
    from goqueue.broker.broker import Broker

_REMEMBERED_MAX = 10_000
_FAILURES_MAX = 10_000
_CHECKS_AT_ONCE = 2
"""Each takes a core for tens of milliseconds, and 16 MiB."""
_CHECKS_WAITING_MAX = 256
_DELAY_S, _DELAY_MAX_S = 0.1, 5.0
_FORGIVEN_S = 60.0
_ADDRESS_FAILURES = 20
"""So many failures of one address count for nothing beside those of each name: many people share some."""
SESSION_MS_MAX = 7 * 24 * 3_600 * 1_000
"""Who has shown a token shows one again after a week at the latest, however long it is good."""
_USE_NOTED_S = 3_600.0
_USES_MAX = 10_000
_NAME_NOTED_MAX = 100
"""So much of a made-up name is written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """How doors find out who is there."""

    root_key: str = ""
    """A key that is good whatever the store holds, with all rights. Empty: there is none."""
    remembered_ms: int = 60_000
    """A password that was found good is not checked again for so long."""
    session_ms: int = 0
    """A Kafka client says again who it is after this; 0: never."""

    def __post_init__(self) -> None:
        require(self.remembered_ms >= 0 and self.session_ms >= 0, "times must be 0 or more")


class Known(NamedTuple):
    """Whoever has shown something good."""

    principal: Principal
    roles: tuple[Role, ...] = ()
    key_id: str = ""
    """Which key was shown; empty: none."""
    until_ms: int | None = None
    """When the token ends that was shown; None: it was something else."""

    def asking(self, host: str, identities: Identities) -> Asking:
        """As the one who decides knows them."""
        return Asking(str(self.principal), host, self.roles, identities.tenant_of(self.principal))


NOBODY = Known(ANONYMOUS)


class TokenReader(Protocol):
    """Reads the tokens of an issuer: `edge/tokens.py`, which needs a package that others need not have."""

    def remembered(self, token: str, *, now_ms: int) -> TokenHolder | None: ...

    async def holder(self, token: str, *, now_ms: int) -> TokenHolder: ...


class Authenticator:
    def __init__(self, broker: "Broker", config: AuthConfig, tokens: TokenReader | None = None) -> None:
        """`tokens`: None where none are taken."""
        self._broker = broker
        self._tokens = tokens
        self.config = config
        self._root_digest = key_digest(config.root_key) if config.root_key else ""
        self._process_key = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, float] = OrderedDict()
        self._failures: OrderedDict[tuple[str, str | None], tuple[int, float]] = OrderedDict()
        self._uses: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        """When it is written down again that somebody has come, with which key and from where."""
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self._waiting = 0

    def by_key(self, secret: str) -> Known | None:
        """Whose key this is, if it is good."""
        if not secret.startswith(KEY_MARK) and not self._root_digest:
            return None
        digest, now_ms = key_digest(secret), self._broker.clock.wall_ms()
        if self._root_digest and hmac.compare_digest(digest, self._root_digest):
            return Known(Principal(USER, ROOT), (Role.ADMIN,), ROOT)
        key = self._broker.identities.good_key(digest, now_ms=now_ms)
        if key is None:
            return None
        self._broker.identities.used_ms[key.key_id] = now_ms
        return Known(key.principal, key.roles, key.key_id)

    async def by_password(self, name: str, password: str) -> Known:
        """Whose name and password these are. Raises NotAuthenticated.

        A key may stand for the password, with its id or its owner's name before it.
        """
        if len(password) <= PASSWORD_BYTES_MAX:
            known = self.by_key(password)
            if known is not None and name in (known.key_id, known.principal.name):
                return known
            if await self._is_good_password(name, password):
                return Known(self._broker.identities.users[name].principal)
        raise NotAuthenticated("the name or the password is not right")

    @property
    def takes_tokens(self) -> bool:
        return self._tokens is not None

    def by_remembered_token(self, token: str) -> Known | None:
        """Whose token this is, if that is known without looking closer."""
        now_ms = self._broker.clock.wall_ms()
        holder = None if self._tokens is None else self._tokens.remembered(token, now_ms=now_ms)
        return None if holder is None else self._holder(holder, now_ms)

    async def by_token(self, token: str) -> Known:
        """Whose token this is. Raises NotAuthenticated."""
        now_ms = self._broker.clock.wall_ms()
        if self._tokens is None:
            raise NotAuthenticated("no tokens are taken here")
        known = self._holder(await self._tokens.holder(token, now_ms=now_ms), now_ms)
        if known is None:
            raise NotAuthenticated("the holder of the token is not let in")
        return known

    def _holder(self, holder: TokenHolder, now_ms: int) -> Known | None:
        """None: the tenant is not here, or a user of that name is kept here, and not let in or another's."""
        user = self._broker.identities.users.get(holder.name)
        tenant = TenantId(holder.tenant) if holder.tenant else None
        if tenant is not None and tenant not in self._broker.tenants.accounts:
            return None
        if user is not None:
            # What is kept here of somebody counts; but whom an issuer names for a tenant is nobody else's.
            is_shut_out = self._broker.identities.is_shut_out(holder.name, now_ms=now_ms)
            if is_shut_out or tenant not in (None, user.tenant):
                return None
            tenant = user.tenant
        return Known(Principal(USER, holder.name, tenant), holder.roles, until_ms=holder.until_ms)

    def by_name(self, name: str) -> Known | None:
        """Somebody who has proved to be that user, if they are let in."""
        now_ms = self._broker.clock.wall_ms()
        if not self._broker.identities.is_good_user(name, now_ms=now_ms):
            return None
        return Known(self._broker.identities.users[name].principal)

    def is_shut_out(self, principal: Principal) -> bool:
        """Whether somebody with a good certificate is not let in: their user is kept, and shut out."""
        now_ms = self._broker.clock.wall_ms()
        return self._broker.identities.is_shut_out(principal.name, now_ms=now_ms)

    def scram_form(self, name: str, mechanism: ScramMechanism) -> ScramForm:
        """What is kept of a user for this mechanism, or something that looks so."""
        user = self._broker.identities.users.get(name)
        form = None if user is None else user.scram.get(mechanism)
        return form or unknown_form(mechanism, name, self._process_key)

    def is_still_good(self, known: Known) -> bool:
        """Whether somebody who was let in would be let in now."""
        identities, now_ms = self._broker.identities, self._broker.clock.wall_ms()
        if known.key_id == ROOT:
            return True
        if known.until_ms is not None:
            holder = TokenHolder(known.principal.name, known.until_ms, known.principal.tenant or "")
            again = self._holder(holder, now_ms)
            return again is not None and again.principal == known.principal and now_ms < known.until_ms
        if known.key_id:
            key = identities.keys.get(known.key_id)
            return key is not None and identities.good_key(key.digest, now_ms=now_ms) is not None
        return identities.is_good_user(known.principal.name, now_ms=now_ms)

    def session_ms(self, known: Known) -> int:
        """How long somebody who has logged in just now is known by that; 0: for ever."""
        set_ms = self.config.session_ms
        if known.until_ms is None:
            return set_ms
        left_ms = min(max(1, known.until_ms - self._broker.clock.wall_ms()), SESSION_MS_MAX)
        return min(set_ms, left_ms) if set_ms else left_ms

    def note_login(self, known: Known, host: str, method: str) -> None:
        """Somebody has been let in: it is written down."""
        self._broker.audit.note(AuditEvent("auth_success", str(known.principal), host, "door", method=method))

    def note_use(self, known: Known, host: str) -> None:
        """Somebody has shown something good with a request: it is written down once an hour and address."""
        if not self._broker.audit.is_on:
            return
        now_s, place = asyncio.get_running_loop().time(), (str(known.principal), known.key_id, host)
        if now_s < self._uses.get(place, 0.0):
            return
        self._uses[place] = now_s + _USE_NOTED_S
        self._uses.move_to_end(place)
        while len(self._uses) > _USES_MAX:
            self._uses.popitem(last=False)
        self.note_login(known, host, f"key {known.key_id}" if known.key_id else "HTTP")

    def note_failure(self, name: str, host: str, reason: str) -> None:
        """Somebody has not."""
        who = f"{USER}:{name[:_NAME_NOTED_MAX]}" if name else ""
        self._broker.audit.note(AuditEvent("auth_failure", who, host, "door", reason))

    async def delay_failure(self, name: str, host: str, reason: str) -> None:
        """Whoever guesses waits: twice as long each time, and is forgiven after a while without a failure.

        So does an address from which many names are tried. Only those who fail wait: nobody is locked out.
        """
        self.note_failure(name, host, reason)
        now_s = asyncio.get_running_loop().time()
        of_address = self._count_failure((host, None), now_s) - _ADDRESS_FAILURES
        count = max(self._count_failure((host, name[:_NAME_NOTED_MAX]), now_s), of_address)
        await asyncio.sleep(min(_DELAY_S * 2 ** min(count - 1, 10), _DELAY_MAX_S))

    def _count_failure(self, whose: tuple[str, str | None], now_s: float) -> int:
        count, last_s = self._failures.pop(whose, (0, now_s))
        count = 1 if now_s - last_s > _FORGIVEN_S else count + 1
        self._failures[whose] = (count, now_s)
        while len(self._failures) > _FAILURES_MAX:
            self._failures.popitem(last=False)
        return count

    async def _is_good_password(self, name: str, password: str) -> bool:
        known, now_ms = self._broker.identities.users.get(name), self._broker.clock.wall_ms()
        # A name that nobody has takes as long as one that somebody has: nobody learns who is there.
        is_good_user = self._broker.identities.is_good_user(name, now_ms=now_ms)
        user = known if known is not None and is_good_user else _STRANGER
        now_s = asyncio.get_running_loop().time()
        token = f"{name}\0{user.updated_ms}\0{password}".encode("utf-8", "surrogatepass")
        digest = hmac.digest(self._process_key, token, "sha256")
        if self._remembered.get(digest, 0.0) > now_s:
            return True
        if self._waiting >= _CHECKS_WAITING_MAX:
            return False
        self._waiting += 1
        try:
            async with self._checks:
                is_good = await self._broker.threads.run(partial(_fits, user, password, now_ms))
        finally:
            self._waiting -= 1
        if is_good:
            self._remembered[digest] = now_s + self.config.remembered_ms / 1_000
            self._remembered.move_to_end(digest)
            while len(self._remembered) > _REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        # It may have changed while it was looked at.
        return is_good and self._broker.identities.users.get(name) == user


_STRANGER = User(
    name="",
    created_ms=0,
    updated_ms=0,
    passwords=(PasswordForm(salt=bytes(16), digest=secrets.token_bytes(32)),),
)
"""Has a password that nobody knows."""


def _fits(user: User, password: str, now_ms: int) -> bool:
    """Takes tens of milliseconds."""
    if user.passwords:
        good = [form for form in user.passwords if form.until_ms is None or now_ms < form.until_ms]
        return any(is_password(password, form) for form in good)
    return any(is_scram_password(password, kind, form) for kind, form in list(user.scram.items())[:1])
