"""Whether a request that a browser sends for a web page is taken. Plain values in, a refusal or leave out.

Any page that a developer opens can send requests to a broker on the same machine. Three headers tell them
from those of programs, and no page can leave them out or change them: `Origin` and `Sec-Fetch-Site`, which
browsers put on what pages send, and `Host`, which is what the page's author called this machine. A page is
trusted when it is the broker's own or of a listed origin; a name, when it is the door's own or a listed one.
Whoever sends neither of the first two is a program and may do what it likes.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address

from goqueue.model.errors import HostDenied, Invalid, OriginDenied, UnsupportedMediaType

ANY = "*"
_OWN_SITES = ("same-origin", "none")
"""What browsers say of the broker's own pages, and of an address that somebody typed in."""
_LINKED_PATH = "/docs"
"""A page of ours that links of others may lead to."""
_LOOPBACK_NAME = re.compile(r"(.+\.)?localhost\.?")
_HOST = re.compile(r"(\[[0-9a-f:.%]+\]|[^:\[\]@/\s]+)(:\d{1,5})?")
_DATA = re.compile(r"application/(json|[\w.-]+\+json|x-amz-json-1\.\d|octet-stream)\s*(;.*)?")
_QUOTED_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a request tells of where it comes from, and whether it brings something."""

    method: str
    path: str
    hosts: tuple[str, ...] = ()
    """Each header of the name; a proper request has one."""
    origins: tuple[str, ...] = ()
    site: str | None = None
    mode: str | None = None
    destination: str | None = None
    content_type: str | None = None
    has_body: bool = False
    is_preflight: bool = False

    @property
    def is_of_a_page(self) -> bool:
        return bool(self.origins) or self.site is not None


class PageRules:
    """The rules of one door. `listen_on` says where it is, which decides whether names are looked at."""

    def __init__(
        self, *, hosts: tuple[str, ...], origins: tuple[str, ...], advertised_host: str | None
    ) -> None:
        self._listed_hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)
        self._own_hosts = frozenset({advertised_host.lower()} if advertised_host else ())
        self._is_loopback = False
        self._has_listener = False
        self.are_hosts_checked = False

    def listen_on(self, host: str, advertised_host: str | None = None) -> None:
        """On this machine alone every name counts; else only where names are listed.

        Of several addresses, one that others reach makes the door theirs, too.
        """
        self._is_loopback = _is_loopback(host) and (self._is_loopback or not self._has_listener)
        self._has_listener = True
        self._own_hosts |= {host.lower(), (advertised_host or host).lower()}
        self.are_hosts_checked = ANY not in self._listed_hosts and (
            self._is_loopback or bool(self._listed_hosts)
        )

    def admit(self, told: Told) -> str | None:
        """The origin whose page may read the reply, if any but our own may. Raises what is to be refused."""
        self.check_host(told.hosts)
        if not told.is_of_a_page:
            return None
        reader = self._reader(told)
        if told.has_body and not _DATA.fullmatch((told.content_type or "").strip().lower()):
            raise UnsupportedMediaType(
                "what a web page sends is JSON or bytes, and says so: Content-Type: application/json"
            )
        return reader

    def check_host(self, hosts: tuple[str, ...]) -> None:
        """Refuse a name that is not ours: a page can have any name lead to this machine."""
        if len(hosts) > 1:
            raise Invalid("a request has one Host")
        if not hosts or not self.are_hosts_checked or self._is_ours(hosts[0].lower()):
            return
        raise HostDenied(
            f"this door is not called {hosts[0][:_QUOTED_MAX]!r}; use its address, or list the name in the "
            "setting HTTP_HOSTS"
        )

    def _is_ours(self, host_and_port: str) -> bool:
        match = _HOST.fullmatch(host_and_port)
        if match is None:
            return False
        host = match[1].strip("[]")
        if host in self._listed_hosts or host in self._own_hosts or _is_loopback(host):
            return True
        return not self._is_loopback and _is_address(host)

    def _reader(self, told: Told) -> str | None:
        if not told.origins:
            is_link = (
                told.method == "GET"
                and told.path == _LINKED_PATH
                and (told.mode, told.destination) == ("navigate", "document")
            )
            if told.site in _OWN_SITES or is_link:
                return None
            raise OriginDenied(_REFUSAL.format("of another site"))
        origin = told.origins[0].lower()
        if len(told.origins) == 1:
            if told.site in _OWN_SITES or (told.site is None and _is_same(origin, told.hosts)):
                return None
            if ANY in self._origins:
                return ANY
            if origin in self._origins:
                return told.origins[0]
        raise OriginDenied(_REFUSAL.format(f"of {origin[:_QUOTED_MAX]!r}"))


_REFUSAL = "this door takes nothing from web pages {}; list the origin in the setting HTTP_CORS_ORIGINS"


def _is_same(origin: str, hosts: tuple[str, ...]) -> bool:
    """Whether a page is the broker's own, of a browser that does not say so."""
    return bool(hosts) and origin in (f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return ip_address(host).is_loopback if _is_address(host) else bool(_LOOPBACK_NAME.fullmatch(host.lower()))
