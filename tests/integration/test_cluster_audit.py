"""Three real nodes: what each writes down is in a topic with copies; what tenants use is told by all."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.integration.running_cluster import RunningCluster, cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
NODES = ("node-1", "node-2", "node-3")
PATIENCE_S = 60


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    settings = {"GOQUEUE_AUDIT_ENABLED": "true"}
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "--nodes=3", settings=settings) as running:
        running.start()
        yield running
        assert running.stop() == 0


def ask(three: RunningCluster, node: str, method: str, path: str, body: object = None) -> httpx.Response:
    return httpx.request(method, f"http://{three.doors[node, 'http']}{path}", json=body, timeout=20)


def wait_until(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.2)


def audited(three: RunningCluster, node: str) -> str:
    return ask(three, node, "GET", "/topics/__audit/partitions/0/messages?limit=1000").text


def tells_all(three: RunningCluster, node: str) -> bool:
    return all(f"made-at-{maker}" in audited(three, node) for maker in NODES)


def test_what_each_node_writes_down_can_be_read_and_checked_at_any(three: RunningCluster) -> None:
    for node in NODES:
        assert ask(three, node, "POST", "/topics", {"name": f"made-at-{node}"}).status_code == 201
    for node in NODES:
        wait_until(partial(tells_all, three, node))
    checked = subprocess.run(
        [
            str(Path(sys.executable).with_name("goqueue-admin")),
            "--server",
            f"http://{three.doors['node-2', 'http']}",
            "audit",
            "verify",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "3 lines in 3 chains" in checked.stdout


def test_the_topic_has_a_copy_on_every_node(three: RunningCluster) -> None:
    def replicas() -> list[str]:
        told: list[str] = ask(three, "node-1", "GET", "/cluster/partition/__audit/0/info").json()["replicas"]
        return told

    wait_until(lambda: sorted(replicas()) == sorted(NODES))


def test_nobody_else_publishes_there(three: RunningCluster) -> None:
    for node in NODES:
        body = {"messages": [{"value": "forged"}]}
        assert ask(three, node, "POST", "/topics/__audit/messages", body).status_code in (400, 403)


def test_what_a_tenant_uses_by_hour_is_told_by_any_node(three: RunningCluster) -> None:
    assert ask(three, "node-1", "POST", "/admin/tenants", {"id": "acme", "name": "Acme"}).status_code == 201
    assert ask(three, "node-1", "POST", "/topics", {"name": "acme.t"}).status_code == 201
    for node in NODES:
        body = {"messages": [{"value": "x"}]}
        assert ask(three, node, "POST", "/topics/acme.t/messages", body).status_code == 200

    def told(node: str) -> bool:
        hours = ask(three, node, "GET", "/admin/tenants/acme/usage/hours").json()["hours"]
        return bool(sum(hour["messages_published"] for hour in hours) == len(NODES))

    for node in NODES:
        wait_until(partial(told, node))
