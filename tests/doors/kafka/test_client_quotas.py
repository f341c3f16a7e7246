"""Kafka's quotas of users and client ids: set as Kafka's tools do, felt by real clients."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kio.schema.errors import ErrorCode

from goqueue.broker.access.client_quotas import alter_client_quota
from goqueue.broker.topics.verbs import create_topic
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.client_quotas import DEFAULT, AlterClientQuota, ClientLimit, QuotaEntity
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from tests.doors.kafka import requests
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import CLIENT_ID, RawClient, record_batch

KIB = 1024
PATIENCE_S = 20


@pytest.fixture
def door(tmp_path: Path) -> Any:
    opened = DoorThread(tmp_path, BrokerConfig(), KafkaConfig())
    opened.run(create_topic(opened.broker, CreateTopic(name="t", partitions=1)))
    yield opened
    opened.close()


def hold(door: DoorThread, entity: QuotaEntity, **limits: float | None) -> None:
    wanted = {ClientLimit(name): value for name, value in limits.items()}
    door.run(alter_client_quota(door.broker, AlterClientQuota(entity=entity, limits=wanted)))


def entry(ops: dict[str, float | None], **entity: str | None) -> SimpleNamespace:
    return SimpleNamespace(
        entity=tuple(
            SimpleNamespace(entity_type=kind.replace("_", "-"), entity_name=name)
            for kind, name in entity.items()
        ),
        ops=tuple(
            SimpleNamespace(key=key, value=value or 0.0, remove=value is None) for key, value in ops.items()
        ),
    )


def alter(raw: RawClient, *entries: SimpleNamespace, dry: bool = False) -> list[ErrorCode]:
    reply = raw.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=dry)
    return [each.error_code for each in reply.entries]


def describe(raw: RawClient, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    wanted = tuple(
        SimpleNamespace(entity_type=kind, match_type=how, match=name) for kind, how, name in components
    )
    reply = raw.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=wanted, strict=strict)
    assert reply.error_code is ErrorCode.none, reply.error_message
    return {
        tuple((part.entity_type, part.entity_name) for part in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in reply.entries
    }


def test_quotas_are_set_shown_and_taken_away(door: DoorThread) -> None:
    with RawClient(door.port) as raw:
        codes = alter(
            raw,
            entry({"producer_byte_rate": 1_000.0, "request_percentage": 12.5}, user="ann"),
            entry({"consumer_byte_rate": 2_000.0}, user="ann", client_id="app"),
            entry({"producer_byte_rate": 3_000.0}, client_id=None),
        )
        assert codes == [ErrorCode.none] * 3
        everything = describe(raw)
        assert everything == {
            (("user", "ann"),): {"producer_byte_rate": 1_000, "request_percentage": 12.5},
            (("user", "ann"), ("client-id", "app")): {"consumer_byte_rate": 2_000},
            (("client-id", None),): {"producer_byte_rate": 3_000},
        }
        assert len(describe(raw, ("user", 0, "ann"))) == 2
        assert list(describe(raw, ("user", 0, "ann"), strict=True)) == [(("user", "ann"),)]
        assert list(describe(raw, ("client-id", 1, None))) == [(("client-id", None),)]
        assert len(describe(raw, ("client-id", 2, None))) == 2
        assert describe(raw, ("user", 0, "bob")) == {}

        assert alter(raw, entry({"producer_byte_rate": None}, client_id=None), dry=True) == [ErrorCode.none]
        assert len(describe(raw)) == 3
        assert alter(raw, entry({"producer_byte_rate": None}, client_id=None)) == [ErrorCode.none]
        assert len(describe(raw)) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        entry({"producer_byte_rate": 1.0}),
        entry({"producer_byte_rate": 1.0}, ip="10.0.0.1"),
        entry({"connection_creation_rate": 1.0}, user="ann"),
        entry({"controller_mutation_rate": 1.0}, user="ann"),
        entry({"producer_byte_rate": -1.0}, user="ann"),
        entry({"producer_byte_rate": 1.0}, user=""),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(door: DoorThread, wrong: SimpleNamespace) -> None:
    with RawClient(door.port) as raw:
        reply = raw.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=(wrong,), validate_only=False)
        [refused] = reply.entries
        assert refused.error_code is ErrorCode.invalid_request
        assert refused.error_message
        assert describe(raw) == {}


def test_a_producer_beyond_its_rate_is_told_and_held(door: DoorThread) -> None:
    hold(door, QuotaEntity(None, CLIENT_ID), producer_byte_rate=float(100 * KIB))
    batch = record_batch(bytes(120 * KIB))
    with RawClient(door.port) as raw:
        stored = raw.ask(ApiKey.PRODUCE, 9, **requests.produce("t", batch))
        assert stored.responses[0].partition_responses[0].error_code is ErrorCode.none, "nothing is refused"
        assert 150 <= stored.throttle_time.total_seconds() * 1_000 <= 300
        begun_s = time.monotonic()
        raw.ask(ApiKey.API_VERSIONS, 0)
        assert time.monotonic() - begun_s >= 0.1, "the connection is not served for that time"


def test_a_reader_beyond_its_rate_gets_less_and_is_told(door: DoorThread) -> None:
    with RawClient(door.port) as raw:
        for _ in range(3):
            raw.ask(ApiKey.PRODUCE, 9, **requests.produce("t", record_batch(bytes(60 * KIB))))
        hold(door, QuotaEntity("ANONYMOUS"), consumer_byte_rate=float(50 * KIB))
        first = raw.ask(ApiKey.FETCH, 12, **requests.fetch("t", 0))
        assert len(first.responses[0].partitions[0].records) < 70 * KIB
        assert first.throttle_time.total_seconds() > 0.1
        with RawClient(door.port) as other:  # of the same user: it shares what that has
            second = other.ask(ApiKey.FETCH, 12, **requests.fetch("t", 1))
            assert not second.responses[0].partitions[0].records
            assert second.throttle_time.total_seconds() > 0.05


def test_the_loops_time_is_bounded_too(door: DoorThread) -> None:
    hold(door, QuotaEntity(DEFAULT), request_percentage=0.001)
    with RawClient(door.port) as raw:
        told = raw.ask(ApiKey.METADATA, 12, **requests.metadata()).throttle_time.total_seconds()
        hold(door, QuotaEntity(DEFAULT), request_percentage=None)
    assert told > 0
    with RawClient(door.port) as raw:
        assert not raw.ask(ApiKey.METADATA, 12, **requests.metadata()).throttle_time


def test_others_are_not_held(door: DoorThread) -> None:
    hold(door, QuotaEntity(None, "somebody-else"), producer_byte_rate=1.0)
    with RawClient(door.port) as raw:
        stored = raw.ask(ApiKey.PRODUCE, 9, **requests.produce("t", record_batch(bytes(KIB))))
    assert not stored.throttle_time


@pytest.mark.slow
def test_confluents_producer_and_consumer_keep_to_their_rates(door: DoorThread) -> None:
    hold(door, QuotaEntity(None, "loud"), producer_byte_rate=float(200 * KIB))
    hold(door, QuotaEntity(None, "hungry"), consumer_byte_rate=float(200 * KIB))
    waits: list[float] = []
    config = {
        "bootstrap.servers": door.address,
        "throttle_cb": lambda event: waits.append(event.throttle_time),
    }
    producer = Producer({**config, "client.id": "loud", "linger.ms": 0, "batch.size": 50_000})
    begun_s = time.monotonic()
    for _ in range(16):
        producer.produce("t", bytes(40 * KIB))
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert time.monotonic() - begun_s >= 1.5, "640 KiB at 200 KiB/s, with a second's worth at once"
    assert waits, "it was told"

    waits.clear()
    consumer = Consumer({**config, "client.id": "hungry", "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    read, begun_s, first_s = 0, time.monotonic(), None
    while read < 16 and time.monotonic() - begun_s < PATIENCE_S:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            first_s = first_s or time.monotonic()
            read += 1
    taken_s = time.monotonic() - (first_s or 0)
    consumer.close()
    assert read == 16
    assert taken_s >= 1.5
    assert waits


@pytest.mark.slow
def test_aiokafkas_producer_keeps_to_its_rate(door: DoorThread) -> None:
    hold(door, QuotaEntity(None, DEFAULT), producer_byte_rate=float(200 * KIB))

    async def publish() -> float:
        async with AIOKafkaProducer(bootstrap_servers=door.address, client_id="steady") as producer:
            begun_s = time.monotonic()
            for _ in range(12):
                await producer.send_and_wait("t", bytes(50 * KIB))
            return time.monotonic() - begun_s

    assert asyncio.run(publish()) >= 1.5
