"""How far groups have read, over HTTP: commits in both shapes, resets, lag."""

import httpx
import pytest

from tests.doors.http.running_door import RunningDoor

GROUP = "/groups/readers"


@pytest.fixture
def stored(client: httpx.Client, orders: str) -> str:
    """The topic with three messages in partition 0."""
    for _ in range(3):
        message = {"value": "x", "partition": 0}
        assert client.post(f"/topics/{orders}/messages", json={"messages": [message]}).status_code == 200
    return orders


def commit(client: httpx.Client, offsets: object, **fields: object) -> httpx.Response:
    return client.post(f"{GROUP}/offsets", json={"offsets": offsets, **fields})


def committed(client: httpx.Client, topic: str = "orders") -> dict[str, int]:
    found: dict[str, int] = client.get(f"{GROUP}/offsets").json()["offsets"].get(topic, {})
    return found


@pytest.mark.parametrize(
    "offsets",
    [
        {"orders": {"0": 2, "1": 0}},
        [
            {"topic": "orders", "partition": 0, "offset": 2},
            {"topic": "orders", "partition": 1, "offset": 0},
        ],
    ],
    ids=["map", "array"],
)
def test_offsets_are_committed_in_either_shape(client: httpx.Client, stored: str, offsets: object) -> None:
    kept = commit(client, offsets)

    assert kept.status_code == 200
    assert kept.json() == {
        "status": "committed",
        "committed": True,
        "group": "readers",
        "offsets": {"orders": {"0": 2, "1": 0}},
    }
    fetched = client.get(f"{GROUP}/offsets").json()
    assert fetched["group_id"] == "readers"
    assert fetched["offsets"] == fetched["topics"] == {"orders": {"0": 2, "1": 0}}
    assert fetched["generation"] == 0
    assert fetched["updated_at"].endswith("Z")


def test_negative_offsets_are_passed_over_and_unknown_places_are_told_one_by_one(
    client: httpx.Client, stored: str
) -> None:
    kept = commit(client, {"orders": {"0": 1, "1": -1, "7": 3}, "never-was": {"0": 1}}).json()

    assert kept["offsets"] == {"orders": {"0": 1}}
    assert {(e["topic"], e["partition"], e["code"]) for e in kept["errors"]} == {
        ("orders", 7, "partition_not_found"),
        ("never-was", 0, "topic_not_found"),
    }
    assert committed(client) == {"0": 1}


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"offsets": {"never-was": {"0": 1}}}, 404, "topic_not_found"),
        ({"offsets": {"orders": {"zero": 1}}}, 400, "invalid"),
        ({"offsets": {"orders": {"0": "1"}}}, 400, "invalid"),
        ({"offsets": 7}, 400, "invalid"),
        ({}, 400, "invalid"),
        ({"offsets": {"orders": {"0": 1}}, "member_id": "nobody"}, 404, "group_not_found"),
    ],
)
def test_a_commit_that_makes_no_sense_leaves_no_group_behind(
    client: httpx.Client, stored: str, fields: dict[str, object], status: int, code: str
) -> None:
    refused = client.post(f"{GROUP}/offsets", json=fields)

    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert client.get("/groups").json()["groups"] == []


def test_a_group_that_is_not_known_has_no_offsets_and_no_lag(client: httpx.Client) -> None:
    assert client.get(f"{GROUP}/offsets").json() == {"group_id": "readers", "topics": {}, "offsets": {}}
    assert client.get(f"{GROUP}/lag").status_code == 404
    assert client.get(GROUP).status_code == 404
    assert client.delete(GROUP).status_code == 404


def test_offsets_can_be_asked_for_one_topic(client: httpx.Client, stored: str) -> None:
    client.post("/topics", json={"name": "mail"})
    commit(client, {"orders": {"0": 1}, "mail": {"0": 0}})

    fetched = client.get(f"{GROUP}/offsets", params={"topic": "mail"}).json()

    assert fetched["offsets"] == {"mail": {"0": 0}}


def test_lag_is_told_in_messages_and_in_seconds(client: httpx.Client, stored: str) -> None:
    commit(client, {"orders": {"0": 1, "1": 0}})

    lag = client.get(f"{GROUP}/lag").json()

    first, second = lag["partitions"]
    assert (first["offset"], first["end_offset"], first["lag"]) == (1, 3, 2)
    assert 0 <= first["lag_seconds"] < 60
    assert (second["lag"], second["lag_seconds"]) == (0, 0)
    assert (lag["total"], lag["max_seconds"]) == (2, first["lag_seconds"])
    assert client.get(GROUP).json()["lag"]["total"] == 2


@pytest.mark.parametrize(
    ("goal", "offset"),
    [
        ({"to": "earliest"}, 0),
        ({"to": "latest"}, 3),
        ({"to": "2001-01-01T00:00:00Z"}, 0),
        ({"to": 4_000_000_000_000}, 3),
        ({"to": {"orders": {"0": 2}}}, 2),
        ({"to": [{"topic": "orders", "partition": 0, "offset": 2}]}, 2),
        ({"strategy": "latest", "topic": "orders", "partition": 0}, 3),
        ({"strategy": "timestamp", "timestamp": "2001-01-01T00:00:00Z", "topic": "orders"}, 0),
    ],
)
def test_a_group_can_be_sent_elsewhere(
    client: httpx.Client, stored: str, goal: dict[str, object], offset: int
) -> None:
    commit(client, {"orders": {"0": 1}})

    dry = client.post(f"{GROUP}/offsets/reset", json={**goal, "dry_run": True})
    assert committed(client) == {"0": 1}
    reset = client.post(f"{GROUP}/offsets/reset", json=goal)

    assert reset.status_code == 200
    assert reset.json()["partitions"] == dry.json()["partitions"]
    assert reset.json()["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "old_offset": 1,
        "new_offset": offset,
    }
    assert reset.json()["reset_count"] == len(reset.json()["partitions"])
    assert committed(client)["0"] == offset


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid"),
        ({"to": "yesterday"}, 400, "invalid"),
        ({"to": {}}, 400, "invalid"),
        ({"strategy": "timestamp"}, 400, "invalid"),
        ({"to": {"orders": {"0": 4}}}, 400, "offset_out_of_range"),
        ({"to": "earliest", "topics": ["never-was"]}, 404, "topic_not_found"),
        ({"to": "earliest", "topic": "orders", "partition": 9}, 404, "partition_not_found"),
    ],
)
def test_a_reset_that_makes_no_sense_changes_nothing(
    client: httpx.Client, stored: str, body: dict[str, object], status: int, code: str
) -> None:
    commit(client, {"orders": {"0": 1}})

    refused = client.post(f"{GROUP}/offsets/reset", json=body)

    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert committed(client) == {"0": 1}


@pytest.mark.parametrize(
    "body", [{"to": "earliest", "topic": "orders"}, {"to": {"orders": {"0": 1}}}, {"to": "latest"}]
)
def test_a_reset_makes_no_group(client: httpx.Client, stored: str, body: dict[str, object]) -> None:
    refused = client.post("/groups/never-was/offsets/reset", json=body)

    assert (refused.status_code, refused.json()["code"]) == (404, "group_not_found")
    assert client.get("/groups").json()["groups"] == []


def test_a_group_is_listed_and_forgotten(running: RunningDoor, client: httpx.Client, stored: str) -> None:
    commit(client, {"orders": {"0": 1}})

    listed = client.get("/v1/groups").json()
    assert listed["groups"] == ["readers"]
    assert [(d["id"], d["state"], d["members"]) for d in listed["details"]] == [("readers", "empty", 0)]
    assert listed["details"][0]["topics"] == ["orders"], "it has offsets of it, though no member"
    assert client.delete(GROUP).json() == {"group": "readers", "group_id": "readers", "deleted": True}
    assert client.get("/groups").json()["groups"] == []


def test_messages_that_were_acknowledged_come_again_after_a_reset(client: httpx.Client, stored: str) -> None:
    joined = client.post(f"{GROUP}/join", json={"client_id": "c", "topics": [stored]}).json()
    poll = {"member_id": joined["member_id"], "timeout": "0s"}
    first = client.get(f"{GROUP}/poll", params=poll).json()["messages"]
    for message in first:
        client.post("/messages/ack", json={"receipt_handle": message["receipt_handle"]})
    assert committed(client)["0"] == 3
    assert client.get(f"{GROUP}/poll", params=poll).json()["messages"] == []

    client.post(f"{GROUP}/offsets/reset", json={"to": {stored: {"0": 1}}, "force": True})

    again = client.get(f"{GROUP}/poll", params=poll).json()["messages"]
    assert [message["offset"] for message in first] == [0, 1, 2]
    assert [message["offset"] for message in again] == [1, 2]
