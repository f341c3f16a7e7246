"""Real clients through locked doors: each mechanism of SASL over TLS, and certificates of their own.

What `test_sasl.py` and `test_tokens.py` show of the Python clients is not shown again: here are the Java
client, kcat, and certificates.
"""

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from kafka import KafkaConsumer, KafkaProducer

from goqueue.broker.access.identities import create_user
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.credentials import password_form, scram_forms
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.tls import ClientAuth
from goqueue.edge.token_claims import TokenConfig
from goqueue.model.identity_commands import CreateUser
from goqueue.model.settings import AccessConfig, BrokerConfig
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.identity_provider import AUDIENCE, ISSUER, Signer, tokens_of
from tests.doors.kafka.door_thread import DoorThread
from tests.java.running import run_java

pytestmark = pytest.mark.slow

PASSWORD = "correct horse battery"
BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOKENS = TokenConfig(issuer=ISSUER, audiences=frozenset({AUDIENCE}), skew_ms=0)
KCAT = shutil.which("kcat")
NAMED = "RULE:^CN=(.*?),.*$/$1/"


class Locked:
    """A door with two listeners over TLS: one asks for a login, one for a certificate. Alice may come in."""

    def __init__(self, folder: Path) -> None:
        self.certificates = Certificates(folder)
        self.signer = Signer("RS256")
        (folder / "data").mkdir()
        self.folder = folder
        self.door = DoorThread(
            folder / "data",
            BrokerConfig(access=AccessConfig(is_on=True, super_users=("User:alice",))),
            KafkaConfig(),
            listener=tls_listener(self.certificates.shown(), asks_who=True),
            auth=AuthConfig(),
            tokens=tokens_of(self.signer, TOKENS),
        )
        shown = self.certificates.shown(ClientAuth.REQUIRE, rules=NAMED)
        self.certified = f"127.0.0.1:{self.door.listen(tls_listener(shown))}"
        self.asking = self.door.address
        command = CreateUser(name="alice", password=password_form(PASSWORD), scram=scram_forms(PASSWORD))
        self.door.run(create_user(self.door.broker, command))


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Locked]:
    locked = Locked(tmp_path)
    yield locked
    locked.door.close()


def by_confluent_kafka(locked: Locked, name: str) -> bytes:
    cert_file, key_file = locked.certificates.of(name)
    config: dict[str, Any] = {
        "bootstrap.servers": locked.certified,
        "security.protocol": "ssl",
        "ssl.ca.location": str(locked.certificates.ca_file),
        "ssl.certificate.location": str(cert_file),
        "ssl.key.location": str(key_file),
        "message.timeout.ms": 5_000,
    }
    refused: list[object] = []
    producer = Producer(config)
    producer.produce("locked", b"inside", on_delivery=lambda error, _: refused.append(error))
    producer.flush(20)
    if not refused or refused[0] is not None:
        raise PermissionError("it was not delivered")
    consumer = Consumer({**config, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["locked"])
    read = consumer.poll(20)
    consumer.close()
    assert read is not None and read.error() is None
    return read.value() or b""


def by_kafka_python(locked: Locked, name: str) -> bytes:
    cert_file, key_file = locked.certificates.of(name)
    config: dict[str, Any] = {
        "bootstrap_servers": locked.certified,
        "security_protocol": "SSL",
        "ssl_cafile": str(locked.certificates.ca_file),
        "ssl_certfile": str(cert_file),
        "ssl_keyfile": str(key_file),
    }
    producer = KafkaProducer(**config, max_block_ms=5_000)
    try:
        producer.send("locked", b"inside").get(20)
    except Exception as error:
        raise PermissionError from error
    finally:
        producer.close()
    consumer = KafkaConsumer(
        "locked", **config, auto_offset_reset="earliest", consumer_timeout_ms=20_000, group_id="readers"
    )
    read = next(consumer)
    consumer.close()
    return bytes(read.value)


def by_aiokafka(locked: Locked, name: str) -> bytes:
    async def there_and_back() -> bytes:
        config: dict[str, Any] = {
            "bootstrap_servers": locked.certified,
            "security_protocol": "SSL",
            "ssl_context": locked.certificates.trust(name),
        }
        async with AIOKafkaProducer(**config, request_timeout_ms=5_000) as producer:
            try:
                await asyncio.wait_for(producer.send_and_wait("locked", b"inside"), 10)
            except Exception as error:
                raise PermissionError from error
        async with AIOKafkaConsumer(
            "locked", **config, auto_offset_reset="earliest", group_id="readers"
        ) as consumer:
            read = await asyncio.wait_for(consumer.getone(), 20)
        return bytes(read.value)

    return asyncio.run(there_and_back())


@pytest.mark.parametrize("client", [by_confluent_kafka, by_kafka_python, by_aiokafka])
def test_a_client_is_known_by_its_certificate_and_another_s_opens_nothing(
    locked: Locked, client: Callable[[Locked, str], bytes]
) -> None:
    assert client(locked, "alice") == b"inside"
    with pytest.raises(PermissionError):
        client(locked, "mallory")


def java_properties(locked: Locked, mechanism: str, token_s: float = 300) -> dict[str, str]:
    """How Kafka's own client is told to log in."""
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(locked.certificates.ca_file)}
    if mechanism == "certificate":
        cert_file, key_file = locked.certificates.of("alice")
        both = locked.folder / "alice.both.pem"
        key = load_pem_private_key(key_file.read_bytes(), None)
        written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        both.write_bytes(written + cert_file.read_bytes())
        shown = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(both)}
        return {"bootstrap.servers": locked.certified, "security.protocol": "SSL", **trust, **shown}
    asked = {
        "bootstrap.servers": locked.asking,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        **trust,
    }
    modules = "org.apache.kafka.common.security"
    if mechanism == "OAUTHBEARER":
        shown_file = locked.folder / "token.jwt"
        shown_file.write_text(locked.signer.token(lasts_s=token_s))
        return {
            **asked,
            "sasl.jaas.config": f"{modules}.oauthbearer.OAuthBearerLoginModule required;",
            "sasl.login.callback.handler.class": f"{modules}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": shown_file.as_uri(),
            "sasl.login.refresh.min.period.seconds": "0",
            "sasl.login.refresh.buffer.seconds": "0",
        }
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    login = f'{modules}.{module} required username="alice" password="{PASSWORD}";'
    return {**asked, "sasl.jaas.config": login}


def there_and_back(
    locked: Locked, properties: dict[str, str], count: int = 2, pause_ms: int = 0
) -> subprocess.CompletedProcess[str]:
    file = locked.folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={(locked.folder / 'token.jwt').as_uri()}"
    arguments = (str(file), "locked", str(count), str(pause_ms))
    return run_java("auth/ThereAndBack.java", *arguments, options=(allowed,))


@pytest.mark.parametrize("mechanism", [*BY_PASSWORD, "OAUTHBEARER", "certificate"])
def test_the_java_client_writes_and_reads(locked: Locked, mechanism: str) -> None:
    told = there_and_back(locked, java_properties(locked, mechanism))

    assert told.stdout == "read message 0\nread message 1\n", told.stderr


def test_the_java_client_logs_in_again_before_its_token_ends(locked: Locked) -> None:
    properties = java_properties(locked, "OAUTHBEARER", token_s=6)
    is_over = threading.Event()

    def renew() -> None:
        while not is_over.wait(1):
            fresh = locked.folder / "fresh.jwt"
            fresh.write_text(locked.signer.token(lasts_s=6))
            fresh.rename(locked.folder / "token.jwt")

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        told = there_and_back(locked, properties, count=20, pause_ms=600)
    finally:
        is_over.set()
        renewing.join()

    assert told.stdout.splitlines() == [f"read message {number}" for number in range(20)], told.stderr


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_the_java_client_hears_why_it_is_not_let_in(locked: Locked, mechanism: str) -> None:
    properties = java_properties(locked, mechanism)
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace(PASSWORD, "wrong")
    (locked.folder / "token.jwt").write_text(locked.signer.token(aud="another"))

    told = there_and_back(locked, properties)

    assert told.returncode != 0 and "SaslAuthenticationException" in told.stderr
    reason = "somebody else" if mechanism == "OAUTHBEARER" else "the name or the password is not right"
    assert reason in told.stderr


@pytest.mark.skipif(KCAT is None, reason="kcat is not installed")
@pytest.mark.parametrize("mechanism", [*BY_PASSWORD, "certificate"])
def test_kcat_writes_and_reads(locked: Locked, mechanism: str) -> None:
    assert KCAT is not None
    cert_file, key_file = locked.certificates.of("alice")
    if mechanism == "certificate":
        address = locked.certified
        how = [
            "security.protocol=ssl",
            f"ssl.certificate.location={cert_file}",
            f"ssl.key.location={key_file}",
        ]
    else:
        address = locked.asking
        how = [
            "security.protocol=sasl_ssl",
            f"sasl.mechanisms={mechanism}",
            "sasl.username=alice",
            f"sasl.password={PASSWORD}",
        ]
    flags = [flag for one in (*how, f"ssl.ca.location={locked.certificates.ca_file}") for flag in ("-X", one)]

    kcat = [KCAT, "-b", address, *flags]
    subprocess.run([*kcat, "-P", "-t", "locked"], input=b"inside", timeout=30, check=True)
    read = subprocess.run(
        [*kcat, "-C", "-t", "locked", "-e", "-q"], capture_output=True, timeout=30, check=True
    )
    assert read.stdout == b"inside\n"
