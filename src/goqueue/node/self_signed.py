"""A certificate that the broker makes for itself: it hides what is said, and its fingerprint says who we are.

It is kept in the data folder and made anew when it ends soon or does not name what it should. Its key is
readable by the broker's user alone.
"""

import os
import socket
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, GeneralName

_DAYS = 365
_DAYS_LEFT_MIN = 30
_NAMES = ("localhost", "goqueue", "goqueue-headless", "*.goqueue", "*.goqueue-headless", "127.0.0.1", "::1")


def self_signed_files(folder: Path, hosts: Sequence[str]) -> tuple[Path, Path]:
    """The files of a certificate for this machine and these hosts, and of its key. Raises OSError."""
    cert_file, key_file = folder / "self-signed.crt", folder / "self-signed.key"
    names = list(dict.fromkeys((*_NAMES, socket.gethostname(), *hosts)))
    try:
        from cryptography import x509
    except ImportError as error:
        raise OSError(
            "a certificate cannot be made without the package cryptography; `pip install 'goqueue[tls]'`, "
            "or name a certificate with GOQUEUE_TLS_CERT_FILE"
        ) from error
    certificate = _kept(cert_file, key_file, names)
    if certificate is None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        certificate, cert_text, key_text = _made(names)
        _write(key_file, key_text, 0o600)
        _write(cert_file, cert_text, 0o644)
    assert isinstance(certificate, x509.Certificate)
    print(f"tls    self-signed certificate {cert_file}, SHA-256 fingerprint {fingerprint(certificate)}")
    return cert_file, key_file


def fingerprint(certificate: "Certificate") -> str:
    """As other tools write it."""
    from cryptography.hazmat.primitives.hashes import SHA256

    return certificate.fingerprint(SHA256()).hex(":").upper()


def _kept(cert_file: Path, key_file: Path, names: Iterable[str]) -> "Certificate | None":
    """The one that is there, if it is good for some time."""
    from cryptography import x509

    if not cert_file.is_file() or not key_file.is_file():
        return None
    try:
        certificate = x509.load_pem_x509_certificate(cert_file.read_bytes())
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return None
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    is_good = left > timedelta(days=_DAYS_LEFT_MIN) and all(_general_name(name) in named for name in names)
    return certificate if is_good else None


def _made(names: Sequence[str]) -> "tuple[Certificate, bytes, bytes]":
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "goqueue")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks of clients may be behind ours
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(map(_general_name, names)), critical=False)
        # Clients are told to trust this very certificate: it vouches for itself, and for no other.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate, certificate.public_bytes(serialization.Encoding.PEM), key_text


def _general_name(name: str) -> "GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(path: Path, text: bytes, mode: int) -> None:
    """Whole or not at all, and never readable by others for a moment."""
    new = path.with_suffix(f"{path.suffix}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
