"""What the claims of a token say of its holder. Plain values in, the holder or a refusal out; no key is seen.

Only claims whose signature was checked come here, so they are the issuer's words. What they lack is never
made up: a token without an end, for somebody else, or of somebody without a name is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from goqueue.model.access import Role
from goqueue.model.errors import InvalidIdentity, NotAuthenticated
from goqueue.model.identity import ANONYMOUS, KEY_ID_MARK, ROOT
from goqueue.model.names import checked_name
from goqueue.model.settings import require

SKEW_MS_MAX = 300_000
TIME_S_MAX = 2**40
"""Some 35,000 years: beyond it no time is meant."""
LISTED_MAX = 1_000
"""So many audiences or roles are looked at."""
_decode = msgspec.json.Decoder(dict[str, object]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConfig:
    """Whose tokens are taken, and what is read from them."""

    issuer: str
    audiences: frozenset[str]
    """A token names at least one of them."""
    skew_ms: int = 30_000
    """By so much the issuer's clock may differ from ours."""
    name_claim: str = "sub"
    tenant_claim: str = ""
    """Empty: tokens say nothing of tenants. Otherwise each must name one."""
    roles_claim: str = ""
    """Empty: tokens give no roles."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Which role each value of that claim stands for; others stand for none."""

    def __post_init__(self) -> None:
        require(bool(self.issuer), "tokens are taken of an issuer that is named")
        require(bool(self.audiences), "tokens are taken that were made for somebody who is named")
        require(bool(self.name_claim), "a claim must say who somebody is")
        require(0 <= self.skew_ms <= SKEW_MS_MAX, f"clocks differ by 0 to {SKEW_MS_MAX} ms")


class TokenHolder(NamedTuple):
    """Who a good token speaks of."""

    name: str
    until_ms: int
    tenant: str = ""
    roles: tuple[Role, ...] = ()


def read_claims(payload: bytes, config: TokenConfig, *, now_ms: int) -> TokenHolder:
    """Whose token this is. Raises NotAuthenticated, in words that repeat nothing of the token."""
    try:
        claims = _decode(payload)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise NotAuthenticated("the token holds no claims") from None
    if claims.get("iss") != config.issuer:
        raise NotAuthenticated("the token is of another issuer")
    if not config.audiences.intersection(_texts(claims.get("aud"))):
        raise NotAuthenticated("the token is meant for somebody else")
    return TokenHolder(
        name=_name(_at(claims, config.name_claim)),
        until_ms=_until_ms(claims, config, now_ms),
        tenant=_tenant(claims, config),
        roles=_roles(claims, config),
    )


def _until_ms(claims: Mapping[str, object], config: TokenConfig, now_ms: int) -> int:
    until_ms = _time_ms(claims, "exp")
    if until_ms is None:
        raise NotAuthenticated("the token has no end")
    until_ms += config.skew_ms
    if until_ms <= now_ms:
        raise NotAuthenticated("the token has ended")
    for claim in ("nbf", "iat"):
        from_ms = _time_ms(claims, claim)
        if from_ms is not None and now_ms + config.skew_ms < from_ms:
            raise NotAuthenticated("the token is not good yet")
    return until_ms


def _time_ms(claims: Mapping[str, object], claim: str) -> int | None:
    """A time that a claim tells in seconds; None: there is no such claim."""
    seconds = claims.get(claim)
    if seconds is None:
        return None
    # A truth value counts as a number in Python, and is none.
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= TIME_S_MAX:
        raise NotAuthenticated(f"the token tells no time in {claim}")
    return int(seconds * 1_000)


def _name(claimed: object) -> str:
    if not isinstance(claimed, str):
        raise NotAuthenticated("the token does not say who its holder is")
    try:
        name = checked_name(claimed, "the holder of a token", error=InvalidIdentity)
    except InvalidIdentity as refusal:
        raise NotAuthenticated("the name of the token's holder cannot be anybody's") from refusal
    # Rules name these, and mean somebody else by them.
    if name in (ANONYMOUS.name, ROOT, "*") or name.startswith(KEY_ID_MARK):
        raise NotAuthenticated("the name of the token's holder is nobody's, or a key's")
    return name


def _tenant(claims: Mapping[str, object], config: TokenConfig) -> str:
    if not config.tenant_claim:
        return ""
    tenant = _at(claims, config.tenant_claim)
    # Who belongs to no tenant is an operator: a token that says nothing must not make one.
    if not isinstance(tenant, str) or not tenant:
        raise NotAuthenticated("the token does not say to which tenant its holder belongs")
    return tenant


def _roles(claims: Mapping[str, object], config: TokenConfig) -> tuple[Role, ...]:
    if not config.roles_claim:
        return ()
    said = set(_texts(_at(claims, config.roles_claim)))
    return tuple(sorted({role for value, role in config.roles.items() if value in said}))


def _at(claims: Mapping[str, object], path: str) -> object:
    """A claim by its name or, where there is none of that name, inside others: `realm_access.roles`."""
    if path in claims:
        return claims[path]
    found: object = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _texts(claimed: object) -> list[str]:
    """One text or several, as issuers write both."""
    listed = claimed if isinstance(claimed, list) else [claimed]
    return [text for text in listed[:LISTED_MAX] if isinstance(text, str)]
