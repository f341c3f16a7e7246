"""confluent-kafka's registry client and its serialisers against a real broker, restarts included."""

import json

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
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
AVRO_WIDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}],
    }
)
AVRO_BROKEN = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})
ORDER = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": False,
    }
)


def registry(broker: RunningBroker) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": f"{broker.http}/schemas"})


def test_the_client_registers_looks_up_compares_and_deletes(broker: RunningBroker) -> None:
    client = registry(broker)

    first = client.register_schema("orders-value", Schema(AVRO, "AVRO"))
    assert client.register_schema("orders-value", Schema(AVRO, "AVRO")) == first
    assert client.test_compatibility("orders-value", Schema(AVRO_WIDER, "AVRO"))
    assert not client.test_compatibility("orders-value", Schema(AVRO_BROKEN, "AVRO"))
    second = client.register_schema("orders-value", Schema(AVRO_WIDER, "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("orders-value", Schema(AVRO_BROKEN, "AVRO"))
    assert refused.value.http_status_code == 409

    assert client.get_subjects() == ["orders-value"]
    assert client.get_versions("orders-value") == [1, 2]
    assert client.get_latest_version("orders-value").schema_id == second
    assert json.loads(client.get_schema(first).schema_str or "") == json.loads(AVRO)
    assert client.lookup_schema("orders-value", Schema(AVRO_WIDER, "AVRO")).version == 2
    assert client.get_version("orders-value", 1).schema_id == first

    client.set_compatibility("orders-value", "FULL")
    assert client.get_compatibility("orders-value") == "FULL"
    assert client.get_compatibility() == "BACKWARD"
    assert client.update_mode("orders-value", "READONLY") == "READONLY"
    with pytest.raises(SchemaRegistryError, match="READONLY"):
        client.delete_version("orders-value", 1)
    client.update_mode("orders-value", "READWRITE")

    assert client.delete_version("orders-value", 1) == 1
    assert client.delete_subject("orders-value") == [2]
    assert client.delete_subject("orders-value", permanent=True) == [1, 2]
    with pytest.raises(SchemaRegistryError) as missing:
        registry(broker).get_latest_version("orders-value")  # another client: this one has a cache
    assert missing.value.error_code == 40401


def test_schemas_settings_and_ids_survive_kill_9(broker: RunningBroker) -> None:
    client = registry(broker)
    item = '{"type": "number"}'
    client.register_schema("item", Schema(item, "JSON"))
    order = Schema('{"$ref": "item.json"}', "JSON", [SchemaReference("item.json", "item", 1)])
    order_id = client.register_schema("order", order)
    client.set_compatibility("order", "NONE")

    broker.kill()
    broker.start()
    client = registry(broker)

    found = client.get_schema(order_id)
    assert found.schema_str == order.schema_str
    assert [each.subject for each in found.references or ()] == ["item"]
    assert client.get_compatibility("order") == "NONE"
    assert client.register_schema("other", Schema(AVRO, "AVRO")) == order_id + 1


def test_serialised_messages_of_all_three_kinds_round_trip_through_the_broker(broker: RunningBroker) -> None:
    client = registry(broker)
    create_topic(broker.kafka, "orders", partitions=1)
    context = SerializationContext("orders", MessageField.VALUE)
    shape = Struct(fields={"id": Value(number_value=7)})
    serialisers = {
        "avro": (AvroSerializer(client, AVRO, conf={"subject.name.strategy": lambda *_: "avro"}), {"id": 7}),
        "json": (JSONSerializer(ORDER, client, conf={"subject.name.strategy": lambda *_: "json"}), {"id": 7}),
        "protobuf": (
            ProtobufSerializer(
                Struct,
                client,
                conf={"subject.name.strategy": lambda *_: "protobuf", "use.deprecated.format": False},
            ),
            shape,
        ),
    }
    producer = Producer({"bootstrap.servers": broker.kafka})
    for serialise, value in serialisers.values():
        producer.produce("orders", serialise(value, context), partition=0)
    producer.flush(10)

    avro, as_json, protobuf = read_all(broker.kafka, "orders", partitions=1)[0]

    assert AvroDeserializer(client)(avro, context) == {"id": 7}
    assert JSONDeserializer(ORDER)(as_json, context) == {"id": 7}
    decode = ProtobufDeserializer(Struct, {"use.deprecated.format": False})
    assert decode(protobuf, context) == shape
    assert client.get_subjects() == ["avro", "json", "protobuf"]
