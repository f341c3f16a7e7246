"""SCRAM, as RFC 5802 has it, from the side that keeps the forms: two messages of the client, and two of ours.

Channel binding is not served, nor are delegation tokens. Nothing here waits.
"""

import binascii
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable

from goqueue.edge.credentials import is_scram_proof, scram_signature
from goqueue.model.errors import NotAuthenticated
from goqueue.model.identity import ScramForm, ScramMechanism

_NONCE = r"(?P<nonce>[!-+\--~]+)"
_FIRST = re.compile(
    r"(?P<header>(?P<binding>n|y|p=[^,]*),(?:a=(?P<for>[^,]*))?,)"
    rf"(?P<bare>n=(?P<name>[^,]+),r={_NONCE}(?P<more>,.*)?)"
)
_FINAL = re.compile(rf"(?P<unproved>c=(?P<header>[A-Za-z0-9+/=]+),r={_NONCE}),p=(?P<proof>[A-Za-z0-9+/=]+)")
_NONCE_BYTES = 18


class ScramExchange:
    def __init__(
        self, mechanism: ScramMechanism, form_of: Callable[[str, ScramMechanism], ScramForm]
    ) -> None:
        self._mechanism = mechanism
        self._form_of = form_of
        self.name = ""
        """Who the client says to be; true once the exchange has ended well."""
        self._form: ScramForm | None = None
        self._header = self._nonce = self._said = ""

    def first(self, message: bytes) -> bytes:
        """The answer to the client's first message. Raises NotAuthenticated."""
        match = _FIRST.fullmatch(_text(message))
        if match is None:
            raise NotAuthenticated("this is no first message of SCRAM")
        if match["binding"] not in ("n", "y"):
            raise NotAuthenticated("SCRAM is not bound to channels here")
        if match["more"]:
            raise NotAuthenticated("delegation tokens and other extensions of SCRAM are not served")
        self.name = _name(match["name"])
        if match["for"] and _name(match["for"]) != self.name:
            raise NotAuthenticated("nobody logs in for another here")
        self._form = form = self._form_of(self.name, self._mechanism)
        self._header = match["header"]
        self._nonce = match["nonce"] + secrets.token_urlsafe(_NONCE_BYTES)
        answer = f"r={self._nonce},s={b64encode(form.salt).decode()},i={form.iterations}"
        self._said = f"{match['bare']},{answer}"
        return answer.encode()

    def final(self, message: bytes) -> bytes:
        """The answer to the client's proof. Raises NotAuthenticated."""
        form, self._form = self._form, None
        match = _FINAL.fullmatch(_text(message))
        if match is None or form is None:
            raise NotAuthenticated("this is no last message of SCRAM")
        # librdkafka before 2.6.1 writes its own part of the nonce twice; Kafka lets it, the proof covers it.
        is_same = match["nonce"].endswith(self._nonce) and _decoded(match["header"]) == self._header.encode()
        proved = f"{self._said},{match['unproved']}".encode()
        if not is_same or not is_scram_proof(self._mechanism, form, proved, _decoded(match["proof"])):
            raise NotAuthenticated("the name or the password is not right")
        return b"v=" + b64encode(scram_signature(self._mechanism, form, proved))


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise NotAuthenticated("SCRAM is spoken in UTF-8") from None


def _name(written: str) -> str:
    if "=" in written.replace("=2C", "").replace("=3D", ""):
        raise NotAuthenticated("in a name of SCRAM = is written =3D")
    return written.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        return b""
