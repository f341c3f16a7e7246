"""The story of messages that a real Kafka client publishes and consumes, before and after kill -9."""

from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.integration.clients import create_topic, read_all
from tests.integration.running_broker import RunningBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"


def test_what_a_kafka_client_does_is_told_by_place_and_by_trace_id(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "orders", partitions=1)
    producer = Producer({"bootstrap.servers": broker.kafka, "compression.type": "zstd", "linger.ms": 50})
    for number in range(100):
        producer.produce("orders", b"x" * 100, headers={"traceparent": PARENT} if number == 50 else None)
    assert producer.flush(20) == 0
    assert len(read_all(broker.kafka, "orders", partitions=1)[0]) == 100
    _commit(broker, 60)

    traced = _get(broker, f"/traces/{TRACE_ID}")
    assert (traced["topic"], traced["partition"], traced["offset"]) == ("orders", 0, 50)
    stages = {span["event_type"]: span for span in traced["spans"]}
    assert stages.keys() == {
        "publish.received",
        "publish.partitioned",
        "publish.persisted",
        "consume.fetched",
        "consume.acked",
    }
    assert stages["publish.received"]["parent_span_id"] == "b7ad6b7169203331"
    assert stages["consume.acked"]["consumer_group"] == "workers"
    assert traced["status"] == "completed"
    behind = _get(broker, "/topics/orders/partitions/0/offsets/60/trace")
    assert behind["state"] == "in_progress", "the group has not come to it"

    broker.kill()
    broker.start()
    again = _get(broker, f"/traces/{behind['trace_id']}")
    assert (again["offset"], again["status"]) == (60, "pending")
    by_place = _get(broker, "/topics/orders/partitions/0/offsets/50/trace")
    assert (by_place["trace_id"], by_place["status"]) == (TRACE_ID, "completed")
    assert {span["attributes"]["source"] for span in by_place["spans"]} == {"log", "journal"}


def _commit(broker: RunningBroker, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.kafka, "group.id": "workers"})
    consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()


def _get(broker: RunningBroker, path: str) -> dict[str, Any]:
    reply = httpx.get(broker.http + path, timeout=20)
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert isinstance(found, dict)
    return found
