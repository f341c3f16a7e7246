"""Health, version, numbers."""

import platform
import re

import httpx
import pytest

import goqueue
from goqueue.broker.broker import close_broker
from goqueue.edge.http.app import create_app
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.long_polls import LongPolls
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

    assert {name: check["status"] for name, check in body["checks"].items()} == {
        "broker": "pass",
        "storage": "pass",
    }
    assert body["broker"] == {"node_id": "node-1", "topic_count": 1, "total_size": 0}


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
    assert refused.headers["access-control-expose-headers"] == "Retry-After"


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


def test_metrics_are_prometheus_text_with_real_numbers(client: httpx.Client, orders: str) -> None:
    client.post("/topics/orders/messages", json={"messages": [{"value": "x"}] * 4})

    scraped = client.get("/metrics")

    assert scraped.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples = dict(line.rsplit(" ", 1) for line in scraped.text.splitlines() if not line.startswith("#"))
    assert samples["goqueue_broker_topic_count"] == "1"
    assert samples['goqueue_broker_topic_partitions{topic="orders"}'] == "3"
    assert samples['goqueue_broker_messages_published_total{topic="orders"}'] == "4"
    assert samples['goqueue_storage_log_end_offset{topic="orders"}'] == "4"
    assert float(samples['goqueue_storage_log_size_bytes{topic="orders"}']) > 0
    assert float(samples["process_resident_memory_bytes"]) > 10_000_000
    assert float(samples["process_cpu_seconds_total"]) > 0


@pytest.mark.parametrize(
    "path", ["/health", "/healthz", "/readyz", "/livez", "/version", "/stats", "/metrics"]
)
def test_health_routes_stand_at_the_root_only(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 200
    assert client.get(f"/v1{path}").status_code == 404
