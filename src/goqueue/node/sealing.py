"""Sealing with AES-256-GCM: what leaves the node for a disk that others may read.

    GQE1 | the key's name, 8 bytes | nonce, 12 bytes | what is hidden, and its tag

The key is named by the beginning of its digest, so that the right one of several is taken: the first seals,
all open, and that is how keys are changed. Nonces are drawn at random; a key is good for far more backups
than there will be (2^32). What the bytes are for is authenticated with them.
"""

import base64
import binascii
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from goqueue.model.errors import Corrupt
from goqueue.model.ports import SEALED, Buffer

KEY_BYTES = 32
_NAME_BYTES = 8
_NONCE_BYTES = 12
_HEAD_BYTES = len(SEALED) + _NAME_BYTES + _NONCE_BYTES


@dataclass(frozen=True, slots=True)
class EncryptionConfig:
    """Keys of backups, or where they are; neither: backups are plain."""

    keys: tuple[bytes, ...] = field(default=(), repr=False)
    key_file: Path | None = None

    def __post_init__(self) -> None:
        if self.keys and self.key_file is not None:
            raise ValueError("keys are given, and a file with keys: leave one of them out")


class KeyRing:
    """Keys by name, at least one."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Raises OSError where there are keys and nothing that uses them."""
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise OSError(
                "nothing can be encrypted without the package cryptography: `pip install 'goqueue[tls]'`, "
                "or start without GOQUEUE_ENCRYPTION_KEYS and GOQUEUE_ENCRYPTION_KEY_FILE"
            ) from error
        self._ciphers = {_name(key): AESGCM(key) for key in keys}
        self._newest = _name(keys[0])

    def seal(self, data: Buffer, purpose: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        head = SEALED + self._newest + nonce
        return head + self._ciphers[self._newest].encrypt(nonce, bytes(data), head + purpose.encode())

    def open(self, sealed: Buffer, purpose: str) -> bytes:
        from cryptography.exceptions import InvalidTag

        head, hidden = bytes(sealed[:_HEAD_BYTES]), bytes(sealed[_HEAD_BYTES:])
        name = head[len(SEALED) : len(SEALED) + _NAME_BYTES]
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise Corrupt(f"it is encrypted with key {name.hex()}, which is none of those of this node")
        try:
            return cipher.decrypt(head[-_NONCE_BYTES:], hidden, head + purpose.encode())
        except (InvalidTag, ValueError) as error:
            raise Corrupt(f"it is not what was encrypted with key {name.hex()}") from error


def key_ring(config: EncryptionConfig) -> KeyRing | None:
    """None: nothing is sealed. Raises OSError."""
    keys = config.keys if config.key_file is None else read_key_file(config.key_file)
    return KeyRing(keys) if keys else None


def read_keys(text: str) -> tuple[bytes, ...]:
    """Keys of 32 bytes in base64 or hex, between commas or on lines of their own. Raises ValueError."""
    words = [word.strip() for line in text.splitlines() for word in line.partition("#")[0].split(",")]
    return tuple(_key(word) for word in words if word)


def read_key_file(path: Path) -> tuple[bytes, ...]:
    """The keys of a file. Raises OSError, also for one in which there is none."""
    try:
        keys = read_keys(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OSError(f"{path}: {error}") from error
    if not keys:
        raise OSError(f"{path}: there is no key in it")
    return keys


def _key(word: str) -> bytes:
    for decode in (bytes.fromhex, lambda text: base64.b64decode(text, validate=True)):
        try:
            key = decode(word)
        except (ValueError, binascii.Error):
            continue
        if len(key) == KEY_BYTES:
            return key
    # The word is not repeated: it may be a key with a slip in it.
    raise ValueError(f"a key is {KEY_BYTES} bytes in base64 or hex, as `openssl rand -base64 32` prints them")


def _name(key: bytes) -> bytes:
    return sha256(SEALED + key).digest()[:_NAME_BYTES]
