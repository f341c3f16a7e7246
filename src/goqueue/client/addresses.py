"""Where the nodes are: `host:8080,other:8080`, as people write it in one line; `https://` is for TLS."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from goqueue.model.errors import Invalid

_SCHEME = re.compile(r"(https?)://", re.IGNORECASE)
_HOST = re.compile(r"[^\s/@?#\[\]]+")
_PORT_MAX = 65_535
_NONE_GIVEN = "no address of a node is given: write host:port of its HTTP door"


class Address(NamedTuple):
    """The HTTP door of one node."""

    host: str
    port: int
    is_tls: bool = False

    @property
    def place(self) -> str:
        """`host:port`, however it is spoken to."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"https://{self.place}" if self.is_tls else f"http://{self.place}"

    def __str__(self) -> str:
        return self.url if self.is_tls else self.place


def addresses_of(server: str | Sequence[str | Address]) -> tuple[Address, ...]:
    """Where the nodes are, in one line or one by one."""
    if isinstance(server, str):
        return parse_addresses(server)
    if not server:
        raise Invalid(_NONE_GIVEN)
    return tuple(_parse(one) if isinstance(one, str) else Address(*one) for one in server)


def parse_addresses(text: str) -> tuple[Address, ...]:
    """The addresses in a list separated by commas; `http://` or `https://` may stand before each."""
    addresses = tuple(_parse(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise Invalid(_NONE_GIVEN)
    return addresses


def _parse(text: str) -> Address:
    scheme = _SCHEME.match(text)
    host, _, port = text[scheme.end() if scheme else 0 :].rstrip("/").rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX
    if not is_port or not _HOST.fullmatch(host) or not _can_be_looked_up(host):
        raise Invalid(f"{text!r} is not an address like 127.0.0.1:8080")
    return Address(host, int(port), is_tls=scheme is not None and scheme[1].lower() == "https")


def _can_be_looked_up(host: str) -> bool:
    try:
        host.encode("idna")  # as whoever looks it up does
    except UnicodeError:
        return False
    return True
