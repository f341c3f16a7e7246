"""Tokens of an issuer (JWT): who holds one, once its signature and its claims were found good.

The way a token is signed must be one of a short list, and fit the key: what the token says of its key is
looked up among those that the issuer told, and nothing that it names is ever fetched. What was found good is
remembered under a digest that only this process can make, until the token ends or the issuer's keys change.
"""

import hmac
import secrets
import warnings
from collections import OrderedDict
from collections.abc import Mapping

from joserfc import jws
from joserfc.errors import JoseError, SecurityWarning

from goqueue.edge.token_claims import TokenConfig, TokenHolder, read_claims
from goqueue.edge.token_keys import KID_CHARACTERS_MAX, KINDS, Key, TokenKeys
from goqueue.model.errors import NotAuthenticated
from goqueue.model.settings import KiB

TOKEN_BYTES_MAX = 16 * KiB
_HEADER_BYTES_MAX = 4 * KiB
_REMEMBERED_MAX = 10_000
_TYPES = ("jwt", "at+jwt", "application/jwt", "application/at+jwt")

# It is told on standard error of each process that `EdDSA` has a newer name, which issuers do not write yet.
warnings.filterwarnings("ignore", category=SecurityWarning)

_registry = jws.JWSRegistry(algorithms=list(KINDS), strict_check_header=False)
_registry.max_header_length = _HEADER_BYTES_MAX
_registry.max_payload_length = TOKEN_BYTES_MAX


class Tokens:
    def __init__(self, config: TokenConfig, keys: TokenKeys) -> None:
        self._config = config
        self._keys = keys
        self._process_key = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, TokenHolder] = OrderedDict()
        self._keys_seen = 0

    def remembered(self, token: str, *, now_ms: int) -> TokenHolder | None:
        """Whose token this is, if it was found good before and still is."""
        if self._keys_seen != self._keys.changes:
            self._keys_seen = self._keys.changes
            self._remembered.clear()
        digest = self._digest(token)
        holder = self._remembered.get(digest)
        if holder is not None and holder.until_ms <= now_ms:
            del self._remembered[digest]
            return None
        return holder

    async def holder(self, token: str, *, now_ms: int) -> TokenHolder:
        """Whose token this is. Raises NotAuthenticated. Waits only where its key is not known."""
        holder = self.remembered(token, now_ms=now_ms)
        if holder is not None:
            return holder
        if len(token) > TOKEN_BYTES_MAX:
            raise NotAuthenticated(f"the token has more than {TOKEN_BYTES_MAX} bytes")
        signed = _read(token)
        algorithm, key_id = _signed_by(signed.headers())
        if not self._keys.candidates(key_id, algorithm):
            await self._keys.asked_again()
        candidates = self._keys.candidates(key_id, algorithm)
        if not candidates:
            raise NotAuthenticated("the token is signed by a key that the issuer does not tell of")
        if not any(_is_signature(signed, key) for key in candidates):
            raise NotAuthenticated("the signature of the token is not right")
        holder = read_claims(signed.payload, self._config, now_ms=now_ms)
        self._remember(token, holder)
        return holder

    def _remember(self, token: str, holder: TokenHolder) -> None:
        # Keys may have changed while the issuer was asked: what is remembered is of those that are there now.
        self.remembered(token, now_ms=0)
        self._remembered[self._digest(token)] = holder
        while len(self._remembered) > _REMEMBERED_MAX:
            self._remembered.popitem(last=False)

    def _digest(self, token: str) -> bytes:
        return hmac.digest(self._process_key, token.encode("utf-8", "surrogatepass"), "sha256")


def _read(token: str) -> jws.CompactSignature:
    try:
        return jws.extract_compact(token.encode("ascii"), registry=_registry)
    except (JoseError, ValueError, TypeError, AttributeError, RecursionError):
        raise NotAuthenticated("this is no token") from None


def _signed_by(header: Mapping[str, object]) -> tuple[str, str | None]:
    """How a token says to be signed, and by which key. Raises NotAuthenticated."""
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in KINDS:
        raise NotAuthenticated("the token is not signed in a way that is taken here")
    # What must be understood to read a token is not understood here, whatever it is.
    if "crit" in header or "b64" in header or not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise NotAuthenticated("the token is of a kind that is not taken here")
    if key_id is not None and (not isinstance(key_id, str) or len(key_id) > KID_CHARACTERS_MAX):
        raise NotAuthenticated("the token does not say properly by which key it is signed")
    return algorithm, key_id


def _is_signature(signed: jws.CompactSignature, key: Key) -> bool:
    try:
        return jws.validate_compact(signed, key, registry=_registry)
    except (JoseError, ValueError, TypeError):
        return False
