"""Topics that check their messages, fed by confluent-kafka's serialisers and over HTTP, restarts included."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.schema_registry import (
    Schema,
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.struct_pb2 import Struct, Value

from tests.integration.clients import create_topic, read_all
from tests.integration.running_broker import RunningBroker

pytestmark = [
    pytest.mark.slow,
    # Of authlib, which the client imports for a kind of login that is not used here.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
JSON = json.dumps({"title": "Invoice", "type": "object", "properties": {"id": {"type": "integer"}}})
STRATEGIES = {
    "topic-name": {},
    "record-name": {"subject.name.strategy": record_subject_name_strategy},
    "topic-record-name": {"subject.name.strategy": topic_record_subject_name_strategy},
}


def checking(strategy: str = "topic-name", on_invalid: str = "refuse") -> dict[str, str]:
    return {
        "goqueue.schema.validation": "full",
        "goqueue.schema.subject.strategy": strategy,
        "goqueue.schema.on.invalid": on_invalid,
    }


def serialisers(
    client: SchemaRegistryClient, strategy: dict[str, Any]
) -> dict[str, Callable[[SerializationContext], bytes | None]]:
    """A good message of each kind, by the topic it goes to."""
    shape = Struct(fields={"id": Value(number_value=7)})
    avro = AvroSerializer(client, AVRO, conf=strategy)
    as_json = JSONSerializer(JSON, client, conf=strategy)
    protobuf = ProtobufSerializer(Struct, client, conf={**strategy, "use.deprecated.format": False})
    return {
        "avro": lambda context: avro({"id": 7}, context),
        "json": lambda context: as_json({"id": 7}, context),
        "protobuf": lambda context: protobuf(shape, context),
    }


def sent(producer: Producer, topic: str, value: bytes) -> KafkaError | None:
    errors: list[KafkaError | None] = []
    producer.produce(topic, value, partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    return errors[0]


def test_what_the_serialisers_write_fits_and_a_cut_off_message_does_not(broker: RunningBroker) -> None:
    client = SchemaRegistryClient({"url": f"{broker.http}/schemas"})
    producer = Producer({"bootstrap.servers": broker.kafka})
    for strategy, conf in STRATEGIES.items():
        for kind, serialise in serialisers(client, conf).items():
            topic = f"{kind}-by-{strategy}"
            create_topic(broker.kafka, topic, partitions=1, settings=checking(strategy))
            value = serialise(SerializationContext(topic, MessageField.VALUE)) or b""

            assert sent(producer, topic, value) is None, topic
            refused = sent(producer, topic, value[:-1])
            assert refused is not None and refused.code() == KafkaError.INVALID_RECORD, topic
            unknown = sent(producer, topic, b"\x00\x00\x00\xff\xff" + value[5:])
            assert unknown is not None and unknown.code() == KafkaError.INVALID_RECORD, topic
            assert read_all(broker.kafka, topic, partitions=1)[0] == [value]


def test_a_restarted_broker_checks_as_before_and_has_what_was_kept(broker: RunningBroker) -> None:
    client = SchemaRegistryClient({"url": f"{broker.http}/schemas"})
    client.register_schema("orders-value", Schema(JSON, "JSON"))
    settings = checking(on_invalid="quarantine")
    create_topic(broker.kafka, "orders", partitions=1, settings=settings)
    producer = Producer({"bootstrap.servers": broker.kafka, "enable.idempotence": True})
    assert sent(producer, "orders", b'{"id": 1}') is None
    assert sent(producer, "orders", b'{"id": "x"}') is None

    broker.kill()
    broker.start()

    assert sent(producer, "orders", b'{"id": "y"}') is None
    body = {"messages": [{"value": '{"id": "z"}'}, {"value": '{"id": 2}'}]}
    bad, good = httpx.post(f"{broker.http}/topics/orders/messages", json=body).json()["results"]
    assert bad["quarantined"] == "orders.quarantine"
    assert bad["reason"] == 'value: #/id: "z" is not of type "integer"'
    assert good["offset"] == 3
    assert read_all(broker.kafka, "orders", partitions=1)[0] == [b'{"id": 1}', b'{"id": 2}']
    kept = read_all(broker.kafka, "orders.quarantine", partitions=1)[0]
    assert kept == [b'{"id": "x"}', b'{"id": "y"}', b'{"id": "z"}']
