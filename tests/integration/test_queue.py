"""The work queue of a real process that is killed without warning."""

import time
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow


class Worker:
    """A consumer that outlives the broker it takes from."""

    def __init__(self, broker: RunningBroker) -> None:
        self.client = httpx.Client(base_url=broker.http, timeout=30)
        joined = self.client.post(
            "/groups/workers/join",
            json={"client_id": "w", "topics": ["orders"], "mode": "shared", "session_timeout": "10m"},
        )
        self.member = joined.json()["member_id"]

    def poll(self, **query: str | int) -> list[dict[str, Any]]:
        params = {"member_id": self.member, "timeout": "0s", **query}
        reply = self.client.get("/groups/workers/poll", params=params)
        assert reply.status_code == 200, reply.text
        return list(reply.json()["messages"])

    def settle(self, what: str, messages: list[dict[str, Any]], **more: object) -> None:
        handles = [message["receipt_handle"] for message in messages]
        reply = self.client.post(f"/messages/{what}", json={"receipt_handles": handles, **more})
        assert reply.json()["success"], reply.text


def test_nothing_acknowledged_comes_back_and_nothing_is_lost_when_the_broker_is_killed(
    broker: RunningBroker,
) -> None:
    topic = {"name": "orders", "num_partitions": 2, "settings": {"goqueue.retries.max": 100}}
    httpx.post(f"{broker.http}/topics", json=topic)
    worker = Worker(broker)
    messages = [{"value": f"{number}"} for number in range(60)]
    worker.client.post("/topics/orders/messages", json={"messages": messages})
    acked: set[str] = set()
    dead: set[str] = set()
    counts: Counter[str] = Counter()

    def take(limit: int) -> list[dict[str, Any]]:
        taken = worker.poll(limit=limit, visibility_timeout="3s")
        for message in taken:
            counts[message["value"]] += 1
            assert message["value"] not in acked | dead, "what is settled does not come back"
            assert message["delivery_count"] == counts[message["value"]], "counts survive"
        return taken

    for _ in range(3):
        taken = take(20)
        until = time.monotonic() + 2.5
        worker.settle("ack", taken[:8])
        worker.settle("reject", taken[8:10], reason="bad")
        acked |= {message["value"] for message in taken[:8]}
        dead |= {message["value"] for message in taken[8:10]}
        broker.kill()
        broker.start()
        out = {message["value"] for message in taken[10:]}
        seen = {message["value"] for message in take(5)}
        assert time.monotonic() > until or not seen & out, "a lease holds over the restart"
    left = {message["value"] for message in messages} - acked - dead
    while left:
        taken = worker.poll(limit=100, timeout="5s", visibility_timeout="1m")
        assert taken, f"{len(left)} messages are stuck"
        assert {message["value"] for message in taken} <= left
        worker.settle("ack", taken)
        left -= {message["value"] for message in taken}
    letters = worker.client.get("/topics/orders/dlq").json()["messages"]
    assert sorted(letter["value"] for letter in letters) == sorted(dead), "each dead letter once"
    offsets = worker.client.get("/groups/workers/offsets").json()["offsets"]["orders"]
    assert offsets == {"0": 30, "1": 30}
    worker.client.close()
