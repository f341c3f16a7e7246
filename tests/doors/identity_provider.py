"""A small identity provider: keys that rotate, tokens that end, and an address that may be down."""

import asyncio
import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, KeyParameters, OKPKey, RSAKey

from goqueue.broker.broker import Broker
from goqueue.edge.authentication import TokenReader
from goqueue.edge.token_claims import TokenConfig
from goqueue.edge.token_keys import TokenKeys
from goqueue.edge.tokens import Tokens
from tests.doors.certificates import Certificates

ISSUER = "https://id.example"
AUDIENCE = "goqueue"
CONFIG = TokenConfig(issuer=ISSUER, audiences=frozenset({AUDIENCE}))
SigningKey = RSAKey | ECKey | OKPKey


class Signer:
    """An issuer's keys, the newest last, and tokens by the newest. Nothing of it is on a network."""

    def __init__(self, algorithm: str = "ES256") -> None:
        self.algorithm = algorithm
        self.keys: dict[str, SigningKey] = {}
        self.rotate()

    def rotate(self, *, keeps_old: bool = True) -> None:
        """Sign by another key from now on; the old one is told as well, or no longer."""
        if not keeps_old:
            self.keys.clear()
        key_id = f"key {time.monotonic_ns()}"
        self.keys[key_id] = _new_key(self.algorithm, key_id)

    @property
    def newest(self) -> SigningKey:
        return list(self.keys.values())[-1]

    @property
    def key_set(self) -> bytes:
        return json.dumps({"keys": [key.as_dict(private=False) for key in self.keys.values()]}).encode()

    def token(
        self,
        name: str = "alice",
        *,
        lasts_s: float = 300,
        header: Mapping[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """A good token, but for what is asked for otherwise; a claim that is None is left out."""
        now_s = time.time()
        said = {
            "sub": name,
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": int(now_s),
            "exp": now_s + lasts_s,
            **claims,
        }
        payload = json.dumps({claim: value for claim, value in said.items() if value is not None})
        return self.signed(payload.encode(), header)

    def signed(self, payload: bytes, header: Mapping[str, Any] | None = None) -> str:
        """Whatever is to be signed, by the newest key."""
        key = self.newest
        said = {"alg": self.algorithm, "typ": "JWT", "kid": key.kid, **(header or {})}
        said = {name: value for name, value in said.items() if value is not None}
        head = f"{_encoded(json.dumps(said).encode())}.{_encoded(payload)}"
        return f"{head}.{_encoded(jws.JWSRegistry.algorithms[self.algorithm].sign(head.encode(), key))}"


class IdentityProvider(Signer):
    """A signer that tells its keys over https. Closed by `close`."""

    def __init__(self, folder: Path, algorithm: str = "RS256") -> None:
        super().__init__(algorithm)
        folder.mkdir(exist_ok=True)
        self._certificates = Certificates(folder)
        self.ca_file = self._certificates.ca_file
        self.asked = 0
        self.answer: tuple[int, dict[str, str], bytes] | None = None
        """What is told instead of the keys."""
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self.go_up()

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self._port}/keys"

    @property
    def flags(self) -> tuple[str, ...]:
        """Settings of a broker that takes its tokens."""
        return (
            f"--auth-jwt-jwks={self.address}",
            f"--auth-jwt-ca-file={self.ca_file}",
            f"--auth-jwt-issuer={ISSUER}",
            f"--auth-jwt-audience={AUDIENCE}",
        )

    def go_up(self) -> None:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked += 1
                status, headers, body = provider.answer or (200, {}, provider.key_set)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        context: ssl.SSLContext = self._certificates.shown().context
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def go_down(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    close = go_down


def tokens_of(signer: Signer, config: TokenConfig = CONFIG) -> Callable[[Broker], TokenReader]:
    """How a broker begins to take the tokens of an issuer that is at hand."""

    async def fetch() -> bytes:
        return signer.key_set

    def open_tokens(broker: Broker) -> TokenReader:
        keys = TokenKeys(fetch, pause_s=0.01)
        broker.keep(asyncio.get_running_loop().create_task(keys.keep_fresh()))
        return Tokens(config, keys)

    return open_tokens


def unsigned(header: Mapping[str, Any], payload: Mapping[str, Any], signature: bytes = b"") -> str:
    """A token that somebody has put together without a key."""
    parts = (json.dumps(header).encode(), json.dumps(payload).encode(), signature)
    return ".".join(map(_encoded, parts))


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def _new_key(algorithm: str, key_id: str) -> SigningKey:
    told: KeyParameters = {"kid": key_id, "use": "sig"}
    if algorithm.startswith("ES"):
        return ECKey.generate_key({"256": "P-256", "384": "P-384", "512": "P-521"}[algorithm[2:]], told)
    if algorithm.startswith("Ed"):
        return OKPKey.generate_key("Ed25519", told)
    return RSAKey.generate_key(2_048, told)
