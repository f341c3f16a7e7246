"""A tenant has as many connections as its quota says, over HTTP too; what is closed makes room."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from goqueue.broker.tenants.verbs import create_tenant
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.http.config import HttpConfig
from goqueue.model.settings import AccessConfig, BrokerConfig
from goqueue.model.tenant_commands import CreateTenant
from goqueue.model.tenants import Quotas
from tests.doors.http.running_door import RunningDoor
from tests.doors.http.test_neighbours import ACME, ASKING, key_for


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDoor]:
    config = BrokerConfig(access=AccessConfig(knows_who=True))
    with RunningDoor(tmp_path, HttpConfig(), config, listener=ASKING, auth=AuthConfig()) as running:
        command = CreateTenant(name=ACME, tenant_id=ACME, quotas=Quotas(max_connections=2))
        running.run(create_tenant(running.broker, command))
        yield running


def test_one_connection_too_many_is_told_to_come_later(running: RunningDoor) -> None:
    header, admin = key_for(running, ACME), key_for(running, None)
    account = running.broker.tenants.account(ACME)
    clients = [httpx.Client(base_url=running.url, headers=header, verify=False) for _ in range(3)]
    try:
        for client in clients[:2]:
            assert client.get("/topics").status_code == 200
            assert client.get("/topics").status_code == 200, "a connection is counted once"
        refused = clients[2].get("/topics")
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_connections")
        assert refused.headers["retry-after"] == "1"
        assert running.client.get("/topics", headers=admin).status_code == 200, "others are let in"
        usage = running.client.get(f"/admin/tenants/{ACME}/usage", headers=admin).json()
        assert (usage["connection_count"], usage["quota_violations"]) == (2, {"connections": 1})
        stats = running.client.get(f"/admin/tenants/{ACME}/stats", headers=admin).json()
        assert stats["connection_usage_percent"] == 100
        shown = running.client.get("/metrics", headers=admin).text
        assert 'goqueue_tenant_quota_violations_total{quota="connections",tenant="acme"} 1.0' in shown
        assert 'goqueue_tenant_connections{tenant="acme"} 2.0' in shown

        clients[0].close()
        while account.connections == 2:
            running.client.get("/version", headers=admin)  # until the door has heard of it
        assert clients[2].get("/topics").status_code == 200
    finally:
        for client in clients:
            client.close()


def test_a_connection_is_of_who_came_last(running: RunningDoor) -> None:
    header, admin = key_for(running, ACME), key_for(running, None)
    account = running.broker.tenants.account(ACME)

    running.client.get("/topics", headers=header)
    assert account.connections == 1
    running.client.get("/topics", headers=admin)
    assert account.connections == 0
