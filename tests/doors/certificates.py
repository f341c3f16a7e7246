"""Certificates for tests: an authority, and what it vouches for, as files."""

import ssl
from pathlib import Path

import trustme

from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.edge.principal_rules import PrincipalRules
from goqueue.edge.tls import ClientAuth, ServerTls, TlsConfig


class Certificates:
    """An authority in a folder. `ca_file` is what its friends trust."""

    def __init__(self, folder: Path, *names: str) -> None:
        """`names`: the door's."""
        self._names = names or ("127.0.0.1", "localhost")
        self._folder = folder
        self._authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(self.ca_file)
        self.show_anew()

    def show_anew(self) -> None:
        """The door has another certificate, in the same files."""
        issued = self._authority.issue_cert(*self._names)
        _write(issued, self._folder / "door.pem", self._folder / "door.key")

    def of(self, name: str) -> tuple[Path, Path]:
        """A client's certificate and its key."""
        cert_file, key_file = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        _write(self._authority.issue_cert(f"{name}@example.org", common_name=name), cert_file, key_file)
        return cert_file, key_file

    def shown(
        self, client_auth: ClientAuth = ClientAuth.NONE, *, rules: str = "DEFAULT", handshake_ms: int = 5_000
    ) -> ServerTls:
        return ServerTls(
            TlsConfig(
                cert_file=self._folder / "door.pem",
                key_file=self._folder / "door.key",
                ca_file=self.ca_file,
                client_auth=client_auth,
                handshake_ms=handshake_ms,
                rules=PrincipalRules(rules),
            )
        )

    def trust(self, client: str | None = None) -> ssl.SSLContext:
        """How a client connects that trusts the authority, and shows a certificate of its own or none."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if client is not None:
            context.load_cert_chain(*self.of(client))
        return context


def tls_listener(shown: ServerTls, *, asks_who: bool = False) -> Listener:
    protocol = SecurityProtocol.SASL_SSL if asks_who else SecurityProtocol.SSL
    return Listener(name=protocol.value.lower(), protocol=protocol, tls=shown)


def _write(issued: trustme.LeafCert, cert_file: Path, key_file: Path) -> None:
    cert_file.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(key_file)
