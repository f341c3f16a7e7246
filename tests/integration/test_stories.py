"""What users do in a day, over both doors, with the broker killed in the middle of it."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

from tests.integration.clients import read_all
from tests.integration.running_broker import RunningBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

Json = dict[str, Any]
PATIENCE_S = 30
LARGEST = 16 * 1024 * 1024
LARGEST_IN_JSON = 4 * 1024 * 1024 - 1024
NOT_TEXT = b"\xff\x00\xfe"


class User:
    """Somebody with an HTTP client who outlives the broker."""

    def __init__(self, broker: RunningBroker) -> None:
        self.client = httpx.Client(base_url=broker.http, timeout=30)

    def create(self, topic: str, *, partitions: int = 1, **settings: str) -> None:
        texts = {f"goqueue.{name.replace('_', '.')}": value for name, value in settings.items()}
        self.post("/topics", {"name": topic, "num_partitions": partitions, "settings": texts}, status=201)

    def publish(self, topic: str, *messages: Json) -> list[Json]:
        results: list[Json] = self.post(f"/topics/{topic}/messages", {"messages": messages})["results"]
        assert all("error" not in result for result in results), results
        return results

    def join(self, group: str, topic: str, **terms: object) -> str:
        body = {"client_id": "user", "topics": [topic], "session_timeout": "10m", **terms}
        return str(self.post(f"/groups/{group}/join", body)["member_id"])

    def poll(self, group: str, member: str, **query: str | int) -> list[Json]:
        params = {"member_id": member, "timeout": "0s", **query}
        return list(self.get(f"/groups/{group}/poll", **params)["messages"])

    def settle(self, what: str, *messages: Json, **more: object) -> Json:
        handles = [message["receipt_handle"] for message in messages]
        reply = self.post(f"/messages/{what}", {"receipt_handles": handles, **more})
        assert reply["success"], reply
        return reply

    def get(self, path: str, **params: str | int) -> Json:
        reply = self.client.get(path, params=params)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    def post(self, path: str, body: Json, *, status: int = 200) -> Json:
        reply = self.client.post(path, json=body)
        assert reply.status_code == status, reply.text
        return dict(reply.json())


@pytest.fixture
def user(broker: RunningBroker) -> Iterator[User]:
    user = User(broker)
    yield user
    user.client.close()
    complaints = [line for line in broker.log.splitlines() if " ERROR " in line or "Traceback" in line]
    assert complaints == []


def restart(broker: RunningBroker) -> None:
    broker.kill()
    broker.start()


def values(messages: list[Json]) -> list[str]:
    return [message["value"] for message in messages]


def test_a_day_of_a_queue(broker: RunningBroker, user: User) -> None:
    """Everything a message can ask for, everything a consumer can do to it, and the way back."""
    user.create("orders", retries_max="1", retry_backoff_ms="1")
    user.publish(
        "orders",
        {"value": "later", "delay": "700ms", "key": None, "headers": {"tenant": "blue"}},
        {"value": "never", "ttl": "1ms"},
        {"value": "slow", "priority": "background", "deliverAt": None},
        {"value": "fast", "priority": "critical"},
        {"value": "good"},
        {"value": "bad"},
        {"value": "worse"},
    )
    worker, auditor = user.join("workers", "orders"), user.join("büro 1", "orders")
    taken = {message["value"]: message for message in user.poll("workers", worker, visibility_timeout="1m")}
    assert set(taken) == {"fast", "good", "bad", "worse", "slow"}
    assert next(iter(taken)) == "fast"
    user.settle("ack", taken["good"], consumer_id=None)
    user.settle("nack", taken["bad"], delay=None, reason=None)
    user.settle("reject", taken["worse"], reason="no such customer")
    user.settle("visibility", taken["slow"], timeout="10m")

    restart(broker)

    assert set(values(user.poll("büro 1", auditor))) >= set(taken), "another group's leases hide nothing"
    again = user.poll("workers", worker, timeout="20s", limit=1)
    again += user.poll("workers", worker, timeout="20s", limit=1)
    assert {(m["value"], m["delivery_count"]) for m in again} == {("bad", 2), ("later", 1)}
    assert [m["headers"]["tenant"] for m in again if m["value"] == "later"] == ["blue"]
    user.settle("nack", *(m for m in again if m["value"] == "bad"))
    user.settle("ack", taken["fast"], taken["slow"], *(m for m in again if m["value"] == "later"))
    letters = user.get("/topics/orders/dlq")["messages"]
    assert {(m["value"], m["reason"], m["delivery_attempts"]) for m in letters} == {
        ("worse", "REJECTED", 1),
        ("bad", "MAX_RETRIES_EXCEEDED", 2),
    }
    assert committed(broker, "workers") == {0: 7} == {0: user.get("/topics/orders")["total_messages"]}
    assert len(read_all(broker.kafka, "orders", partitions=1)[0]) == 7, "the log has all of it"

    back = user.post("/topics/orders/dlq/redrive", {"filter": {"reason": "REJECTED"}})
    assert (back["redriven"], back["complete"]) == (1, True)
    assert values(user.poll("workers", worker)) == ["worse"]


def committed(broker: RunningBroker, group: str) -> dict[int, int]:
    """A group's offsets as Kafka's own tools tell them, which know nothing of leases: its floor."""
    admin = AdminClient({"bootstrap.servers": broker.kafka})
    told = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(PATIENCE_S)
    return {row.partition: row.offset for row in told.topic_partitions}


def test_what_was_open_on_a_deleted_topic_does_not_reach_a_new_one_of_its_name(
    broker: RunningBroker, user: User
) -> None:
    user.create("orders", partitions=2)
    user.create("results")
    user.publish("orders", *({"value": f"old {n}"} for n in range(4)), {"value": "old", "delay": "1s"})
    user.post(
        "/topics/orders/schedules", {"name": "tick", "cron": "* * * * * *", "message": {"value": "old"}},
        status=201,
    )  # fmt: skip
    worker = user.join("workers", "orders")
    taken = user.poll("workers", worker)
    writer = {**user.post("/producers/init", {"transactional_id": "writer"})}
    user.post("/transactions/begin", writer)
    for topic in ("orders", "results"):
        user.post("/transactions/publish", {**writer, "topic": topic, "value": "in a transaction"})

    assert user.client.delete("/topics/orders").status_code == 200
    refused = user.client.post("/messages/ack", json={"receipt_handle": taken[0]["receipt_handle"]})
    assert (refused.status_code, refused.json()["code"]) == (404, "receipt_not_found")
    user.create("orders")
    restart(broker)
    user.post("/transactions/commit", writer)
    user.publish("orders", {"value": "new", "delay": "1500ms"})

    assert values(user.poll("workers", worker, timeout="20s")) == ["new"], "and nothing old came before it"
    assert user.get("/topics/orders/schedules")["schedules"] == []
    assert values(user.get("/topics/results/partitions/0/messages")["messages"]) == ["in a transaction"]


def test_any_bytes_of_any_size_go_through_poll_dead_letters_and_back(
    broker: RunningBroker, user: User
) -> None:
    user.create("things")
    largest = b"x" * (LARGEST - 1024)
    producer = Producer({"bootstrap.servers": broker.kafka, "message.max.bytes": 2 * LARGEST})
    bodies = [b"", b"\x00", NOT_TEXT, largest, None]
    for body in bodies:
        producer.produce("things", body, key=NOT_TEXT, headers={"raw": NOT_TEXT}, partition=0)
        producer.flush(PATIENCE_S)
    user.publish("things", {"value": "y" * LARGEST_IN_JSON})
    worker = user.join("workers", "things")

    def poll_all() -> list[Json]:
        found: list[Json] = []
        while more := user.poll("workers", worker, encoding="base64"):
            found += more
        return found

    def bytes_of(messages: list[Json]) -> list[bytes | None]:
        texts = [message["value"] for message in messages]
        return [None if text is None else base64.b64decode(text) for text in texts]

    first = poll_all()
    assert bytes_of(first) == [*bodies, b"y" * LARGEST_IN_JSON]
    user.settle("reject", *first)
    restart(broker)
    letters = user.get("/topics/things/dlq", encoding="base64")["messages"]
    assert [message["key"] for message in letters[:5]] == [base64.b64encode(NOT_TEXT).decode()] * 5
    assert user.post("/topics/things/dlq/redrive", {})["redriven"] == len(first)
    assert bytes_of(poll_all()) == [*bodies, b"y" * LARGEST_IN_JSON]


def test_what_a_transaction_takes_and_writes_counts_once_although_the_broker_is_killed_within(
    broker: RunningBroker, user: User
) -> None:
    """Consume, process, produce and acknowledge: the transaction goes on behind the kill."""
    user.create("orders", retry_backoff_ms="1")
    user.create("results")
    user.publish("orders", *({"value": f"{number}"} for number in range(6)))
    worker = user.join("workers", "orders")
    writer = user.post("/producers/init", {"transactional_id": "writer"})

    def process(taken: list[Json], *, outcome: str, kill_behind: str = "") -> None:
        user.post("/transactions/begin", writer)
        handles = [message["receipt_handle"] for message in taken]
        for message in taken:
            user.post("/transactions/publish", {**writer, "topic": "results", "value": message["value"]})
        if kill_behind == "publish":
            restart(broker)
        user.post("/transactions/add-offsets", {**writer, "receipt_handles": handles})
        if kill_behind == "add-offsets":
            restart(broker)
        user.post(f"/transactions/{outcome}", writer)

    process(user.poll("workers", worker, limit=2), outcome="abort", kill_behind="publish")
    process(user.poll("workers", worker, limit=2), outcome="commit", kill_behind="add-offsets")
    while left := user.poll("workers", worker, timeout="1s"):
        process(left, outcome="commit")

    results = user.get("/topics/results/partitions/0/messages")["messages"]
    assert sorted(values(results)) == [f"{number}" for number in range(6)]
    assert user.get("/groups/workers/lag")["total"] == 0
