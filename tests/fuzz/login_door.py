"""Attacks on logins: what is said before anybody is known, at both doors, inside TLS and where TLS should be.

Whoever fails is answered late on purpose, so nobody waits for answers here: what counts is that the broker
lives, writes down no failure of its own, and goes on to let in who shows what is good.
"""

import base64
import random
import socket
import ssl
import struct
from contextlib import suppress
from pathlib import Path

import httpx
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import APIS, ApiKey
from tests.doors.certificates import Certificates
from tests.doors.identity_provider import AUDIENCE, ISSUER, Signer, unsigned
from tests.doors.kafka import requests
from tests.doors.kafka.raw_client import RawClient, encode_request
from tests.fuzz.frame import Failed
from tests.fuzz.kafka_requests import MUTATIONS
from tests.integration.running_broker import RunningBroker

PATIENCE_S = 20.0
ANSWER_S = 0.02
ROOT_KEY = "the key of all keys"
PASSWORD = "correct horse battery"
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "", "plain", "x" * 300)


class LoginDoor:
    """A broker whose doors are all locked, and who may come in."""

    def __init__(self, folder: Path) -> None:
        self._certificates = Certificates(folder)
        self._signer = Signer()
        (folder / "keys.json").write_bytes(self._signer.key_set)
        self._trust = self._certificates.trust()
        self._broker = RunningBroker(
            folder / "data",
            "--auth-enabled=true",
            "--tls-enabled=true",
            f"--tls-cert-file={folder}/door.pem",
            f"--tls-key-file={folder}/door.key",
            f"--api-root-key={ROOT_KEY}",
            f"--auth-jwt-jwks={folder}/keys.json",
            f"--auth-jwt-issuer={ISSUER}",
            f"--auth-jwt-audience={AUDIENCE}",
        )

    def start(self) -> RunningBroker:
        self._broker.start()
        https, root = self._broker.http.replace("http:", "https:"), {"X-API-Key": ROOT_KEY}
        with httpx.Client(base_url=https, verify=self._trust, headers=root) as client:
            client.post("/admin/users", json={"name": "alice", "password": PASSWORD}).raise_for_status()
        return self._broker

    def attack(self, chance: random.Random) -> str:
        kind = chance.choice(
            (self._garbage, self._hello, self._login, self._login, self._login, self._header)
        )
        with suppress(OSError):  # being hung up on is an answer
            kind(chance)
        return kind.__name__

    def probe(self) -> None:
        with RawClient(0, over=self._connected()) as client:
            reply = client.ask(ApiKey.API_VERSIONS, 3, client_software_name="p", client_software_version="1")
            if len(reply.api_keys) != len(APIS):
                raise Failed("a probe was answered wrongly")

    def work(self) -> None:
        """Log in by a password and by a token, and be served."""
        bearer = b"n,,\x01auth=Bearer " + self._signer.token("bob").encode() + b"\x01\x01"
        for mechanism, shown in (("PLAIN", f"\0alice\0{PASSWORD}".encode()), ("OAUTHBEARER", bearer)):
            with RawClient(0, over=self._connected()) as client:
                client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism=mechanism)
                if client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=shown).error_code is not ErrorCode.none:
                    raise Failed(f"who shows what is good is not let in by {mechanism}")
                if not client.ask(ApiKey.METADATA, 12, **requests.metadata()).brokers:
                    raise Failed("who has logged in is not served")

    def close(self) -> None:
        """Nothing is kept open."""

    def _plain(self, address: str) -> socket.socket:
        host, _, port = address.rpartition("/")[2].partition(":")
        return socket.create_connection((host, int(port)), timeout=PATIENCE_S)

    def _connected(self, address: str = "") -> ssl.SSLSocket:
        return self._trust.wrap_socket(
            self._plain(address or self._broker.kafka), server_hostname="127.0.0.1"
        )

    def _garbage(self, chance: random.Random) -> None:
        with self._plain(chance.choice((self._broker.kafka, self._broker.http))) as raw:
            raw.sendall(chance.randbytes(chance.choice((0, 1, 5, 100, 2_000))))

    def _hello(self, chance: random.Random) -> None:
        """The first message of TLS, nearly right."""
        said = ssl.MemoryBIO()
        wish = self._trust.wrap_bio(ssl.MemoryBIO(), said, server_hostname="127.0.0.1")
        with suppress(ssl.SSLWantReadError):
            wish.do_handshake()
        hello = bytearray(said.read())
        chance.choice(MUTATIONS)(chance, hello)
        with self._plain(chance.choice((self._broker.kafka, self._broker.http))) as raw:
            raw.sendall(hello)
            raw.settimeout(ANSWER_S)
            raw.recv(100)

    def _login(self, chance: random.Random) -> None:
        with self._connected() as secure:
            frames = []
            for number in range(chance.choice((1, 2, 3, 20))):
                mechanism = chance.choice(_MECHANISMS)
                frames.append(encode_request(ApiKey.SASL_HANDSHAKE, 1, number, mechanism=mechanism))
                shown = self._shown(chance)
                frames.append(encode_request(ApiKey.SASL_AUTHENTICATE, 2, number, auth_bytes=shown))
            if chance.random() < 0.3:
                frame = bytearray(chance.choice(frames))
                chance.choice(MUTATIONS)(chance, frame)
                frames.append(bytes(frame))
            secure.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
            secure.settimeout(ANSWER_S)
            secure.recv(1_000)

    def _header(self, chance: random.Random) -> None:
        kind = chance.choice((b"Bearer ", b"Basic ", b"bearer", b"Digest ", b""))
        shown = self._shown(chance).replace(b"\r", b"").replace(b"\n", b"")
        value = base64.b64encode(shown) if kind == b"Basic " and chance.random() < 0.8 else shown
        name = chance.choice((b"Authorization: " + kind, b"X-API-Key: "))
        with self._connected(self._broker.http) as secure:
            secure.sendall(b"GET /topics HTTP/1.1\r\nHost: 127.0.0.1\r\n" + name + value + b"\r\n\r\n")
            secure.settimeout(ANSWER_S)
            secure.recv(1_000)

    def _shown(self, chance: random.Random) -> bytes:
        token = self._signer.token(
            chance.choice(("bob", "root", "", "x" * 300)), lasts_s=chance.choice((-90, 90))
        )
        header = {
            "alg": chance.choice(("none", "HS256", "ES256", "RS256")),
            "kid": chance.choice(("", "x", None, 7)),
        }
        shown = bytearray(
            chance.choice(
                (
                    f"\0alice\0{PASSWORD[:-1]}".encode(),
                    b"n,,n=alice,r=abcdef",
                    b"c=biws,r=abcdef,p=AAAA",
                    b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01",
                    token.encode(),
                    unsigned(header, {"sub": "bob", "iss": ISSUER, "aud": AUDIENCE, "exp": 1e12}).encode(),
                    b"gq_" + b"0" * 64,
                    chance.randbytes(chance.choice((0, 10, 60_000))),
                )
            )
        )
        if shown and chance.random() < 0.7:
            chance.choice(MUTATIONS)(chance, shown)
        return bytes(shown)
