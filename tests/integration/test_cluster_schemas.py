"""Three real nodes and confluent-kafka's registry client: any of them answers, and one of them is killed."""

import json
import time
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import httpx
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from tests.integration.running_cluster import RunningCluster, cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(90),
    # Of authlib, which the client imports for a kind of login that is not used here.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
P = ParamSpec("P")
T = TypeVar("T")
NODES = ("node-1", "node-2", "node-3")
PARTITIONS = 6


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "--nodes=3") as running:
        running.start()
        yield running
        assert running.stop() == 0


def registry_at(three: RunningCluster, node: str) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": f"http://{three.doors[node, 'http']}/schemas", "max.retries": 0})


def avro(name: str, *fields: str) -> Schema:
    shape = [{"name": field, "type": "long", "default": 0} for field in fields]
    return Schema(json.dumps({"type": "record", "name": name, "fields": shape}), "AVRO")


def retried(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """What an application does that has several nodes to ask: again where it is told that it may."""
    deadline_s = time.monotonic() + 30
    while True:
        try:
            return work(*given, **named)
        except (SchemaRegistryError, httpx.HTTPError, OSError) as error:
            status = error.http_status_code if isinstance(error, SchemaRegistryError) else 503
            assert status in (503, -1), error
            assert time.monotonic() < deadline_s, error
            time.sleep(0.05)


def test_what_one_node_has_registered_every_node_knows_at_once(three: RunningCluster) -> None:
    given = {}
    for turn in range(30):
        writer, reader = NODES[turn % 3], NODES[(turn + 1) % 3]
        subject = f"at-once-{turn}"
        schema_id = retried(registry_at(three, writer).register_schema, subject, avro(f"R{turn}", "a"))
        assert schema_id not in given, "an id is given once"
        given[schema_id] = subject
        # Without patience: the client that reads is another one, and asks at another node.
        assert registry_at(three, reader).get_schema(schema_id).schema_str is not None
        assert registry_at(three, NODES[(turn + 2) % 3]).get_version(subject, 1).schema_id == schema_id
        same = registry_at(three, reader).register_schema(subject, avro(f"R{turn}", "a"))
        assert same == schema_id, "whoever registers it again gets its id, wherever"


def test_settings_and_deletions_asked_of_any_node_hold_at_all(three: RunningCluster) -> None:
    one, two, other = (registry_at(three, node) for node in NODES)
    one.register_schema("kept", avro("Kept", "a"))
    two.set_compatibility("kept", "FULL")
    assert two.get_compatibility("kept") == "FULL", "read where it was written"
    assert other.delete_version("kept", 1) == 1
    with pytest.raises(SchemaRegistryError) as refused:
        other.get_version("kept", 1)
    assert refused.value.http_status_code == 404


def test_a_schema_registered_at_one_node_counts_at_the_leader_of_any_partition(
    three: RunningCluster,
) -> None:
    kafka = ",".join(three.doors[node, "kafka"] for node in NODES)
    config = {"goqueue.schema.validation": "id", "goqueue.schema.on.invalid": "refuse"}
    topic = NewTopic("checked", PARTITIONS, config=config)
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([topic])["checked"].result(30)
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 0})
    refused: list[str] = []
    for turn in range(12):
        client = registry_at(three, NODES[turn % 3])
        schema_id = client.register_schema("checked-value", avro("Checked", *(f"f{n}" for n in range(turn))))
        value = b"\0" + schema_id.to_bytes(4) + b"\0" * turn
        for number in range(PARTITIONS):
            producer.produce(
                "checked",
                value,
                partition=number,
                on_delivery=lambda error, _: refused.append(str(error)) if error else None,
            )
        producer.flush(30)
    assert refused == []
    with pytest.raises(KafkaException):
        _produce_one(producer, b"\0" + (999_999).to_bytes(4))


def _produce_one(producer: Producer, value: bytes) -> None:
    told: list[KafkaException] = []
    producer.produce(
        "checked",
        value,
        partition=0,
        on_delivery=lambda error, _: told.append(KafkaException(error)) if error else None,
    )
    producer.flush(30)
    if told:
        raise told[0]


def test_whoever_writes_the_registry_is_killed_and_nothing_registered_is_lost_or_given_twice(
    three: RunningCluster,
) -> None:
    given: dict[int, str] = {}

    def register(node: str, count: int) -> None:
        for _ in range(count):
            subject = f"killed-{node}-{len(given)}"
            schema = avro(f"K{len(given)}", "a")
            schema_id = retried(registry_at(three, node).register_schema, subject, schema)
            assert given.setdefault(schema_id, subject) == subject, "an id stands for one schema"

    for victim in NODES:
        others = [node for node in NODES if node != victim]
        register(victim, 5)
        three.child(victim).kill()
        killed_s = time.monotonic()
        register(others[0], 1)
        print(f"{victim} killed, registered again after {time.monotonic() - killed_s:.2f} s")
        register(others[1], 5)
        for node in others:
            for schema_id, subject in given.items():
                found = retried(registry_at(three, node).get_version, subject, 1)
                assert found.schema_id == schema_id
        three.wait_for(f"{victim}   ready")
        while registry_refuses(three, victim, min(given)):
            assert time.monotonic() < killed_s + 60
            time.sleep(0.05)
    assert sorted(given) == sorted(set(given))


def registry_refuses(three: RunningCluster, node: str, schema_id: int) -> bool:
    try:
        reply = httpx.get(f"http://{three.doors[node, 'http']}/schemas/ids/{schema_id}")
    except httpx.HTTPError:
        return True
    assert reply.status_code in (200, 503), reply.text
    return reply.status_code != 200
