"""Three real nodes: tenants are the same at all of them, and judged by what all of them hold."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration.running_cluster import RunningCluster, cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
NODES = ("node-1", "node-2", "node-3")
PARTITIONS = 6


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "--nodes=3") as running:
        running.start()
        yield running
        assert running.stop() == 0


def ask(three: RunningCluster, node: str, method: str, path: str, body: Any = None) -> httpx.Response:
    return httpx.request(method, f"http://{three.doors[node, 'http']}{path}", json=body, timeout=20)


def told(reply: httpx.Response) -> Any:
    assert reply.status_code < 300, reply.text
    return reply.json()


def create_with_one_copy(three: RunningCluster, topic: str) -> None:
    """Most nodes hold nothing of most partitions then."""
    admin = AdminClient({"bootstrap.servers": three.doors["node-1", "kafka"]})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)


def publish(three: RunningCluster, node: str, topic: str, size: int = 100) -> httpx.Response:
    messages = [{"value": "x" * size, "partition": number} for number in range(PARTITIONS)]
    return ask(three, node, "POST", f"/topics/{topic}/messages", {"messages": messages})


def test_a_tenant_made_at_one_node_is_known_changed_and_suspended_at_any(three: RunningCluster) -> None:
    told(ask(three, "node-1", "POST", "/admin/tenants", {"id": "acme", "name": "Acme"}))
    create_with_one_copy(three, "acme.orders")
    for node in NODES:
        assert told(ask(three, node, "GET", "/admin/tenants/acme"))["id"] == "acme"
    told(publish(three, "node-2", "acme.orders"))
    told(ask(three, "node-2", "POST", "/admin/tenants/acme/suspend", {"reason": "unpaid"}))
    for node in NODES:
        assert publish(three, node, "acme.orders").status_code == 403
    told(ask(three, "node-3", "POST", "/admin/tenants/acme/activate"))
    for node in NODES:
        told(publish(three, node, "acme.orders"))


def test_usage_is_the_sum_of_what_all_nodes_have_counted_and_can_be_reset_anywhere(
    three: RunningCluster,
) -> None:
    told(ask(three, "node-1", "POST", "/admin/tenants", {"id": "busy", "name": "Busy"}))
    create_with_one_copy(three, "busy.orders")
    for node in NODES:
        told(publish(three, node, "busy.orders"))
    for node in NODES:
        usage = told(ask(three, node, "GET", "/admin/tenants/busy/usage"))
        assert usage["total_messages_published"] == 3 * PARTITIONS, usage
        assert (usage["topic_count"], usage["partition_count"]) == (1, PARTITIONS)
        assert usage["storage_bytes"] > 3 * PARTITIONS * 100
    told(ask(three, "node-2", "POST", "/admin/tenants/busy/usage/reset"))
    assert told(ask(three, "node-3", "GET", "/admin/tenants/busy/usage"))["total_messages_published"] == 0


def test_bytes_stored_by_all_nodes_together_are_held_to_the_quota(three: RunningCluster) -> None:
    quotas = {"max_storage_bytes": 60_000}
    told(ask(three, "node-1", "POST", "/admin/tenants", {"id": "full", "name": "Full", "quotas": quotas}))
    create_with_one_copy(three, "full.orders")
    deadline_s = time.monotonic() + 60
    stored = 0
    # Each leader alone stays below it: what the others hold is heard of every few seconds.
    while stored < 60_000:
        told(publish(three, "node-1", "full.orders", size=2_000))
        stored = told(ask(three, "node-1", "GET", "/admin/tenants/full/usage"))["storage_bytes"]
    assert stored < 60_000 * 2
    refused: set[int] = set()
    while len(refused) < PARTITIONS:
        assert time.monotonic() < deadline_s, refused
        for number in range(PARTITIONS):
            body = {"messages": [{"value": "x", "partition": number}]}
            reply = ask(three, "node-2", "POST", "/topics/full.orders/messages", body)
            told_so = reply.json() if reply.status_code >= 300 else reply.json()["results"][0]
            if told_so.get("code") == "storage_quota_exceeded":
                refused.add(number)
        time.sleep(0.2)


def test_rates_are_divided_among_the_nodes_that_are_ready(three: RunningCluster) -> None:
    quotas = {"publish_rate_limit": 30}
    told(ask(three, "node-1", "POST", "/admin/tenants", {"id": "fast", "name": "Fast", "quotas": quotas}))
    create_with_one_copy(three, "fast.orders")
    body = {"messages": [{"value": "x", "partition": 0}] * 10}
    codes = []
    with httpx.Client(base_url=f"http://{three.doors['node-1', 'http']}", timeout=20) as client:
        for _ in range(3):
            reply = client.post("/topics/fast.orders/messages", json=body)
            answer = reply.json() if reply.status_code >= 300 else reply.json()["results"][0]
            codes.append(answer.get("code", "taken"))
    # One partition is led by one node, which has a third of the rate: ten messages a second.
    assert codes[0] == "taken"
    assert "rate_exceeded" in codes, codes
