"""Health, version, numbers."""

import platform
import re
from pathlib import Path

import httpx
import pytest

import goqueue
from goqueue.broker.opening import close_broker
from goqueue.edge.http.app import create_app
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.model.settings import BrokerConfig, HealthConfig
from tests.doors.http.running_door import RunningDoor

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def test_health_is_a_quick_yes(client: httpx.Client) -> None:
    body = client.get("/health").json()

    assert body["status"] == "ok"
    assert TIME.fullmatch(body["timestamp"])


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
def test_probes_pass_while_the_broker_is_open(client: httpx.Client, path: str) -> None:
    probed = client.get(path)

    assert probed.status_code == 200
    assert probed.json().keys() == {"status", "timestamp", "uptime"}
    assert probed.json()["status"] == "pass"


def test_readiness_tells_of_its_checks_when_asked(client: httpx.Client, orders: str) -> None:
    body = client.get("/readyz", params={"verbose": "true"}).json()

    checks = body["checks"]
    assert list(checks) == [
        "broker", "storage", "disk_space", "fsync_latency", "loop_lag",
        "partitions", "damage", "scrub", "journals",
    ]  # fmt: skip
    assert {checks[name]["status"] for name in ("broker", "storage", "partitions", "journals")} == {"pass"}
    assert re.fullmatch(r"\d+µs|[\d.]+ms|[\d.]+s", checks["storage"]["latency"])
    assert "MiB free" in checks["disk_space"]["message"]
    assert "flushes to the disk in the last minute" in checks["fsync_latency"]["message"]
    assert checks["partitions"]["message"] == "3 partitions at work"
    assert body["broker"] == {"node_id": "node-1", "topic_count": 1, "total_size": 0}


def test_a_full_disk_is_not_ready_and_yet_alive_and_readable(tmp_path: Path) -> None:
    too_full = HealthConfig(disk_warn_percent=1, disk_fail_percent=1, disk_enough_bytes=2**62)
    with RunningDoor(tmp_path, broker_config=BrokerConfig(health=too_full)) as running:
        client = running.client
        client.post("/topics", json={"name": "orders", "num_partitions": 1})
        client.post("/topics/orders/messages", json={"messages": [{"value": "x"}]})
        assert client.get("/readyz").status_code == 200  # nobody has looked yet

        verbose = client.get("/readyz", params={"verbose": "true"})
        ready = client.get("/readyz")

        assert (verbose.status_code, verbose.json()["checks"]["disk_space"]["status"]) == (503, "fail")
        assert (ready.status_code, ready.json()["status"]) == (503, "fail")
        assert ready.json()["message"].startswith("disk_space: the data disk is ")
        assert client.get("/healthz").status_code == 200
        assert len(client.get("/topics/orders/partitions/0/messages").json()["messages"]) == 1


@pytest.mark.parametrize("query", ["", "?verbose=false", "?verbose=1"])
def test_readiness_is_short_otherwise(client: httpx.Client, query: str) -> None:
    assert "checks" not in client.get(f"/readyz{query}").json()


def test_a_closed_broker_is_alive_but_not_ready(running: RunningDoor) -> None:
    running.run(close_broker(running.broker))

    ready = running.client.get("/readyz")
    verbose = running.client.get("/readyz", params={"verbose": "true"})

    assert (ready.status_code, ready.json()["status"]) == (503, "fail")
    assert ready.json()["message"]
    assert (verbose.status_code, verbose.json()["checks"]["broker"]["status"]) == (503, "fail")
    assert running.client.get("/healthz").status_code == 503
    assert running.client.get("/livez").status_code == 200


def test_a_server_that_is_stopping_is_not_ready(running: RunningDoor) -> None:
    polls = LongPolls()
    app = create_app(running.broker, HttpConfig(), polls)
    polls.end()

    async def probe(query: str) -> httpx.Response:
        # The door itself would have hung up by now, so the app is asked without one.
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:  # type: ignore[arg-type]
            return await client.get(f"http://door/readyz{query}")

    ready, verbose = running.run(probe("")), running.run(probe("?verbose=true"))

    assert (ready.status_code, ready.json()["message"]) == (503, "the server is stopping")
    assert (verbose.status_code, verbose.json()["checks"]["broker"]["status"]) == (503, "fail")


def test_a_closed_broker_asks_clients_to_come_back_later(running: RunningDoor, orders: str) -> None:
    running.run(close_broker(running.broker))

    refused = running.client.post("/topics/orders/messages", json={"messages": [{"value": "x"}]})

    assert (refused.status_code, refused.json()["code"]) == (503, "shutting_down")
    assert refused.headers["retry-after"] == "1"


def test_the_version_is_the_real_one(client: httpx.Client) -> None:
    assert client.get("/version").json() == {
        "version": goqueue.__version__,
        "git_commit": "unknown",
        "build_time": "unknown",
        "go_version": f"python{platform.python_version()}",
    }


def test_stats_count_topics_and_messages(client: httpx.Client, orders: str) -> None:
    client.post("/topics/orders/messages", json={"messages": [{"value": "x"}] * 4})

    body = client.get("/stats").json()

    assert (body["node_id"], body["topics"]) == ("node-1", 1)
    assert body["total_size_bytes"] == body["topic_stats"]["orders"]["TotalSize"] > 0
    assert body["topic_stats"]["orders"]["Name"] == "orders"
    assert body["topic_stats"]["orders"]["Partitions"] == 3
    assert body["topic_stats"]["orders"]["TotalMessages"] == 4


def test_one_node_is_a_cluster_of_one(client: httpx.Client, orders: str) -> None:
    state, health = client.get("/cluster/state").json(), client.get("/cluster/health").json()

    (node,) = state["nodes"]
    assert (node["id"], node["status"], node["is_controller"]) == ("node-1", "ready", True)
    assert (node["leads"], node["holds"], state["partitions"], state["topics"]) == (3, 3, 3, 1)
    assert (state["controller_id"], health["role"]) == ("node-1", "controller")
    assert (health["status"], health["cluster_size"], health["healthy_nodes"]) == ("healthy", 1, 1)


def test_a_partition_of_one_node_is_led_by_it(client: httpx.Client) -> None:
    client.post("/topics", json={"name": "led", "partitions": 2})
    client.post("/topics/led/messages", json={"messages": [{"value": "v", "partition": 1}]})

    told = client.get("/cluster/partition/led/1/info").json()

    assert (told["leader"], told["replicas"], told["isr"]) == ("node-1", ["node-1"], ["node-1"])
    assert told["local_replica"] == {"role": "leader", "log_end_offset": 1, "high_watermark": 1, "epoch": 1}
    assert client.get("/cluster/partition/led/2/info").json()["code"] == "partition_not_found"
    assert client.get("/cluster/partition/none/0/info").json()["code"] == "topic_not_found"


@pytest.mark.parametrize(
    "path",
    [
        "/health",
        "/healthz",
        "/readyz",
        "/livez",
        "/version",
        "/stats",
        "/metrics",
        "/cluster/state",
        "/cluster/health",
    ],
)
def test_health_routes_stand_at_the_root_only(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 200
    assert client.get(f"/v1{path}").status_code == 404
