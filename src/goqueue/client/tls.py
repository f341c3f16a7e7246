"""How a client knows that a node is one of its own, and shows who it is itself.

Who vouches for nodes is a file of certificates, or the system's. What a node shows is checked, its name too,
unless that is switched off by name. A client has one context, made once; a copy in another process reads the
files there, so nothing of what is in them travels with it.
"""

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, fields

from goqueue.client.addresses import Address
from goqueue.model.errors import Invalid

FileName = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Whom a client trusts, and what it shows of itself. Files are in PEM form."""

    ca_file: FileName | None = None
    """Who vouches for nodes; None: whom the system trusts."""
    cert_file: FileName | None = None
    key_file: FileName | None = None
    """The key of the certificate, where it is not in the same file."""
    insecure_skip_verify: bool = False
    """Take any certificate: nobody then knows who answers. For trying things out."""

    def __post_init__(self) -> None:
        if self.key_file and not self.cert_file:
            raise Invalid("a key file is of use with a certificate only: give its file too")
        if self.insecure_skip_verify and self.ca_file:
            raise Invalid(
                "a CA file says whom to trust, to skip the check is to trust anybody: give one of them"
            )


NO_MORE_THAN_USUAL = Trust()


class Tls:
    """The context of one client; none where nodes are spoken to in the clear."""

    def __init__(self, addresses: Sequence[Address], trust: Trust = NO_MORE_THAN_USUAL) -> None:
        """Raises Invalid where files are no good, or would be of no use."""
        self._trust = trust
        self._is_used = any(address.is_tls for address in addresses)
        if self._is_used and not all(address.is_tls for address in addresses):
            raise Invalid("some of the addresses are https:// and some are not: write it before each of them")
        if not self._is_used and trust != NO_MORE_THAN_USUAL:
            given = ", ".join(field.name for field in fields(trust) if getattr(trust, field.name))
            raise Invalid(f"{given} is for addresses that begin with https://, and {addresses[0]} does not")
        self._made = _context(trust) if self._is_used else None

    @property
    def context(self) -> ssl.SSLContext | None:
        if self._is_used and self._made is None:
            self._made = _context(self._trust)
        return self._made

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_made": None}


def _context(trust: Trust) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=trust.ca_file or None)
    except (OSError, ValueError) as error:
        raise Invalid(f"nobody who vouches is named in {trust.ca_file}: {_why(error)}") from error
    if trust.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if trust.cert_file:
        try:
            context.load_cert_chain(trust.cert_file, trust.key_file or None, password=_no_password)
        except (OSError, ValueError) as error:
            files = f"{trust.cert_file} and {trust.key_file or 'nothing else'}"
            raise Invalid(f"no certificate can be had from {files}: {_why(error)}") from error
    return context


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal, and the program wait for an answer.
    raise ValueError("the key is locked with a password; store one that is not, readable by its owner alone")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "they are not in PEM form, or do not belong together"
    return getattr(error, "strerror", None) or str(error)
