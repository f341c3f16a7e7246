"""How a setting's text becomes a value: sizes, numbers, switches, addresses.

Each reader takes the text as a user wrote it and gives the value, or raises ValueError with a text
that says what to write instead. It never names the setting: the caller knows where the text came from.
"""

import ipaddress
import logging
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from goqueue.edge.listening import SecurityProtocol
from goqueue.edge.tls import ClientAuth
from goqueue.model.access import Role
from goqueue.model.settings import KiB, MiB

GiB = 1024 * MiB
_SIZE = re.compile(r"(?P<count>-?\d+)\s*(?:(?P<unit>[KMG])i?B?|B)?", re.IGNORECASE)
_UNITS = {"k": KiB, "m": MiB, "g": GiB}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to
_ORIGIN = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:\d{1,5})?")
OFF = "off"
ROOT_KEY_CHARACTERS_MIN = 16
ANY = "*"


class Address(NamedTuple):
    """Where a door listens, or where clients find it."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_anywhere(self) -> bool:
        """Whether it stands for every interface of a machine."""
        return self.host in _WILDCARDS

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def clashes_with(self, other: "Address") -> bool:
        """Whether two doors cannot both listen: the same port on the same, or on every, interface."""
        if self.port != other.port or self.port == 0:
            return False
        return self.host == other.host or bool(_WILDCARDS & {self.host, other.host})


def whole_number(*, least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers within bounds, both included."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a whole number") from None
        return _within(number, least, most, str(number))

    return read


def off_or_whole_number(*, least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers within bounds, and of 0, which is off."""
    read = whole_number(least=least, most=most)
    return lambda text: 0 if text.strip() == "0" else read(text)


def size(*, least: int, most: int) -> Callable[[str], int]:
    """A reader of byte counts: plain numbers, or with KiB, MiB, GiB (KB, MB, GB mean the same)."""

    def read(text: str) -> int:
        match = _SIZE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a size; write bytes, or a number with KiB, MiB or GiB")
        unit = match["unit"]
        return _within(int(match["count"]) * (_UNITS[unit.lower()] if unit else 1), least, most, text)

    return read


def share(text: str) -> float:
    """A part of a whole, 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number from 0 to 1") from None
    if not 0 <= number <= 1:
        raise ValueError(f"{text} is not from 0 (nothing) to 1 (everything)")
    return number


def switch(text: str) -> bool:
    """true or false, in the words people use for it."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def address(text: str) -> Address:
    """host:port; `:port` is every interface, an IPv6 host stands in brackets."""
    host, colon, port_text = text.strip().rpartition(":")
    if not colon:
        raise ValueError(f"{text!r} has no port; write host:port, for example 127.0.0.1:9092")
    if not (port_text.isascii() and port_text.isdigit()) or int(port_text) > 65_535:
        raise ValueError(f"{port_text!r} is not a port; use a number from 0 to 65535")
    return Address(_host(host), int(port_text))


class Listening(NamedTuple):
    """An address at which a door listens, as it was written."""

    address: Address
    protocol: SecurityProtocol | None = None
    """None: as TLS and authentication are switched on for the whole node."""
    name: str = ""
    """Empty: called by its protocol."""
    advertised: Address | None = None


def listeners(text: str) -> tuple[Listening, ...]:
    """A comma list of `host:port`, each with `PROTOCOL://` or `name=PROTOCOL://` before it if need be.

    Behind it may stand where clients are told to come back, `@host:port`. `off` is no listener.
    """
    if text.strip().lower() == OFF:
        return ()
    found = tuple(_listening(word.strip()) for word in text.split(","))
    for position, one in enumerate(found):
        for other in found[:position]:
            if one.address.clashes_with(other.address):
                raise ValueError(f"{one.address} is named twice; give each listener its own port")
            if (one.name, one.protocol) == (other.name, other.protocol):
                raise ValueError(
                    f"{one.address} is called as {other.address} is; write name=PROTOCOL://host:port"
                )
    return found


def _listening(text: str) -> Listening:
    before, mark, rest = text.rpartition("://")
    place, at, told = rest.partition("@")
    name, _, word = before.rpartition("=")
    if mark and word.upper() not in SecurityProtocol.__members__:
        raise ValueError(f"{word!r} is no protocol; use {', '.join(SecurityProtocol.__members__)}")
    if name:
        short_name(name)
    elif before.startswith("="):
        raise ValueError(f"{text!r} has no name before the =")
    return Listening(
        address(place),
        SecurityProtocol[word.upper()] if mark else None,
        name,
        advertised(told) if at else None,
    )


def advertised(text: str) -> Address | None:
    """What clients are told to connect to; empty means the address the door listens on."""
    if not text.strip():
        return None
    told = address(text)
    if told.host in _WILDCARDS or told.port == 0:
        raise ValueError(f"{text!r} is not an address a client can connect to; name a host and a port")
    return told


def addresses(text: str) -> tuple[Address, ...]:
    """A comma list of host:port."""
    found = tuple(address(word) for word in text.split(",") if word.strip())
    for told in found:
        if told.host in _WILDCARDS or told.port == 0:
            raise ValueError(f"{told} is not an address to connect to; name a host and a port")
    return found


class StoreEndpoints(NamedTuple):
    """Where etcd is."""

    members: tuple[Address, ...]
    has_tls: bool = False


def store_endpoints(text: str) -> StoreEndpoints:
    """A comma list of members of etcd, host:port; `https://` before all of them is TLS."""
    named = words(text)
    has_tls = [word.startswith("https://") for word in named]
    if any(has_tls) and not all(has_tls):
        raise ValueError("either all members of etcd speak TLS or none: write https:// before each of them")
    found = addresses(",".join(word.removeprefix("https://").removeprefix("http://") for word in named))
    if not found:
        raise ValueError("no address of etcd is named; write host:port, separated by commas")
    return StoreEndpoints(found, all(has_tls))


def short_name(text: str) -> str:
    if not _HOST_NAME.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a name; use letters, digits, dots, dashes and underscores")
    return text.strip()


def host_names(text: str) -> tuple[str, ...]:
    """A comma list of host names without ports, or `*` for any."""
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    for name in names:
        if name != ANY and not _HOST_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a host name; write names without ports, separated by commas")
    return names


def principals(text: str) -> tuple[str, ...]:
    """A comma list of those who ask, each as `User:name`."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if not word.startswith("User:") or word in ("User:", "User:*"):
            raise ValueError(f"{word!r} does not name anybody; write for example User:root")
    return words


def key_set(text: str) -> str:
    """Where the keys of an issuer are: an https address or a file; nothing is none."""
    place = text.strip()
    if "://" not in place:
        return place
    address = urlsplit(place)
    if address.scheme != "https" or not address.hostname or "@" in address.netloc:
        raise ValueError(
            "keys are had from an address that begins with https:// and names no user, or a file"
        )
    return place


def words(text: str) -> tuple[str, ...]:
    """A comma list of words."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def role_values(text: str) -> dict[str, Role]:
    """A comma list of `value=role`."""
    found = {}
    for word in words(text):
        value, separator, role = word.rpartition("=")
        if not separator or not value or role not in tuple(Role):
            raise ValueError(
                f"{word!r} does not say which role a value stands for; write for example ops=operator; there "
                f"are {', '.join(Role)}"
            )
        found[value] = Role(role)
    return found


def origins(text: str) -> tuple[str, ...]:
    """A comma list of origins of web pages, or `*` for all."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word != ANY and not _ORIGIN.fullmatch(word):
            raise ValueError(f"{word!r} is not an origin; write for example https://dashboard.example:3000")
    return words


def node_id(text: str) -> str:
    if not text or any(character.isspace() for character in text):
        raise ValueError("the node id must not be empty or hold white space")
    return text


def folder(text: str) -> Path:
    if not text.strip():
        raise ValueError("the folder must not be empty; name one, for example ./data")
    return Path(text)


def one_of(*words: str) -> Callable[[str], str]:
    """A reader of one of a few words, in any letter case."""

    def read(text: str) -> str:
        word = text.strip().lower()
        if word not in words:
            raise ValueError(f"{text!r} is not one of {', '.join(words)}")
        return word

    return read


def client_auth(text: str) -> ClientAuth:
    return ClientAuth(one_of(*(kind.value for kind in ClientAuth))(text or ClientAuth.NONE.value))


def tls_version(text: str) -> ssl.TLSVersion:
    return {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[one_of("1.2", "1.3")(text or "1.2")]


def root_key(text: str) -> str:
    """A secret; it is not repeated where it is refused."""
    if text and len(text) < ROOT_KEY_CHARACTERS_MIN:
        raise ValueError(f"it has fewer than {ROOT_KEY_CHARACTERS_MIN} characters")
    return text


def file_path(text: str) -> Path | None:
    """A file; nothing is none."""
    return Path(text) if text.strip() else None


def logging_level(text: str) -> int:
    level = logging.getLevelNamesMapping().get(text.strip().upper(), logging.NOTSET)
    if level == logging.NOTSET:
        raise ValueError(f"{text!r} is not a level; use debug, info, warning or error")
    return level


def _within(number: int, least: int, most: int, text: str) -> int:
    if not least <= number <= most:
        raise ValueError(f"{text} is out of range; use {least} to {most}")
    return number


def _host(text: str) -> str:
    if not text:
        return "0.0.0.0"  # noqa: S104 - an open door there is refused at the start
    if text.startswith("[") and text.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError:
            raise ValueError(f"{text} is not an IPv6 address") from None
    if ":" in text:
        raise ValueError(f"an IPv6 host stands in brackets: [{text}]:port")
    if not _HOST_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a host name or an IP address")
    return text
