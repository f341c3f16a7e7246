"""The keys by which an issuer signs, as it told them last, and when it is asked again.

One task asks, at its own pace: nobody's login does. An issuer that does not answer changes nothing: what is
known stays good. A token by a key that is not known has the issuer asked soon, a few seconds after the last
time at the earliest, however many such tokens come; whoever showed it waits for that, and not for longer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey, import_key

logger = logging.getLogger(__name__)

Key = RSAKey | ECKey | OKPKey
KINDS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", "")),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
    "Ed25519": ("OKP", "Ed25519"),
}
"""The ways to sign that are taken, each with the kind of key and the curve that it needs. In all of them who
checks could not have signed: what is shared between both (HS256), and `none`, are not here."""
KEY_SET_BYTES_MAX = 256 * 1024
KEYS_MAX = 100
KID_CHARACTERS_MAX = 256
RSA_BITS_MIN, RSA_BITS_MAX = 2_048, 8_192
"""Shorter ones can be broken; longer ones take long to check."""
REFRESH_S = 300.0
PAUSE_S = 5.0
"""Between two times that the issuer is asked, at least."""
WAIT_S = 8.0
WAITING_MAX = 256
"""So many logins wait for the issuer at most; others are refused at once."""
_decoder = msgspec.json.Decoder(dict[str, Any])


class BadKeySet(ValueError):
    """What the issuer told is no set of keys, in words for people."""


def read_key_set(text: bytes) -> dict[str, list[Key]]:
    """The keys that may have signed a token, by their ids; those without one under an empty id.

    Raises BadKeySet. A key of a kind that is not taken is left out: issuers list theirs for others as well.
    """
    if len(text) > KEY_SET_BYTES_MAX:
        raise BadKeySet(f"it has more than {KEY_SET_BYTES_MAX} bytes")
    try:
        told = _decoder.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise BadKeySet("it is not JSON") from None
    listed = told.get("keys")
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise BadKeySet(f"it has no list of at most {KEYS_MAX} keys")
    keys: dict[str, list[Key]] = {}
    for each in listed:
        key = _key(each)
        if key is not None:
            keys.setdefault(each.get("kid", ""), []).append(key)
    if not keys:
        raise BadKeySet("none of its keys can be used")
    return keys


def fits(key: Key, algorithm: str) -> bool:
    """Whether a key may have signed that way."""
    kind, curve = KINDS[algorithm]
    told: Mapping[str, object] = key.as_dict(private=False)
    if key.key_type != kind or told.get("alg", algorithm) != algorithm:
        return False
    return not curve or told.get("crv") == curve


class TokenKeys:
    """What an issuer has told of its keys. `keep_fresh` runs as long as tokens are taken."""

    def __init__(
        self, fetch: Callable[[], Awaitable[bytes]], *, refresh_s: float = REFRESH_S, pause_s: float = PAUSE_S
    ) -> None:
        """`fetch` gives what the issuer tells; it raises OSError, and ends in its own time."""
        self._fetch = fetch
        self._refresh_s = refresh_s
        self._pause_s = pause_s
        self._told = b""
        self._keys: dict[str, list[Key]] = {}
        self.changes = 0
        """Grows when keys come or go: what was found good by them is looked at anew."""
        self._is_failing = False
        self._wanted = asyncio.Event()
        self._waiting: set[asyncio.Future[None]] = set()

    def candidates(self, key_id: str | None, algorithm: str) -> list[Key]:
        """The keys that may have signed a token; one without an id fits if there is but one key for it."""
        if key_id is not None:
            return [key for key in self._keys.get(key_id, []) if fits(key, algorithm)]
        found = [key for keys in self._keys.values() for key in keys if fits(key, algorithm)]
        return found if len(found) == 1 else []

    async def keep_fresh(self) -> None:
        """Ask the issuer now and then, and soon when somebody wants it, for ever."""
        while True:
            await self._ask()
            await asyncio.sleep(self._pause_s)
            if not self._is_failing:
                try:
                    async with asyncio.timeout(self._refresh_s):
                        await self._wanted.wait()
                except TimeoutError:
                    pass

    async def asked_again(self) -> None:
        """Return when the issuer has been asked once more, or it has taken too long."""
        if len(self._waiting) >= WAITING_MAX:
            return
        self._wanted.set()
        told = asyncio.get_running_loop().create_future()
        self._waiting.add(told)
        try:
            async with asyncio.timeout(WAIT_S):
                await told
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(told)

    async def _ask(self) -> None:
        self._wanted.clear()
        try:
            self._take(await self._fetch())
        except (OSError, BadKeySet) as error:
            if not self._is_failing:
                logger.warning("token_keys_not_read reason=%s", error)
            self._is_failing = True
        else:
            if self._is_failing or self.changes == 1:
                logger.info("token_keys_read keys=%s", sum(map(len, self._keys.values())))
            self._is_failing = False
        for told in self._waiting:
            if not told.done():
                told.set_result(None)

    def _take(self, told: bytes) -> None:
        if told != self._told:
            self._keys = read_key_set(told)
            self._told = told
            self.changes += 1


def _key(told: object) -> Key | None:
    """A key of the list, if it is one that may be used. The list may hold anything."""
    if not isinstance(told, dict) or told.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    uses = told.get("key_ops", ["verify"])
    if told.get("use", "sig") != "sig" or not isinstance(uses, list) or "verify" not in uses:
        return None
    if not isinstance(told.get("kid", ""), str) or len(told.get("kid", "")) > KID_CHARACTERS_MAX:
        return None
    try:
        key = import_key({name: value for name, value in told.items() if name not in _SECRET_PARTS})
        assert isinstance(key, RSAKey | ECKey | OKPKey), "these kinds were asked for"
        bits = key.public_key.key_size if isinstance(key, RSAKey) else RSA_BITS_MIN
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    if not RSA_BITS_MIN <= bits <= RSA_BITS_MAX or not any(fits(key, algorithm) for algorithm in KINDS):
        return None
    return key


_SECRET_PARTS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})
"""An issuer that tells these has a problem of its own; they are not kept here."""
