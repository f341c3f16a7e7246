"""Where a door listens, and what it asks of whoever comes there.

A door may listen at several addresses. What clients share (memory, bounds, numbers of connections) is the
door's; what they are asked, and where they are told to come back, is the listener's through which they came.
"""

import asyncio
from dataclasses import dataclass
from enum import Enum
from ssl import SSLContext

from goqueue.edge.principal_rules import subject_of
from goqueue.edge.tls import ServerTls
from goqueue.model.identity import ANONYMOUS, USER, Principal


class SecurityProtocol(Enum):
    """By Kafka's names; at the HTTP door SASL stands for keys and passwords."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def asks_who(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    name: str = "plaintext"
    """Nodes of a cluster have listeners of the same names: whoever came through one is told of those."""
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: ServerTls | None = None
    advertised_host: str | None = None
    """Where clients are told to connect. None: where it listens, or for a wildcard where the client came."""
    advertised_port: int | None = None

    def __post_init__(self) -> None:
        assert (self.tls is not None) == self.protocol.has_tls, "what the protocol says is there"

    @property
    def context(self) -> SSLContext | None:
        """What a server is made with."""
        return None if self.tls is None else self.tls.context

    @property
    def handshake_s(self) -> float | None:
        return None if self.tls is None else self.tls.handshake_s

    def principal(self, transport: asyncio.BaseTransport) -> Principal | None:
        """Who has connected, by the certificate that was shown; None: it is nobody's here."""
        if self.tls is None:
            return ANONYMOUS
        subject = subject_of(transport.get_extra_info("peercert"))
        if not subject:
            return ANONYMOUS
        name = self.tls.config.rules.name(subject)
        return None if name is None else Principal(USER, name)


PLAIN_LISTENER = Listener()
