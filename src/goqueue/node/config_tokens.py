"""Whose tokens are taken, read from settings and checked before anything is opened."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from goqueue.edge.token_claims import TokenConfig
from goqueue.model.access import Role
from goqueue.node import config_table as table
from goqueue.node.config_doors import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWish:
    """An issuer whose tokens are taken, and where its keys are."""

    config: TokenConfig
    key_set: str
    """An address that begins with https://, or a file."""
    ca_file: Path | None = None
    """Who vouches for the address; None: whom the system trusts."""

    @property
    def is_file(self) -> bool:
        return "://" not in self.key_set


def read_tokens(reader: Reader, *, asks_who: bool) -> TokenWish | None:
    """None: no tokens are taken."""
    key_set, issuer, audiences = (
        reader(table.AUTH_JWT_JWKS),
        reader(table.AUTH_JWT_ISSUER),
        reader(table.AUTH_JWT_AUDIENCE),
    )
    name_claim, ca_file = reader(table.AUTH_JWT_NAME_CLAIM), reader(table.AUTH_JWT_CA_FILE)
    skew_ms = reader(table.AUTH_JWT_SKEW_MS)
    tenant_claim, roles_claim = reader(table.AUTH_JWT_TENANT_CLAIM), reader(table.AUTH_JWT_ROLES_CLAIM)
    roles = reader(table.AUTH_JWT_ROLES) or {role.value: role for role in Role}
    if not key_set:
        for setting in (table.AUTH_JWT_ISSUER, table.AUTH_JWT_AUDIENCE, table.AUTH_JWT_ROLES_CLAIM):
            if reader(setting):
                reader.note(setting, f"no tokens are taken without keys; name them: {_KEYS}")
        return None
    if not issuer:
        reader.note(table.AUTH_JWT_ISSUER, "tokens are taken of one issuer; name it as its tokens do")
    if not audiences:
        reader.note(
            table.AUTH_JWT_AUDIENCE, "tokens made for others must not open this; name for whom they are"
        )
    if not name_claim:
        reader.note(
            table.AUTH_JWT_NAME_CLAIM, "a claim must say who somebody is; name it, or leave it at sub"
        )
    if not asks_who:
        reader.note(
            table.AUTH_JWT_JWKS, f"no listener asks who comes; set {table.AUTH_ENABLED.variable}=true"
        )
    if find_spec("joserfc") is None:
        reader.note(table.AUTH_JWT_JWKS, "tokens are read with a package: pip install 'goqueue[jwt]'")
    if ca_file is not None and not ca_file.is_file():
        reader.note(table.AUTH_JWT_CA_FILE, f"there is no file {ca_file}")
    config = TokenConfig(
        issuer=issuer or "unnamed",
        audiences=frozenset(audiences or ("unnamed",)),
        skew_ms=skew_ms,
        name_claim=name_claim or "sub",
        tenant_claim=tenant_claim,
        roles_claim=roles_claim,
        roles=roles,
    )
    wish = TokenWish(config=config, key_set=key_set, ca_file=ca_file)
    if wish.is_file and not Path(key_set).is_file():
        reader.note(table.AUTH_JWT_JWKS, f"there is no file {key_set}")
    return wish


_KEYS = table.AUTH_JWT_JWKS.variable
