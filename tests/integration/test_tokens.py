"""Real clients with tokens of a real issuer: keys rotate, tokens end, the issuer is away."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokens
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens

from goqueue.client import GoQueue
from tests.doors.certificates import Certificates
from tests.doors.identity_provider import IdentityProvider
from tests.integration.conftest import StartBroker
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow

Make = Callable[[], str]
ROOT_KEY = "the key of all keys"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[IdentityProvider]:
    provider = IdentityProvider(tmp_path / "issuer")
    yield provider
    provider.close()


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def broker(
    start_broker: StartBroker, provider: IdentityProvider, certificates: Certificates, tmp_path: Path
) -> RunningBroker:
    return start_broker(
        *provider.flags,
        "--auth-enabled=true",
        "--tls-enabled=true",
        f"--tls-cert-file={tmp_path}/door.pem",
        f"--tls-key-file={tmp_path}/door.key",
        "--auth-jwt-skew-ms=0",
        "--audit-enabled=true",
        f"--api-root-key={ROOT_KEY}",
    )


def confluent_config(broker: RunningBroker, certificates: Certificates, make: Make) -> dict[str, Any]:
    def show(_: str) -> tuple[str, float]:
        return make(), time.time() + 3

    return {
        "bootstrap.servers": broker.kafka,
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "OAUTHBEARER",
        "oauth_cb": show,
        "ssl.ca.location": str(certificates.ca_file),
    }


def by_confluent_kafka(broker: RunningBroker, certificates: Certificates, make: Make) -> bytes:
    config = confluent_config(broker, certificates, make)
    producer = Producer(config)
    producer.produce("locked", b"inside")
    assert producer.flush(20) == 0
    consumer = Consumer({**config, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["locked"])
    read = consumer.poll(20)
    consumer.close()
    assert read is not None and read.error() is None
    return read.value() or b""


def by_kafka_python(broker: RunningBroker, certificates: Certificates, make: Make) -> bytes:
    class Provider(KafkaPythonTokens):  # type: ignore[misc]
        def token(self) -> str:
            return make()

        def extensions(self) -> dict[str, str]:
            return {"logicalCluster": "lkc-1"}

    config: dict[str, Any] = {
        "bootstrap_servers": broker.kafka,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": Provider(),
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


def by_aiokafka(broker: RunningBroker, certificates: Certificates, make: Make) -> bytes:
    class Provider(AiokafkaTokens):  # type: ignore[misc]
        async def token(self) -> str:
            return make()

    async def there_and_back() -> bytes:
        config: dict[str, Any] = {
            "bootstrap_servers": broker.kafka,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": Provider(),
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


def by_our_client(broker: RunningBroker, certificates: Certificates, make: Make) -> bytes:
    address = broker.http.replace("http:", "https:")
    with GoQueue(address, api_key=make(), ca_file=certificates.ca_file) as queue:
        queue.topics.create("locked", partitions=1)
        with queue.producer() as producer:
            producer.send("locked", b"inside")
        with queue.consumer("locked", group="readers") as consumer:
            [message] = consumer.poll(limit=1, wait=10)
            return message.value or b""


@pytest.mark.parametrize("client", [by_confluent_kafka, by_kafka_python, by_aiokafka, by_our_client])
def test_a_client_with_a_token_writes_and_reads_over_tls(
    broker: RunningBroker,
    certificates: Certificates,
    provider: IdentityProvider,
    client: Callable[[RunningBroker, Certificates, Make], bytes],
) -> None:
    made: list[str] = []

    def make() -> str:
        made.append(provider.token())
        return made[-1]

    assert client(broker, certificates, make) == b"inside"
    assert broker.stop() == 0
    kept = broker.log + broker.printed
    kept += "".join(path.read_text("latin-1") for path in broker.folder.rglob("*") if path.is_file())
    assert made and not [token for token in made if token in kept or token.rpartition(".")[2] in kept]


def test_the_registry_s_own_client_comes_with_a_password_a_key_or_a_token(
    broker: RunningBroker, certificates: Certificates, provider: IdentityProvider
) -> None:
    address, root = broker.http.replace("http:", "https:"), {"X-API-Key": ROOT_KEY}
    with httpx.Client(base_url=address, headers=root, verify=certificates.trust()) as client:
        user = client.post("/admin/users", json={"name": "alice", "password": "correct horse"})
        key = client.post("/admin/keys", json={"name": "registry"}).json()["key"]
    assert user.status_code == 201

    def bearer(token: str) -> dict[str, str]:
        return {
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": token,
            "bearer.auth.logical.cluster": "lsrc-1",
            "bearer.auth.identity.pool.id": "pool-1",
        }

    def registered(subject: str, how: dict[str, str]) -> int:
        trust = {"url": f"{address}/schemas", "ssl.ca.location": str(certificates.ca_file), "max.retries": 0}
        registry = SchemaRegistryClient({**trust, **how})
        return int(registry.register_schema(subject, Schema('"string"', "AVRO")))

    good = {
        "by-password": {"basic.auth.user.info": "alice:correct horse"},
        "by-key": bearer(key),
        "by-token": bearer(provider.token("bob")),
    }
    assert len({registered(subject, how) for subject, how in good.items()}) == 1
    for how in (
        {},
        {"basic.auth.user.info": "alice:wrong"},
        bearer("gq_" + "0" * 64),
        bearer(provider.token(lasts_s=-1)),
    ):
        with pytest.raises(SchemaRegistryError) as refusal:
            registered("refused", how)
        assert refusal.value.http_status_code == 401


def test_a_client_whose_token_is_bad_hears_why(
    broker: RunningBroker, certificates: Certificates, provider: IdentityProvider
) -> None:
    told: list[str] = []
    config = confluent_config(broker, certificates, lambda: provider.token(aud="another"))
    config["error_cb"] = lambda error: told.append(str(error))
    admin = AdminClient(config)

    with pytest.raises(KafkaException):
        admin.list_topics(timeout=4)
    admin.poll(5)
    assert any("meant for somebody else" in text for text in told)


def test_a_producer_goes_on_while_its_tokens_end_and_keys_rotate(
    broker: RunningBroker, certificates: Certificates, provider: IdentityProvider
) -> None:
    made = 0

    def make() -> str:
        nonlocal made
        made += 1
        provider.rotate(keeps_old=made % 2 == 0)
        return provider.token(lasts_s=4)

    producer = Producer({**confluent_config(broker, certificates, make), "statistics.interval.ms": 0})
    failed: list[object] = []
    deadline_s, sent = time.monotonic() + 60, 0
    while made < 4:  # each lasts for seconds: the client logs in again before it ends
        producer.produce("locked", b"x", on_delivery=lambda error, _: failed.append(error) if error else None)
        sent += 1
        producer.poll(0.05)
        assert time.monotonic() < deadline_s
    assert producer.flush(20) == 0

    assert not failed
    address = broker.http.replace("http:", "https:")
    told = httpx.get(f"{address}/topics/locked", headers={"X-API-Key": ROOT_KEY}, verify=certificates.trust())
    assert told.status_code == 200


def test_known_keys_open_while_the_issuer_is_away_and_new_ones_once_it_is_back(
    broker: RunningBroker, certificates: Certificates, provider: IdentityProvider
) -> None:
    address = broker.http.replace("http:", "https:")

    def status(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(
            f"{address}/topics", headers=headers, verify=certificates.trust(), timeout=20
        ).status_code

    assert status(provider.token("first")) == 200
    provider.go_down()
    assert status(provider.token("second")) == 200
    provider.rotate()
    assert status(provider.token("third")) == 401
    provider.go_up()
    deadline_s = time.monotonic() + 30
    while status(provider.token("third")) != 200:
        assert time.monotonic() < deadline_s
    assert "token_keys_not_read" in broker.log


def test_an_issuer_that_sends_elsewhere_or_too_much_is_not_followed(
    broker: RunningBroker, certificates: Certificates, provider: IdentityProvider, tmp_path: Path
) -> None:
    elsewhere = IdentityProvider(tmp_path / "elsewhere")
    address = broker.http.replace("http:", "https:")
    try:
        provider.answer = (302, {"location": elsewhere.address}, b"")
        reply = httpx.get(
            f"{address}/topics",
            headers={"Authorization": f"Bearer {elsewhere.token()}"},
            verify=certificates.trust(),
            timeout=20,
        )
        assert reply.status_code == 401
        assert elsewhere.asked == 0
    finally:
        elsewhere.close()


def test_a_broker_with_half_of_the_settings_says_what_is_missing(tmp_path: Path) -> None:
    from tests.integration.running_broker import goqueue

    told = goqueue(f"--data-dir={tmp_path}/data", "--auth-jwt-jwks=https://id.example/keys")
    assert told.returncode == 1
    for sentence in ("name it as its tokens do", "name for whom they are", "no listener asks who comes"):
        assert sentence in told.stderr
    insecure = goqueue(f"--data-dir={tmp_path}/data", "--auth-jwt-jwks=http://id.example/keys")
    assert "begins with https://" in insecure.stderr
