"""Groups of HTTP clients and of Kafka clients on one real broker, killed in between."""

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def client(broker: RunningBroker) -> httpx.Client:
    return httpx.Client(base_url=broker.http, timeout=20, verify=False)


def publish(client: httpx.Client, topic: str, count: int) -> None:
    messages = [{"value": f"{n}", "partition": n % 2} for n in range(count)]
    assert client.post(f"/topics/{topic}/messages", json={"messages": messages}).status_code == 200


def test_members_offsets_and_generation_outlive_a_killed_broker(
    broker: RunningBroker, client: httpx.Client
) -> None:
    create_topic(broker.kafka, "orders", partitions=2)
    publish(client, "orders", 10)
    joining = {"client_id": "worker", "topics": ["orders"], "mode": "cooperative"}
    first = client.post("/groups/workers/join", json=joining).json()
    second = client.post("/groups/workers/join", json=joining).json()
    told = client.post("/groups/workers/heartbeat/cooperative", json={"member_id": first["member_id"]}).json()
    let_go = client.post(
        "/groups/workers/revoke",
        json={"member_id": first["member_id"], "revoked_partitions": told["partitions_to_revoke"]},
    )
    assert let_go.status_code == 200
    kept = told["partitions_assigned"][0]["partition"]
    offsets = {"orders": {str(kept): 3}}
    committed = client.post(
        "/groups/workers/offsets", json={"member_id": first["member_id"], "offsets": offsets}
    )
    assert committed.status_code == 200

    broker.kill()
    broker.start()

    assert client.get("/groups/workers/offsets").json()["offsets"] == offsets
    generation = let_go.json()["generation"]
    alive = client.post(
        "/groups/workers/heartbeat/cooperative",
        json={"member_id": first["member_id"], "generation": generation},
    ).json()
    assert (alive["generation"], alive["partitions_assigned"]) == (generation, told["partitions_assigned"])
    other = client.post(
        "/groups/workers/heartbeat/cooperative", json={"member_id": second["member_id"]}
    ).json()
    assert other["partitions_assigned"] == told["partitions_to_revoke"]
    lag = client.get("/groups/workers/lag").json()
    assert lag["total"] == 7
    assert lag["max_seconds"] > 0


def test_a_group_of_kafka_clients_is_seen_and_moved_over_http(
    broker: RunningBroker, client: httpx.Client
) -> None:
    create_topic(broker.kafka, "orders", partitions=2)
    publish(client, "orders", 10)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.kafka,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe(["orders"])
        seen = 0
        while seen < 10:
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None
            seen += 1
        consumer.commit(
            offsets=[TopicPartition("orders", 0, 5), TopicPartition("orders", 1, 1)], asynchronous=False
        )

        described = client.get("/groups/readers").json()
        refused = client.post("/groups/readers/offsets/reset", json={"to": "earliest"})
        undeletable = client.delete("/groups/readers")
    finally:
        consumer.close()
    reset = client.post("/groups/readers/offsets/reset", json={"to": "earliest"})

    assert (described["kind"], described["state"], len(described["members"])) == ("classic", "stable", 1)
    assert described["members"][0]["assigned_partitions"] == ["orders-0", "orders-1"]
    assert described["lag"]["total"] == 4
    assert (refused.status_code, undeletable.status_code) == (409, 409)
    assert [(p["old_offset"], p["new_offset"]) for p in reset.json()["partitions"]] == [(5, 0), (1, 0)]
    assert client.get("/groups/readers/lag").json()["total"] == 10
    assert client.delete("/groups/readers").status_code == 200
