"""The Kafka door over TLS: real clients, several listeners, certificates of clients, and new ones."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.listening import Listener
from goqueue.edge.tls import BadCertificate, ClientAuth
from goqueue.model.identity import ANONYMOUS, USER, Principal
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import OpenDoor
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient

SIZE = 300_000
"""More than the door reads at once."""
ASKED = (ClientAuth.REQUEST, ClientAuth.VERIFY)
REQUIRED = (ClientAuth.REQUIRE, ClientAuth.REQUIRE_VERIFY)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def by_confluent_kafka(door: DoorThread, certificates: Certificates, value: bytes) -> bytes:
    config = {
        "bootstrap.servers": door.address,
        "security.protocol": "ssl",
        "ssl.ca.location": str(certificates.ca_file),
    }
    producer = Producer(config)
    producer.produce("over-tls", value)
    assert producer.flush(10) == 0
    consumer = Consumer({**config, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["over-tls"])
    read = consumer.poll(20)
    consumer.close()
    assert read is not None and read.error() is None
    return read.value() or b""


def by_kafka_python(door: DoorThread, certificates: Certificates, value: bytes) -> bytes:
    config: dict[str, Any] = {
        "bootstrap_servers": door.address,
        "security_protocol": "SSL",
        "ssl_cafile": str(certificates.ca_file),
    }
    producer = KafkaProducer(**config)
    producer.send("over-tls", value).get(10)
    producer.close()
    consumer = KafkaConsumer(
        "over-tls", **config, auto_offset_reset="earliest", consumer_timeout_ms=20_000, group_id="readers"
    )
    read = next(consumer)
    consumer.close()
    return bytes(read.value)


def by_aiokafka(door: DoorThread, certificates: Certificates, value: bytes) -> bytes:
    async def there_and_back() -> bytes:
        config: dict[str, Any] = {
            "bootstrap_servers": door.address,
            "security_protocol": "SSL",
            "ssl_context": certificates.trust(),
        }
        async with AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait("over-tls", value)
        async with AIOKafkaConsumer(
            "over-tls", **config, auto_offset_reset="earliest", group_id="readers"
        ) as consumer:
            read = await asyncio.wait_for(consumer.getone(), 20)
        return bytes(read.value)

    return asyncio.run(there_and_back())


@pytest.mark.slow
@pytest.mark.parametrize("client", [by_confluent_kafka, by_kafka_python, by_aiokafka])
def test_a_client_writes_and_reads_over_tls(
    open_door: OpenDoor,
    certificates: Certificates,
    client: Callable[[DoorThread, Certificates, bytes], bytes],
) -> None:
    door = open_door(listener=tls_listener(certificates.shown()))
    value = bytes(range(256)) * (SIZE // 256)

    assert client(door, certificates, value) == value


def wrapped(door: DoorThread, context: ssl.SSLContext, port: int | None = None) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port or door.port), timeout=10)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def is_served(connection: ssl.SSLSocket) -> bool:
    """Whether requests are answered. With TLS 1.3 a client hears only now that it was refused."""
    try:
        with RawClient(0, over=connection) as raw:
            raw.ask(ApiKey.METADATA, 12, **requests.metadata())
    except OSError:
        return False
    return True


@pytest.mark.parametrize("kind", list(ClientAuth))
def test_certificates_of_clients_are_asked_for_as_the_setting_says(
    open_door: OpenDoor, certificates: Certificates, tmp_path: Path, kind: ClientAuth
) -> None:
    door = open_door(listener=tls_listener(certificates.shown(kind)))
    (tmp_path / "others").mkdir()
    stranger = certificates.trust()
    stranger.load_cert_chain(*Certificates(tmp_path / "others").of("mallory"))

    def let_in(context: ssl.SSLContext) -> bool:
        try:
            return is_served(wrapped(door, context))
        except OSError:
            return False

    assert let_in(certificates.trust("alice"))
    assert let_in(certificates.trust()) == (kind not in REQUIRED)
    assert let_in(stranger) == (kind is ClientAuth.NONE)


def test_who_shows_a_certificate_is_called_by_it(open_door: OpenDoor, certificates: Certificates) -> None:
    rules = "RULE:^CN=(.*?),.*$/$1/U"
    door = open_door(listener=tls_listener(certificates.shown(ClientAuth.VERIFY, rules=rules)))

    def known_as(context: ssl.SSLContext) -> Principal:
        with wrapped(door, context) as connection, RawClient(0, over=connection) as raw:
            raw.ask(ApiKey.METADATA, 12, **requests.metadata())
            [client] = door.door._clients
            return client._connection._context.principal

    assert known_as(certificates.trust("alice")) == Principal(USER, "ALICE")
    assert known_as(certificates.trust()) == ANONYMOUS


def test_whom_no_rule_names_is_not_let_in(open_door: OpenDoor, certificates: Certificates) -> None:
    shown = certificates.shown(ClientAuth.VERIFY, rules="RULE:^CN=bob,.*$/bob/")
    door = open_door(listener=tls_listener(shown))

    assert not is_served(wrapped(door, certificates.trust("alice")))
    assert is_served(wrapped(door, certificates.trust("bob")))


def test_a_new_certificate_is_shown_without_a_restart(
    open_door: OpenDoor, certificates: Certificates
) -> None:
    shown = certificates.shown()
    door = open_door(listener=tls_listener(shown))
    before = wrapped(door, certificates.trust())
    certificates.show_anew()

    door.run(_reload(shown.reload))

    after = wrapped(door, certificates.trust())
    assert before.getpeercert(True) != after.getpeercert(True)
    assert is_served(after)
    assert is_served(before), "who was connected before goes on"


def test_files_that_do_not_fit_together_change_nothing(
    open_door: OpenDoor, certificates: Certificates, tmp_path: Path
) -> None:
    shown = certificates.shown()
    door = open_door(listener=tls_listener(shown))
    _, other_key = certificates.of("somebody")
    (tmp_path / "door.key").write_bytes(other_key.read_bytes())

    with pytest.raises(BadCertificate, match="KEY_VALUES_MISMATCH"):
        door.run(_reload(shown.reload))

    assert is_served(wrapped(door, certificates.trust()))


def test_a_handshake_that_does_not_go_on_is_cut(open_door: OpenDoor, certificates: Certificates) -> None:
    door = open_door(listener=tls_listener(certificates.shown(handshake_ms=100)))

    with socket.create_connection(("127.0.0.1", door.port), timeout=10) as silent:
        assert silent.recv(1) == b""
    with socket.create_connection(("127.0.0.1", door.port), timeout=10) as half:
        half.sendall(b"\x16\x03\x01")
        assert half.recv(1) == b""


def test_what_is_no_tls_is_hung_up_on(open_door: OpenDoor, certificates: Certificates) -> None:
    door = open_door(listener=tls_listener(certificates.shown()))

    with socket.create_connection(("127.0.0.1", door.port), timeout=10) as plain:
        plain.sendall(bytes(64))
        assert b"ApiVersions" not in plain.recv(1_000)
    assert is_served(wrapped(door, certificates.trust()))


def test_each_listener_tells_its_clients_to_come_back_to_it(
    open_door: OpenDoor, certificates: Certificates
) -> None:
    door = open_door(listener=Listener(advertised_host="inside.example", advertised_port=1_111))
    tls_port = door.listen(tls_listener(certificates.shown()))

    with RawClient(door.port) as raw:
        inside = raw.ask(ApiKey.METADATA, 12, **requests.metadata())
    with wrapped(door, certificates.trust(), tls_port) as connection, RawClient(0, over=connection) as raw:
        outside = raw.ask(ApiKey.METADATA, 12, **requests.metadata())

    assert [(node.host, node.port) for node in inside.brokers] == [("inside.example", 1_111)]
    assert [(node.host, node.port) for node in outside.brokers] == [("127.0.0.1", tls_port)]


async def _reload(reload: Callable[[], None]) -> None:
    reload()
