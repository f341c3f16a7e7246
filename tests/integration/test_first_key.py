"""The first administrator of a real broker."""

import httpx
import pytest

from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow


def test_a_first_key_is_printed_once_and_opens_after_a_restart(start_broker: StartBroker) -> None:
    broker = start_broker("--auth-enabled=true")
    [line] = [line for line in broker.printed.splitlines() if line.startswith("auth")]
    key = {"X-API-Key": line.rpartition(" ")[2]}

    assert httpx.get(f"{broker.http}/topics").status_code == 401
    assert httpx.post(f"{broker.http}/admin/users", json={"name": "alice"}, headers=key).status_code == 201
    assert broker.stop() == 0
    broker.start()

    assert "auth" not in broker.printed
    users = httpx.get(f"{broker.http}/admin/users", headers=key).json()["users"]
    assert [user["name"] for user in users] == ["alice"]
    assert key["X-API-Key"] not in broker.log
