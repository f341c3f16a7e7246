"""The certificate of a door, as it is now.

It can be read anew while the door is open: who is connected stays, who comes next is shown the new one. Files
that do not fit together are left alone: the door goes on with what it has.
"""

import ssl
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from goqueue.edge.principal_rules import PrincipalRules
from goqueue.model.settings import require

HANDSHAKE_MS = 10_000
"""A handshake that is not done after this is given up."""


class ClientAuth(Enum):
    """Whether clients show certificates. Unchecked, one would prove nothing: what is shown is checked."""

    NONE = "none"
    REQUEST = "request"
    REQUIRE = "require"
    VERIFY = "verify"
    REQUIRE_VERIFY = "require-verify"

    @property
    def is_required(self) -> bool:
        return self in (ClientAuth.REQUIRE, ClientAuth.REQUIRE_VERIFY)

    @property
    def mode(self) -> ssl.VerifyMode:
        if self.is_required:
            return ssl.CERT_REQUIRED
        return ssl.CERT_NONE if self is ClientAuth.NONE else ssl.CERT_OPTIONAL


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    cert_file: Path
    key_file: Path
    ca_file: Path | None = None
    """Who vouches for clients, and in a cluster for other nodes."""
    client_auth: ClientAuth = ClientAuth.NONE
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    handshake_ms: int = HANDSHAKE_MS
    rules: PrincipalRules = field(default_factory=PrincipalRules, compare=False)

    def __post_init__(self) -> None:
        require(self.handshake_ms > 0, "a handshake must have some time")
        require(
            self.client_auth is ClientAuth.NONE or self.ca_file is not None,
            "certificates of clients can only be checked with the certificate of who vouches for them",
        )

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.cert_file, self.key_file, *(() if self.ca_file is None else (self.ca_file,)))


class BadCertificate(ValueError):
    """Files from which no certificate can be had, in words for people."""


class ServerTls:
    """What a listener shows to those who connect."""

    def __init__(self, config: TlsConfig) -> None:
        """Raises BadCertificate."""
        self.config = config
        self.context = _context(config, ssl.PROTOCOL_TLS_SERVER)
        self.context.verify_mode = config.client_auth.mode
        self._greeting: ssl.SSLContext | None = None

    @property
    def handshake_s(self) -> float:
        return self.config.handshake_ms / 1_000

    def reload(self) -> None:
        """Read the files anew. Raises BadCertificate, and nothing has changed then."""
        _context(self.config, ssl.PROTOCOL_TLS_SERVER)  # whether they are good, before anybody is shown them
        _load(self.context, self.config)
        self._greeting = None

    def greeting(self) -> ssl.SSLContext:
        """How a node greets another: it shows its certificate, and checks the other's."""
        if self._greeting is None:
            self._greeting = _context(self.config, ssl.PROTOCOL_TLS_CLIENT)
        return self._greeting


def _context(config: TlsConfig, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = config.min_version
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _load(context, config)
    return context


def _load(context: ssl.SSLContext, config: TlsConfig) -> None:
    try:
        context.load_cert_chain(config.cert_file, config.key_file, password=_no_password)
    except (OSError, ValueError) as error:
        raise BadCertificate(
            f"no certificate can be had from {config.cert_file} and {config.key_file}: {_why(error)}"
        ) from error
    if config.ca_file is not None:
        try:
            context.load_verify_locations(config.ca_file)
        except (OSError, ValueError) as error:
            raise BadCertificate(f"nobody who vouches is named in {config.ca_file}: {_why(error)}") from error


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal, and the broker wait for an answer.
    raise ValueError("the key is locked with a password; store one that is not, readable by the broker alone")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"{error.reason or 'they are not in PEM form, or do not belong together'}"
    return getattr(error, "strerror", None) or str(error)
