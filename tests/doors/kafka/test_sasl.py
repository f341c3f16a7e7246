"""Logging in at the Kafka door: real clients with each mechanism, and what strangers get."""

import asyncio
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import admin as confluent_admin
from kafka import KafkaConsumer, KafkaProducer
from kio.schema.errors import ErrorCode

from goqueue.broker.access.identities import create_key, create_user, revoke_key, set_user_disabled
from goqueue.edge.authentication import AuthConfig, Authenticator
from goqueue.edge.credentials import make_key, password_form, scram_forms
from goqueue.edge.kafka import sasl
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.model import identity
from goqueue.model.identity_commands import CreateKey, CreateUser, RevokeKey, SetUserDisabled
from goqueue.model.settings import BrokerConfig
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.kafka import requests
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient

PASSWORD = "correct horse, battery"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
IN_THE_CLEAR = Listener(name="sasl_plaintext", protocol=SecurityProtocol.SASL_PLAINTEXT)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    doors: list[DoorThread] = []

    def open_one(listener: Listener, auth: AuthConfig | None = None) -> DoorThread:
        folder = tmp_path / f"data-{len(doors)}"
        folder.mkdir()
        door = DoorThread(folder, BrokerConfig(), KafkaConfig(), listener=listener, auth=auth or AuthConfig())
        doors.append(door)
        command = CreateUser(name="alice", password=password_form(PASSWORD), scram=scram_forms(PASSWORD))
        door.run(create_user(door.broker, command))
        return door

    yield open_one
    for door in doors:
        door.close()


confluent: Any = confluent_admin
"""It says of few of its names that they are meant for others."""
OpenAsking = Callable[..., DoorThread]


def by_confluent_kafka(door: DoorThread, certificates: Certificates, mechanism: str) -> bytes:
    config = {
        "bootstrap.servers": door.address,
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": mechanism,
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(certificates.ca_file),
    }
    producer = Producer(config)
    producer.produce("locked", b"inside")
    assert producer.flush(20) == 0
    consumer = Consumer({**config, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["locked"])
    read = consumer.poll(20)
    consumer.close()
    assert read is not None and read.error() is None
    return read.value() or b""


def by_kafka_python(door: DoorThread, certificates: Certificates, mechanism: str) -> bytes:
    config: dict[str, Any] = {
        "bootstrap_servers": door.address,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
        "ssl_cafile": str(certificates.ca_file),
    }
    producer = KafkaProducer(**config)
    producer.send("locked", b"inside").get(20)
    producer.close()
    consumer = KafkaConsumer(
        "locked", **config, auto_offset_reset="earliest", consumer_timeout_ms=20_000, group_id="readers"
    )
    read = next(consumer)
    consumer.close()
    return bytes(read.value)


def by_aiokafka(door: DoorThread, certificates: Certificates, mechanism: str) -> bytes:
    async def there_and_back() -> bytes:
        config: dict[str, Any] = {
            "bootstrap_servers": door.address,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": "alice",
            "sasl_plain_password": PASSWORD,
            "ssl_context": certificates.trust(),
        }
        async with AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait("locked", b"inside")
        async with AIOKafkaConsumer(
            "locked", **config, auto_offset_reset="earliest", group_id="readers"
        ) as consumer:
            read = await asyncio.wait_for(consumer.getone(), 20)
        return bytes(read.value)

    return asyncio.run(there_and_back())


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", [by_confluent_kafka, by_kafka_python, by_aiokafka])
def test_a_client_logs_in_over_tls_and_writes_and_reads(
    opened: OpenAsking,
    certificates: Certificates,
    client: Callable[[DoorThread, Certificates, str], bytes],
    mechanism: str,
) -> None:
    door = opened(tls_listener(certificates.shown(), asks_who=True))

    assert client(door, certificates, mechanism) == b"inside"


def log_in(raw: RawClient, token: bytes, mechanism: str = "PLAIN") -> Any:
    raw.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism=mechanism)
    return raw.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=token)


def plain(name: str = "alice", password: str = PASSWORD) -> bytes:
    return f"\0{name}\0{password}".encode()


def is_hung_up(raw: RawClient) -> bool:
    try:
        return raw.socket.recv(1) == b""
    except OSError:
        return True


def test_who_has_logged_in_is_served(opened: OpenAsking) -> None:
    door = opened(IN_THE_CLEAR)

    with RawClient(door.port) as raw:
        assert log_in(raw, plain()).error_code is ErrorCode.none
        assert raw.ask(ApiKey.METADATA, 12, **requests.metadata()).brokers


@pytest.mark.parametrize(
    "token",
    [
        plain(password="wrong"),
        plain(name="nobody"),
        plain(name=""),
        plain(password=""),
        b"",
        b"\0\0",
        b"no zeros",
        b"bob" + plain(),
        b"\xff\xff",
        plain() + b"\0more",
        plain(password="x" * 2_000),
    ],
)
def test_what_is_not_right_is_refused_with_a_reason_and_the_client_hung_up_on(
    opened: OpenAsking, token: bytes
) -> None:
    door = opened(IN_THE_CLEAR)

    with RawClient(door.port) as raw:
        reply = log_in(raw, token)
        assert reply.error_code is ErrorCode.sasl_authentication_failed
        assert reply.error_message
        assert PASSWORD not in reply.error_message
        assert is_hung_up(raw)


@pytest.mark.parametrize("api_key", [ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_GROUPS])
def test_a_stranger_gets_nothing_but_versions(opened: OpenAsking, api_key: ApiKey) -> None:
    door = opened(IN_THE_CLEAR)

    with RawClient(door.port) as raw:
        versions = raw.ask(ApiKey.API_VERSIONS, 0)
        raw.send_frame(struct.pack(">hhih", api_key, 4, 1, -1) + bytes(64))
        assert versions.api_keys
        assert is_hung_up(raw)


def test_a_stranger_has_few_requests_and_small_ones(opened: OpenAsking) -> None:
    door = opened(IN_THE_CLEAR)

    with RawClient(door.port) as raw:
        for _ in range(sasl.STRANGER_REQUESTS_MAX):
            raw.ask(ApiKey.API_VERSIONS, 0)
        raw.send(ApiKey.API_VERSIONS, 0)
        assert is_hung_up(raw)
    with RawClient(door.port) as raw:
        raw.socket.sendall(struct.pack(">i", sasl.STRANGER_BYTES_MAX + 1))
        assert is_hung_up(raw)


def test_a_stranger_has_little_time(opened: OpenAsking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.edge.kafka.protocol.STRANGER_S", 0.05)
    door = opened(IN_THE_CLEAR)

    with RawClient(door.port) as raw:
        assert is_hung_up(raw)


def test_strangers_of_one_address_are_few_and_who_logs_in_makes_room(
    opened: OpenAsking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goqueue.edge.admission.STRANGERS_PER_ADDRESS_MAX", 2)
    door = opened(IN_THE_CLEAR)

    with RawClient(door.port) as first, RawClient(door.port) as second:
        for raw in (first, second):
            raw.ask(ApiKey.API_VERSIONS, 0)
        with RawClient(door.port) as third:
            assert is_hung_up(third)
        assert log_in(first, plain()).error_code is ErrorCode.none
        assert log_in(first, plain()).error_code is ErrorCode.none  # once more makes no more room
        with RawClient(door.port) as fourth, RawClient(door.port) as fifth:
            fourth.ask(ApiKey.API_VERSIONS, 0)
            assert is_hung_up(fifth)
        assert first.ask(ApiKey.METADATA, 12, **requests.metadata()).brokers
    with RawClient(door.port) as last:
        assert log_in(last, plain()).error_code is ErrorCode.none


def test_mechanisms_that_are_not_served_are_named(opened: OpenAsking) -> None:
    door = opened(IN_THE_CLEAR)

    with RawClient(door.port) as raw:
        reply = raw.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="GSSAPI")
    assert reply.error_code is ErrorCode.unsupported_sasl_mechanism
    assert set(reply.mechanisms) == set(MECHANISMS)


def test_a_handshake_without_requests_behind_it_is_told_of_and_refused(opened: OpenAsking) -> None:
    """Older clients of librdkafka look for version 0 to use version 1."""
    door = opened(IN_THE_CLEAR)

    with RawClient(door.port) as raw:
        versions = {each.api_key: each.min_version for each in raw.ask(ApiKey.API_VERSIONS, 0).api_keys}
        reply = raw.ask(ApiKey.SASL_HANDSHAKE, 0, mechanism="PLAIN")
        again = raw.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=plain())
    assert versions[ApiKey.SASL_HANDSHAKE] == 0
    assert reply.error_code is ErrorCode.unsupported_sasl_mechanism
    assert again.error_code is ErrorCode.sasl_authentication_failed


def test_nobody_logs_in_where_nobody_is_asked(door: DoorThread) -> None:
    with RawClient(door.port) as raw:
        assert raw.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code is ErrorCode.illegal_sasl_state
        reply = raw.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=plain())
    assert reply.error_code is ErrorCode.illegal_sasl_state


def test_a_user_who_is_disabled_is_hung_up_on_at_once(opened: OpenAsking) -> None:
    door = opened(IN_THE_CLEAR)

    with RawClient(door.port) as raw, RawClient(door.port) as again:
        log_in(raw, plain())
        door.run(set_user_disabled(door.broker, SetUserDisabled(name="alice", is_disabled=True)))
        assert is_hung_up(raw)
        assert log_in(again, plain()).error_code is ErrorCode.sasl_authentication_failed


def test_a_key_logs_in_as_a_password_does_until_it_is_revoked(opened: OpenAsking) -> None:
    door = opened(IN_THE_CLEAR)
    made = make_key()
    key = identity.ApiKey(
        key_id=made.key_id, name="k", prefix=made.prefix, digest=made.digest, created_ms=1, user="alice"
    )
    door.run(create_key(door.broker, CreateKey(key=key)))

    with RawClient(door.port) as by_id, RawClient(door.port) as by_owner, RawClient(door.port) as other:
        assert log_in(by_id, plain(made.key_id, made.secret)).error_code is ErrorCode.none
        assert log_in(by_owner, plain("alice", made.secret)).error_code is ErrorCode.none
        assert log_in(other, plain("bob", made.secret)).error_code is ErrorCode.sasl_authentication_failed
        door.run(revoke_key(door.broker, RevokeKey(key_id=made.key_id)))
        assert is_hung_up(by_id) and is_hung_up(by_owner)


def test_a_session_ends_unless_the_client_logs_in_again_as_the_same(opened: OpenAsking) -> None:
    door = opened(IN_THE_CLEAR, AuthConfig(session_ms=1_000))
    command = CreateUser(name="bob", password=password_form(PASSWORD))
    door.run(create_user(door.broker, command))

    with RawClient(door.port) as raw, RawClient(door.port) as other, RawClient(door.port) as late:
        first = log_in(raw, plain())
        log_in(other, plain())
        log_in(late, plain())
        assert first.session_lifetime.total_seconds() == 1
        assert log_in(raw, plain()).error_code is ErrorCode.none
        assert raw.ask(ApiKey.METADATA, 12, **requests.metadata()).brokers
        assert log_in(other, plain("bob")).error_code is ErrorCode.sasl_authentication_failed
        deadline_s = time.monotonic() + 10
        while True:  # until the session has ended
            late.send(ApiKey.METADATA, 12, **requests.metadata())
            try:
                late.receive(ApiKey.METADATA, 12)
            except (OSError, AssertionError, EOFError, struct.error):
                break
            assert time.monotonic() < deadline_s


@pytest.mark.slow
def test_users_are_kept_by_kafkas_own_admin_client(opened: OpenAsking) -> None:
    door = opened(IN_THE_CLEAR)
    config: dict[str, Any] = {
        "bootstrap.servers": door.address,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    admin = confluent.AdminClient(config)
    info = confluent.ScramCredentialInfo(confluent.ScramMechanism.SCRAM_SHA_256, 5_000)
    upsertion = confluent.UserScramCredentialUpsertion("carol", info, b"pass of carol")
    for future in admin.alter_user_scram_credentials([upsertion]).values():
        future.result(20)

    described = admin.describe_user_scram_credentials(["carol", "alice"])
    told = {name: future.result(20) for name, future in described.items()}

    assert [(each.mechanism, each.iterations) for each in told["carol"].scram_credential_infos] == [
        (confluent.ScramMechanism.SCRAM_SHA_256, 5_000)
    ]
    assert len(told["alice"].scram_credential_infos) == 2
    carol = {
        **config,
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "carol",
        "sasl.password": "pass of carol",
    }
    assert confluent.AdminClient(carol).list_topics(timeout=20).brokers
    assert confluent.AdminClient({**carol, "sasl.mechanisms": "PLAIN"}).list_topics(timeout=20).brokers
    deletion = confluent.UserScramCredentialDeletion("carol", confluent.ScramMechanism.SCRAM_SHA_512)
    for future in admin.alter_user_scram_credentials([deletion]).values():
        with pytest.raises(KafkaException, match=r"RESOURCE_NOT_FOUND|does not exist"):
            future.result(20)


def test_users_are_there_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for attempt in range(2):
        door = DoorThread(folder, BrokerConfig(), KafkaConfig(), listener=IN_THE_CLEAR, auth=AuthConfig())
        try:
            if attempt == 0:
                door.run(create_user(door.broker, CreateUser(name="alice", password=password_form(PASSWORD))))
            with RawClient(door.port) as raw:
                assert log_in(raw, plain()).error_code is ErrorCode.none
        finally:
            door.close()


def test_whoever_guesses_waits_longer_each_time_and_others_do_not(opened: OpenAsking) -> None:
    door = opened(IN_THE_CLEAR)
    slept: list[float] = []

    async def guess() -> None:
        authenticator = Authenticator(door.broker, AuthConfig())

        async def note(seconds: float) -> None:
            slept.append(seconds)

        real, asyncio.sleep = asyncio.sleep, note  # type: ignore[assignment]
        try:
            for _ in range(8):
                await authenticator.delay_failure("alice", "10.0.0.1", "wrong")
            await authenticator.delay_failure("alice", "10.0.0.2", "wrong")
            for number in range(40):
                await authenticator.delay_failure(f"name {number}", "10.0.0.3", "wrong")
            await authenticator.delay_failure("bob", "10.0.0.2", "wrong")
        finally:
            asyncio.sleep = real

    asyncio.run(guess())

    assert slept[:4] == [0.1, 0.2, 0.4, 0.8]
    assert slept[7] == 5.0
    assert slept[8] == 0.1
    many_names = slept[9:49]
    assert set(many_names[:20]) == {0.1} and many_names[-1] == 5.0
    assert slept[49] == 0.1


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("PLAIN", b"no message"),
        ("PLAIN", b"bob" + plain()),
        ("SCRAM-SHA-256", b"no message"),
        ("SCRAM-SHA-512", b"p=tls-unique,,n=alice,r=abc"),
        ("SCRAM-SHA-256", b"n,a=bob,n=alice,r=abc"),
    ],
)
def test_a_message_that_is_none_is_answered_later_each_time_as_well(
    opened: OpenAsking, monkeypatch: pytest.MonkeyPatch, mechanism: str, message: bytes
) -> None:
    door = opened(IN_THE_CLEAR)
    failed: list[str] = []

    async def note(authenticator: Authenticator, name: str, host: str, reason: str) -> None:
        failed.append(host)

    monkeypatch.setattr(Authenticator, "delay_failure", note)
    with RawClient(door.port) as raw:
        assert log_in(raw, message, mechanism).error_code is ErrorCode.sasl_authentication_failed
    assert failed == ["127.0.0.1"]
