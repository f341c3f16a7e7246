"""Passwords and keys: made, hashed for keeping, and checked. What takes long says so, and runs in a thread.

A password is kept as scrypt has hashed it, for those who send it whole, and as SCRAM has it, for those who
only prove that they know it. A key is 32 random bytes, so one round of SHA-256 is all that it needs.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import NamedTuple

from goqueue.model.identity import KEY_ID_MARK, PasswordForm, ScramForm, ScramMechanism

KEY_MARK = "gq_"
KEY_CHARACTERS = len(KEY_MARK) + 64
PASSWORD_CHARACTERS_MIN = 8
PASSWORD_BYTES_MAX = 1_024
_KEY_PREFIX_CHARACTERS = 11
_SALT_BYTES = 16
_ITERATIONS = 8_192
_SCRYPT_N, _SCRYPT_R, _SCRYPT_P = 2**14, 8, 1
"""16 MiB and some 40 ms: those who guess need as much for each guess."""
_SCRYPT_MEMORY_BYTES = 64 * 1024 * 1024
_HASHES = {ScramMechanism.SHA_256: "sha256", ScramMechanism.SHA_512: "sha512"}


class NewKey(NamedTuple):
    """A key that was made just now: the only time that anybody sees it."""

    secret: str
    key_id: str
    prefix: str
    digest: str


def make_key() -> NewKey:
    secret = KEY_MARK + secrets.token_hex(32)
    key_id = KEY_ID_MARK + secrets.token_hex(8)
    return NewKey(secret, key_id, secret[:_KEY_PREFIX_CHARACTERS], key_digest(secret))


def key_digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def make_password() -> str:
    return secrets.token_urlsafe(24)


def password_form(password: str) -> PasswordForm:
    """Takes some 40 ms."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return PasswordForm(salt=salt, digest=_scrypt(password, salt))


def is_password(password: str, form: PasswordForm) -> bool:
    """Takes some 40 ms."""
    return hmac.compare_digest(_scrypt(password, form.salt), form.digest)


def scram_forms(password: str) -> Mapping[ScramMechanism, ScramForm]:
    """Takes some 10 ms."""
    forms = {}
    for mechanism in ScramMechanism:
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = _salted(mechanism, password, salt, _ITERATIONS)
        forms[mechanism] = scram_form(mechanism, salted, salt, _ITERATIONS)
    return forms


def scram_form(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramForm:
    """What is kept of a password that was salted already."""
    client_key = _mac(mechanism, salted, b"Client Key")
    return ScramForm(
        salt=salt,
        iterations=iterations,
        stored_key=hashlib.new(_HASHES[mechanism], client_key).digest(),
        server_key=_mac(mechanism, salted, b"Server Key"),
    )


def is_scram_password(password: str, mechanism: ScramMechanism, form: ScramForm) -> bool:
    """Whether a password that was sent whole is the one that SCRAM knows. Takes some 10 ms."""
    salted = _salted(mechanism, password, form.salt, form.iterations)
    made = scram_form(mechanism, salted, form.salt, form.iterations)
    return hmac.compare_digest(made.stored_key, form.stored_key)


def is_scram_proof(mechanism: ScramMechanism, form: ScramForm, message: bytes, proof: bytes) -> bool:
    """Whether who has sent the proof knows the password. Quick."""
    signature = _mac(mechanism, form.stored_key, message)
    if len(proof) != len(signature):
        return False
    client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
    return hmac.compare_digest(hashlib.new(_HASHES[mechanism], client_key).digest(), form.stored_key)


def scram_signature(mechanism: ScramMechanism, form: ScramForm, message: bytes) -> bytes:
    """By which the client knows that we know of its password, too."""
    return _mac(mechanism, form.server_key, message)


def unknown_form(mechanism: ScramMechanism, name: str, process_key: bytes) -> ScramForm:
    """For a name that nobody has: as one would be, the same each time, so that nobody learns who is there."""
    salt = hmac.digest(process_key, f"{mechanism}:{name}".encode("utf-8", "surrogatepass"), "sha256")
    width = hashlib.new(_HASHES[mechanism]).digest_size
    return ScramForm(
        salt=salt[:_SALT_BYTES],
        iterations=_ITERATIONS,
        stored_key=secrets.token_bytes(width),
        server_key=secrets.token_bytes(width),
    )


def _salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(
        _HASHES[mechanism], password.encode("utf-8", "surrogatepass"), salt, iterations
    )


def _mac(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, _HASHES[mechanism])


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=_SCRYPT_N,
        r=_SCRYPT_R,
        p=_SCRYPT_P,
        maxmem=_SCRYPT_MEMORY_BYTES,
        dklen=32,
    )
