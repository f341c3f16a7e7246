"""Groups whose names have a slash: clients write it as %2F, and every route of a group takes it."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.doors.http.running_door import RunningDoor

NAME = "team/readers"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data")) as running:
        assert running.client.post("/topics", json={"name": "orders", "num_partitions": 1}).status_code == 201
        yield running


@pytest.fixture
def client(running: RunningDoor) -> Iterator[httpx.Client]:
    yield running.client
    for group in running.client.get("/groups").json()["groups"]:
        running.client.delete(f"/groups/{group.replace('/', '%2F')}")


def joined(client: httpx.Client, group: str) -> dict[str, Any]:
    reply = client.post(f"{group}/join", json={"client_id": "c", "topics": ["orders"]})
    assert reply.status_code == 200, reply.text
    return {"member_id": reply.json()["member_id"], "generation": reply.json()["generation"]}


@pytest.mark.parametrize(
    "group", ["/groups/team%2Freaders", "/groups/team%2freaders", "/v1/groups/team%2Freaders"]
)
def test_a_group_with_a_slash_lives_a_whole_life(client: httpx.Client, group: str) -> None:
    member = joined(client, group)
    client.post("/topics/orders/messages", json={"messages": [{"value": "x"}]})

    assert client.get("/groups").json()["groups"] == [NAME]
    assert client.get(group).json()["group_id"] == NAME
    assert client.post(f"{group}/heartbeat", json=member).status_code == 200
    polled = client.get(f"{group}/poll", params={**member, "timeout": "5s"}).json()
    assert polled["messages"][0]["value"] == "x"
    receipt = polled["messages"][0]["receipt_handle"]
    assert client.post("/messages/ack", json={"receipt_handle": receipt}).json()["acknowledged"] is True
    assert client.get(f"{group}/offsets").json()["group_id"] == NAME
    assert client.get(f"{group}/lag").status_code == 200
    assert client.post(f"{group}/leave", json=member).json()["left"] is True
    assert client.delete(group).json()["group"] == NAME
    assert client.get("/groups").json()["groups"] == []


@pytest.mark.parametrize("name", ["a/poll", "/", "a//b", "join/cooperative", "v1/groups", "ü/€"])
def test_names_that_look_like_routes_are_names(client: httpx.Client, name: str) -> None:
    group = f"/groups/{quote(name, safe='')}"
    member = joined(client, group)

    assert client.get(group).json()["group_id"] == name
    assert client.get(f"{group}/poll", params={**member, "timeout": "0s"}).status_code == 200
    assert client.delete(group).status_code == 200


def test_a_plain_slash_still_parts_a_path(client: httpx.Client) -> None:
    joined(client, "/groups/team%2Freaders")

    assert client.get("/groups/team/readers").json()["code"] == "no_such_route"
