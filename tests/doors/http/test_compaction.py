"""Compacted topics over HTTP: keys are asked for, and readers, groups and look-ups work over what is gone."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.doors.http.running_door import RunningDoor

COMPACT = {"cleanup.policy": "compact", "segment.bytes": 4096}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def cars(client: httpx.Client) -> Iterator[str]:
    """A compacted topic of one partition with 60 messages of 3 keys, gone afterwards."""
    body = {"name": "cars", "num_partitions": 1, "settings": COMPACT}
    assert client.post("/topics", json=body).status_code == 201
    for first in range(0, 60, 5):
        numbers = range(first, first + 5)
        messages = [{"key": f"car-{number % 3}", "value": f"{number}" + "." * 200} for number in numbers]
        assert client.post("/topics/cars/messages", json={"messages": messages}).status_code == 200
    yield "cars"
    assert client.delete("/topics/cars").status_code == 200


def compacted(client: httpx.Client, **body: object) -> Any:
    reply = client.post("/admin/topics/cars/compact", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_compaction_is_asked_for_and_told(client: httpx.Client, cars: str) -> None:
    would = compacted(client, dry_run=True)
    assert would["results"][0]["records_removed"] == 57
    assert len(client.get("/topics/cars/partitions/0/messages?limit=100").json()["messages"]) == 60

    done = compacted(client, partitions=[0])
    assert (done["success"], done["topic"], done["dry_run"]) == (True, "cars", False)
    assert done["results"] == [
        {
            "partition": 0,
            "records_before": 60,
            "records_after": 3,
            "records_removed": 57,
            "dirty_ratio": 1.0,
            "error": None,
        }
    ]
    found = client.get("/topics/cars/partitions/0/messages?limit=100").json()["messages"]
    assert [message["offset"] for message in found] == [57, 58, 59]
    assert compacted(client)["results"][0]["records_removed"] == 0


def test_what_cannot_be_compacted_is_refused(client: httpx.Client, cars: str) -> None:
    assert client.post("/admin/topics/nowhere/compact").status_code == 404
    assert client.post("/admin/topics/cars/compact", json={"partitions": [1]}).status_code == 400
    assert client.post("/topics", json={"name": "plain", "num_partitions": 1}).status_code == 201
    refused = client.post("/admin/topics/plain/compact")
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_setting")


def test_a_message_without_a_key_is_refused_at_once_and_for_later(client: httpx.Client, cars: str) -> None:
    for wish in ({}, {"delay": "1h"}):
        reply = client.post("/topics/cars/messages", json={"messages": [{"value": "x", **wish}]})
        assert "key" in reply.text and "compacted" in reply.text
    schedule = {"cron": "* * * * *", "message": {"value": "x"}, "name": "each"}
    assert client.post("/topics/cars/schedules", json=schedule).status_code == 400


def test_a_group_gets_what_is_left_and_has_no_lag_behind_it(client: httpx.Client, cars: str) -> None:
    joined = client.post("/groups/drivers/join", json={"topics": ["cars"], "client_id": "c"}).json()
    compacted(client)
    seen: list[int] = []
    while len(seen) < 3:
        query = {"member_id": joined["member_id"], "limit": "2", "timeout": "5s"}
        reply = client.get("/groups/drivers/poll", params=query)
        assert reply.status_code == 200, reply.text
        messages = reply.json()["messages"]
        assert messages
        seen += [message["offset"] for message in messages]
        for message in messages:
            acked = client.post("/messages/ack", json={"receipt_handle": message["receipt_handle"]})
            assert acked.status_code == 200, acked.text
    assert seen == [57, 58, 59]
    lag = client.get("/groups/drivers/lag").json()
    assert lag["total"] == 0


def test_a_time_leads_to_what_is_left(client: httpx.Client, cars: str) -> None:
    compacted(client)
    found = client.get("/topics/cars/partitions/0/messages?offset=10&limit=1").json()["messages"]
    assert [message["offset"] for message in found] == [57]
