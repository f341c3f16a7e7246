"""Tokens at the Kafka door: OAUTHBEARER, sessions that end with the token, holders who are let in no more."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.access.identities import create_user, set_user_disabled
from goqueue.broker.tenants.verbs import create_tenant
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.edge.token_claims import TokenConfig
from goqueue.model.identity_commands import CreateUser, SetUserDisabled
from goqueue.model.settings import BrokerConfig
from goqueue.model.tenant_commands import CreateTenant
from tests.doors.identity_provider import AUDIENCE, ISSUER, Signer, tokens_of
from tests.doors.kafka import requests
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient

ASKING = Listener(name="sasl_plaintext", protocol=SecurityProtocol.SASL_PLAINTEXT)
NO_SKEW = TokenConfig(issuer=ISSUER, audiences=frozenset({AUDIENCE}), skew_ms=0, tenant_claim="")

OF_TENANTS = TokenConfig(issuer=ISSUER, audiences=frozenset({AUDIENCE}), tenant_claim="org")


@pytest.fixture
def signer() -> Signer:
    return Signer()


def opened(folder: Path, signer: Signer, config: TokenConfig = NO_SKEW, **auth: Any) -> DoorThread:
    return DoorThread(
        folder,
        BrokerConfig(),
        KafkaConfig(),
        listener=ASKING,
        auth=AuthConfig(**auth),
        tokens=tokens_of(signer, config),
    )


@pytest.fixture
def door(tmp_path: Path, signer: Signer) -> Iterator[DoorThread]:
    door = opened(tmp_path, signer)
    yield door
    door.close()


def log_in(raw: RawClient, token: str, more: bytes = b"", header: bytes = b"n,,") -> Any:
    raw.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="OAUTHBEARER")
    message = header + b"\x01auth=Bearer " + token.encode() + b"\x01" + more + b"\x01"
    return raw.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=message)


def is_hung_up(raw: RawClient) -> bool:
    try:
        return raw.socket.recv(1) == b""
    except OSError:
        return True


def test_the_holder_of_a_token_is_served_until_the_token_ends(door: DoorThread, signer: Signer) -> None:
    with RawClient(door.port) as raw:
        reply = log_in(raw, signer.token(lasts_s=100), b"logicalCluster=x\x01")

        assert reply.error_code is ErrorCode.none
        assert 90 < reply.session_lifetime.total_seconds() <= 100
        assert raw.ask(ApiKey.METADATA, 12, **requests.metadata()).brokers


def test_a_session_is_the_shorter_of_what_is_set_and_what_the_token_has_left(
    tmp_path: Path, signer: Signer
) -> None:
    door = opened(tmp_path, signer, session_ms=5_000)
    try:
        with RawClient(door.port) as long, RawClient(door.port) as short:
            assert log_in(long, signer.token(lasts_s=100)).session_lifetime.total_seconds() == 5
            assert log_in(short, signer.token(lasts_s=3)).session_lifetime.total_seconds() <= 3
    finally:
        door.close()


def test_a_session_goes_on_with_another_token_of_the_same_and_ends_without(
    door: DoorThread, signer: Signer
) -> None:
    with RawClient(door.port) as kept, RawClient(door.port) as other, RawClient(door.port) as ended:
        for raw in (kept, other, ended):
            assert log_in(raw, signer.token(lasts_s=1.5)).error_code is ErrorCode.none
        signer.rotate(keeps_old=False)  # in the middle of their connections
        assert log_in(kept, signer.token(lasts_s=100)).error_code is ErrorCode.none
        assert log_in(other, signer.token("bob")).error_code is ErrorCode.sasl_authentication_failed
        assert is_hung_up(other)
        deadline_s = time.monotonic() + 10
        while True:
            ended.send(ApiKey.METADATA, 12, **requests.metadata())
            try:
                ended.receive(ApiKey.METADATA, 12)
            except (OSError, AssertionError, EOFError):
                break
            assert time.monotonic() < deadline_s
        assert kept.ask(ApiKey.METADATA, 12, **requests.metadata()).brokers


def test_a_bad_token_is_refused_with_a_reason_that_repeats_nothing_of_it(
    door: DoorThread, signer: Signer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for token, reason in (
            (signer.token(lasts_s=-1), "has ended"),
            (signer.token(aud="another"), "somebody else"),
            (Signer().token(), "does not tell of"),
            (signer.token()[:-8] + "AAAAAAAA", "signature"),
        ):
            with RawClient(door.port) as raw:
                reply = log_in(raw, token)
                assert reply.error_code is ErrorCode.sasl_authentication_failed
                assert reason in reply.error_message
                assert is_hung_up(raw)
            assert token[:20] not in reply.error_message + caplog.text
            assert token[-20:] not in reply.error_message + caplog.text


def test_nobody_logs_in_for_another(door: DoorThread, signer: Signer) -> None:
    with RawClient(door.port) as same, RawClient(door.port) as other:
        assert log_in(same, signer.token(), header=b"n,a=alice,").error_code is ErrorCode.none
        refused = log_in(other, signer.token(), header=b"n,a=bob,")
        assert refused.error_code is ErrorCode.sasl_authentication_failed


def test_a_user_who_is_disabled_here_is_not_let_in_by_a_token_either(
    door: DoorThread, signer: Signer
) -> None:
    door.run(create_user(door.broker, CreateUser(name="alice")))

    with RawClient(door.port) as raw, RawClient(door.port) as again, RawClient(door.port) as other:
        assert log_in(raw, signer.token()).error_code is ErrorCode.none
        assert log_in(other, signer.token("bob")).error_code is ErrorCode.none
        door.run(set_user_disabled(door.broker, SetUserDisabled(name="alice", is_disabled=True)))
        assert is_hung_up(raw)
        assert log_in(again, signer.token()).error_code is ErrorCode.sasl_authentication_failed
        assert other.ask(ApiKey.METADATA, 12, **requests.metadata()).brokers


def test_who_belongs_to_a_tenant_that_is_not_here_is_not_let_in(tmp_path: Path, signer: Signer) -> None:
    door = opened(tmp_path, signer, OF_TENANTS)
    try:
        with RawClient(door.port) as raw:
            assert log_in(raw, signer.token(org="acme")).error_code is ErrorCode.sasl_authentication_failed
    finally:
        door.close()


def test_whom_the_issuer_names_for_a_tenant_is_not_taken_for_an_operator_of_the_same_name(
    tmp_path: Path, signer: Signer
) -> None:
    door = opened(tmp_path, signer, OF_TENANTS)
    try:
        door.run(create_tenant(door.broker, CreateTenant(name="acme", tenant_id="acme")))
        door.run(create_user(door.broker, CreateUser(name="boss")))
        with RawClient(door.port) as boss, RawClient(door.port) as clerk:
            assert log_in(boss, signer.token("boss", org="acme")).error_code is not ErrorCode.none
            assert log_in(clerk, signer.token("clerk", org="acme")).error_code is ErrorCode.none
            door.run(create_user(door.broker, CreateUser(name="clerk")))
            assert is_hung_up(clerk)
    finally:
        door.close()


def test_a_door_that_takes_no_tokens_does_not_offer_it(tmp_path: Path) -> None:
    door = DoorThread(tmp_path, BrokerConfig(), KafkaConfig(), listener=ASKING, auth=AuthConfig())
    try:
        with RawClient(door.port) as raw:
            reply = raw.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="OAUTHBEARER")
        assert reply.error_code is ErrorCode.unsupported_sasl_mechanism
        assert "OAUTHBEARER" not in reply.mechanisms
    finally:
        door.close()
