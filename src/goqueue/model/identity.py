"""Who asks: the word for whoever stands behind a connection or a request, and what is kept of users and keys.

A principal is what a door has made sure of, and nothing more: what it may do is decided elsewhere. It is
written as Kafka writes it, `User:name`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from goqueue.model.access import Role
from goqueue.model.tenants import TenantId

USER = "User"
"""The only kind there is; Kafka's clients and rules name it."""


@dataclass(frozen=True, slots=True)
class Principal:
    kind: str
    name: str
    tenant: TenantId | None = None
    """Whose it is. None: nobody's, as an operator is."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ROOT = "root"
"""The id of the key that a setting gives."""
KEY_ID_MARK = "key_"
ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Whoever comes through a door that does not ask."""


class ScramMechanism(StrEnum):
    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


SCRAM_ITERATIONS_MIN = 4_096
SCRAM_ITERATIONS_MAX = 16_384
"""As Kafka has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramForm:
    """What SCRAM needs to know of a password, from which nobody can log in."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordForm:
    """A password as scrypt has hashed it, for those who send it whole."""

    salt: bytes
    digest: bytes
    until_ms: int | None = None
    """It has been replaced, and is good until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    created_ms: int
    updated_ms: int
    passwords: tuple[PasswordForm, ...] = ()
    """The newest first; of those before it one may be good for a while."""
    scram: Mapping[ScramMechanism, ScramForm] = field(default_factory=dict)
    is_service: bool = False
    """A program, not a person."""
    is_disabled: bool = False
    expires_ms: int | None = None
    tenant: TenantId | None = None

    @property
    def principal(self) -> Principal:
        return Principal(USER, self.name, self.tenant)

    def is_good(self, now_ms: int) -> bool:
        return not self.is_disabled and (self.expires_ms is None or now_ms < self.expires_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it is kept: its hash, and nothing from which it could be made again."""

    key_id: str
    name: str
    prefix: str
    """How it begins, for people who look for it."""
    digest: str
    created_ms: int
    roles: tuple[Role, ...] = ()
    user: str = ""
    """Whose it is; empty: it stands for itself."""
    expires_ms: int | None = None
    is_revoked: bool = False
    tenant: TenantId | None = None

    @property
    def principal(self) -> Principal:
        return Principal(USER, self.user or self.key_id, self.tenant)

    def is_good(self, now_ms: int) -> bool:
        return not self.is_revoked and (self.expires_ms is None or now_ms < self.expires_ms)
