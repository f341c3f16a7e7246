"""Where doors listen and what they ask there, read from settings and checked before anything is opened."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from ssl import TLSVersion
from typing import Protocol, TypeVar

from goqueue.edge.listening import SecurityProtocol
from goqueue.edge.principal_rules import PrincipalRules
from goqueue.edge.tls import HANDSHAKE_MS, ClientAuth, TlsConfig
from goqueue.node import config_table as table
from goqueue.node.config_table import Setting, TlsTable
from goqueue.node.config_values import Address, Listening

T = TypeVar("T")
_PROTOCOLS = {
    (False, False): SecurityProtocol.PLAINTEXT,
    (True, False): SecurityProtocol.SSL,
    (False, True): SecurityProtocol.SASL_PLAINTEXT,
    (True, True): SecurityProtocol.SASL_SSL,
}
"""By whether TLS is spoken, and whether it is asked who comes."""


class Reader(Protocol):
    def __call__(self, setting: Setting[T]) -> T: ...

    def note(self, setting: Setting[T], problem: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerConfig:
    """One address at which a door listens."""

    name: str
    address: Address
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    advertised: Address | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsWish:
    """A certificate that some doors need: from files, or made by the broker itself."""

    cert_file: Path | None
    key_file: Path | None
    ca_file: Path | None
    client_auth: ClientAuth
    min_version: TLSVersion
    handshake_ms: int = HANDSHAKE_MS
    rules: PrincipalRules = field(default_factory=PrincipalRules, compare=False)

    def config(self, made: Callable[[], tuple[Path, Path]]) -> TlsConfig:
        """With the files that are named, or those that are made now."""
        if self.cert_file is not None and self.key_file is not None:
            cert_file, key_file = self.cert_file, self.key_file
        else:
            cert_file, key_file = made()
        return TlsConfig(
            cert_file=cert_file,
            key_file=key_file,
            ca_file=self.ca_file,
            client_auth=self.client_auth,
            min_version=self.min_version,
            handshake_ms=self.handshake_ms,
            rules=self.rules,
        )


def read_listeners(reader: Reader) -> tuple[tuple[ListenerConfig, ...], tuple[ListenerConfig, ...]]:
    """Those of the Kafka door, and those of the HTTP door."""
    asked = reader(table.TLS.enabled), reader(table.AUTH_ENABLED)
    kafka = tuple(_meant(listening, asked) for listening in reader(table.KAFKA_LISTENERS))
    http = tuple(_meant(listening, asked) for listening in reader(table.HTTP_LISTENERS))
    if not kafka and not http:
        reader.note(table.KAFKA_LISTENERS, "a broker needs a door; leave at least one listener on")
    for one in http:
        if other := next((other for other in kafka if other.address.clashes_with(one.address)), None):
            reader.note(
                table.HTTP_LISTENERS,
                f"{one.address} is taken by {table.KAFKA_LISTENERS.variable}={other.address}; "
                "give each door its own port",
            )
    if kafka and kafka[0].advertised is None and (told := reader(table.KAFKA_ADVERTISED)) is not None:
        kafka = (replace(kafka[0], advertised=told), *kafka[1:])
    is_insecure = reader(table.INSECURE)
    for setting, listeners in ((table.KAFKA_LISTENERS, kafka), (table.HTTP_LISTENERS, http)):
        for listener in listeners:
            is_open = listener.protocol is SecurityProtocol.PLAINTEXT and not listener.address.is_loopback
            if is_open and not is_insecure:
                reader.note(setting, _why_insecure(listener.address))
    return kafka, http


def read_tls(reader: Reader, settings: TlsTable, *, is_needed: bool) -> TlsWish | None:
    """The certificate of some doors; None where none of them speaks TLS."""
    wish = TlsWish(
        cert_file=reader(settings.cert_file),
        key_file=reader(settings.key_file),
        ca_file=reader(settings.ca_file),
        client_auth=reader(settings.client_auth),
        min_version=reader(settings.min_version),
    )
    if settings is table.TLS:  # between nodes the greeting has its own bound, and says who is there
        wish = replace(
            wish, handshake_ms=reader(table.TLS_HANDSHAKE_MS), rules=reader(table.TLS_PRINCIPAL_RULES)
        )
    is_self_signed = reader(settings.self_signed)
    if not is_needed:
        return None
    for setting in (settings.cert_file, settings.key_file, settings.ca_file):
        if (path := reader(setting)) is not None and not path.is_file():
            reader.note(setting, f"there is no file {path}")
    if (wish.cert_file is None) != (wish.key_file is None):
        missing = settings.key_file if wish.key_file is None else settings.cert_file
        reader.note(missing, "a certificate and its key are named together")
    elif wish.cert_file is None and not is_self_signed:
        reader.note(
            settings.cert_file,
            f"TLS needs a certificate: name it, and its key with {settings.key_file.variable}"
            + (f", or set {settings.self_signed.variable}=true" if settings is table.TLS else ""),
        )
    if settings is table.CLUSTER_TLS and wish.ca_file is None:
        reader.note(settings.ca_file, "nodes check each other's certificates; name who vouches for them")
    elif wish.client_auth is not ClientAuth.NONE and wish.ca_file is None:
        reader.note(
            settings.client_auth,
            f"certificates are checked with those of who vouches for them; name {settings.ca_file.variable}",
        )
    return wish


def _meant(listening: Listening, asked: tuple[bool, bool]) -> ListenerConfig:
    protocol = listening.protocol or _PROTOCOLS[asked]
    return ListenerConfig(
        name=listening.name or protocol.value.lower(),
        address=listening.address,
        protocol=protocol,
        advertised=listening.advertised,
    )


def _why_insecure(address: Address) -> str:
    return (
        f"other machines can reach {address}, and nothing there is locked: set "
        f"{table.TLS.enabled.variable}=true with a certificate, or {table.AUTH_ENABLED.variable}=true, "
        f"or listen on 127.0.0.1; "
        f"{table.INSECURE.variable}=true ({table.INSECURE.flag}) opens it all the same"
    )
