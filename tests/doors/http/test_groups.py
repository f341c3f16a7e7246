"""Groups over HTTP: the broker assigns partitions; members join, heartbeat and leave."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.doors.http.running_door import RunningDoor

GROUP = "/groups/readers"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data")) as running:
        created = running.client.post("/topics", json={"name": "orders", "num_partitions": 4})
        assert created.status_code == 201, created.text
        yield running


@pytest.fixture
def client(running: RunningDoor) -> Iterator[httpx.Client]:
    """Each test finds no group and leaves none."""
    yield running.client
    for group in running.client.get("/groups").json()["groups"]:
        assert running.client.delete(f"/groups/{group}").status_code == 200


def join(client: httpx.Client, client_id: str = "c", path: str = "join", **fields: object) -> Json:
    reply = client.post(f"{GROUP}/{path}", json={"client_id": client_id, "topics": ["orders"], **fields})
    assert reply.status_code == 200, reply.text
    joined: Json = reply.json()
    return joined


def beat(client: httpx.Client, member: Json, **fields: object) -> httpx.Response:
    return client.post(f"{GROUP}/heartbeat", json={"member_id": member["member_id"], **fields})


def reconcile(client: httpx.Client, member: Json) -> Json:
    reply = client.post(f"{GROUP}/heartbeat/cooperative", json={"member_id": member["member_id"]})
    assert reply.status_code == 200, reply.text
    told: Json = reply.json()
    return told


def places(*partitions: int) -> list[Json]:
    return [{"topic": "orders", "partition": partition} for partition in partitions]


def test_the_first_member_has_everything_and_leads(client: httpx.Client) -> None:
    joined = join(client, "worker", session_timeout="30s")

    member_id = joined["member_id"]
    assert str(member_id).startswith("worker-")
    assert joined == {
        "member_id": member_id,
        "generation": 1,
        "leader_id": member_id,
        "leader": member_id,
        "partitions": [0, 1, 2, 3],
        "assigned_partitions": ["orders-0", "orders-1", "orders-2", "orders-3"],
        "assignment": places(0, 1, 2, 3),
        "members": [member_id],
        "rebalance_required": False,
        "mode": "eager",
    }


def test_a_second_member_gets_its_share_and_the_first_hears_of_it_by_a_409(client: httpx.Client) -> None:
    first = join(client)
    second = join(client)

    assert (second["generation"], second["leader"], second["leader_id"]) == (2, "", first["member_id"])
    stale = beat(client, first, generation=1)
    assert (stale.status_code, stale.json()["code"]) == (409, "illegal_generation")
    fresh = beat(client, first).json()
    assert fresh == {"status": "ok", "state": "stable", "generation": 2, "rebalance_required": False}
    again = join(client, member_id=first["member_id"])
    assert (again["member_id"], again["generation"]) == (first["member_id"], 2)
    both = [*_numbers(again), *_numbers(second)]
    assert sorted(both) == [0, 1, 2, 3]
    assert len(_numbers(again)) == 2


def test_who_leaves_leaves_its_partitions_to_the_others(client: httpx.Client) -> None:
    first, second = join(client), join(client)

    left = client.post(f"{GROUP}/leave", json={"member_id": first["member_id"]})

    assert left.json() == {"status": "left", "left": True}
    assignment = client.get(f"{GROUP}/assignment", params={"member_id": second["member_id"]}).json()
    assert assignment == {
        "member_id": second["member_id"],
        "generation": 3,
        "partitions": places(0, 1, 2, 3),
    }
    gone = beat(client, first)
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown_member")


def test_a_group_is_listed_and_described(client: httpx.Client) -> None:
    member = join(client, "worker")

    listed = client.get("/groups").json()
    described = client.get(GROUP).json()

    assert listed["groups"] == ["readers"]
    assert listed["details"] == [
        {
            "id": "readers",
            "state": "stable",
            "members": 1,
            "generation": 1,
            "topics": ["orders"],
            "kind": "http",
        }
    ]
    assert described["id"] == described["group_id"] == "readers"
    assert (described["state"], described["generation"], described["mode"]) == ("stable", 1, "eager")
    assert (described["protocol"], described["topics"]) == ("sticky", ["orders"])
    (shown,) = described["members"]
    assert shown["id"] == shown["member_id"] == member["member_id"]
    assert shown["client_id"] == "worker"
    assert shown["client_host"] == "127.0.0.1"
    assert shown["assigned_partitions"] == shown["partitions"] == member["assigned_partitions"]
    assert shown["joined_at"] <= shown["last_heartbeat"]
    assert [lag["offset"] for lag in described["lag"]["partitions"]] == [-1, -1, -1, -1]


def test_a_member_commits_only_for_what_is_its_own(client: httpx.Client) -> None:
    first, second = join(client), join(client)
    mine, others = _numbers(join(client, member_id=first["member_id"])), _numbers(second)

    kept = client.post(
        f"{GROUP}/offsets",
        json={"member_id": first["member_id"], "offsets": {"orders": {str(n): 0 for n in mine}}},
    )
    refused = [
        client.post(f"{GROUP}/offsets", json={"member_id": first["member_id"], "offsets": offsets})
        for offsets in (
            {"orders": {str(mine[0]): 5, str(others[0]): 5}},
            [{"topic": "orders", "partition": others[0], "offset": 5}],
        )
    ]
    stranger = client.post(f"{GROUP}/offsets", json={"member_id": "nobody", "offsets": {"orders": {"0": 1}}})

    assert kept.status_code == 200
    for reply in (*refused, stranger):
        assert (reply.status_code, reply.json()["code"]) == (403, "not_partition_owner")
    assert client.get(f"{GROUP}/offsets").json()["offsets"] == {"orders": {str(n): 0 for n in mine}}


def test_a_group_with_members_is_reset_only_by_force(client: httpx.Client) -> None:
    join(client)

    refused = client.post(f"{GROUP}/offsets/reset", json={"to": "latest", "topics": ["orders"]})
    forced = client.post(f"{GROUP}/offsets/reset", json={"to": "latest", "topics": ["orders"], "force": True})

    assert (refused.status_code, refused.json()["code"]) == (409, "group_not_empty")
    assert forced.json()["reset_count"] == 4


def test_a_group_is_forgotten_with_its_members(client: httpx.Client) -> None:
    first, _ = join(client), join(client)

    assert client.delete(GROUP).status_code == 200

    assert client.get("/groups").json()["groups"] == []
    gone = beat(client, first)
    assert (gone.status_code, gone.json()["code"]) == (404, "group_not_found")


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"topics": []}, 400, "invalid"),
        ({"client_id": ""}, 400, "invalid"),
        ({"topics": ["never-was"]}, 404, "topic_not_found"),
        ({"mode": "sideways"}, 400, "invalid"),
        ({"assignor": "sideways"}, 400, "unsupported_assignor"),
        ({"session_timeout": "1ms"}, 400, "invalid_session_timeout"),
        ({"session_timeout": "soon"}, 400, "invalid"),
        ({"session_timeout": 10**12}, 400, "invalid_session_timeout"),
    ],
)
def test_a_join_that_makes_no_sense_leaves_no_group_behind(
    client: httpx.Client, fields: Json, status: int, code: str
) -> None:
    refused = client.post(f"{GROUP}/join", json={"client_id": "c", "topics": ["orders"], **fields})

    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert client.get("/groups").json()["groups"] == []


def test_members_of_one_group_share_in_one_way(client: httpx.Client) -> None:
    join(client, mode="shared", key_order=True)

    other = client.post(f"{GROUP}/join", json={"client_id": "c", "topics": ["orders"]})
    second = join(client, mode="shared", key_order=True)

    assert (other.status_code, other.json()["code"]) == (409, "inconsistent_protocol")
    assert _numbers(second) == [0, 1, 2, 3]
    described = client.get(GROUP).json()
    assert (described["mode"], described["key_order"]) == ("shared", True)


def test_a_partition_moves_when_its_owner_has_let_go(client: httpx.Client) -> None:
    first = join(client, path="join/cooperative")
    assert (first["protocol"], first["rebalance_required"]) == ("cooperative", True)
    assert reconcile(client, first)["partitions_assigned"] == places(0, 1, 2, 3)
    second = join(client, path="join/cooperative")
    assert second["partitions"] == []

    told = reconcile(client, first)
    to_revoke = told["partitions_to_revoke"]
    assert (told["state"], told["rebalance_required"], told["protocol"]) == (
        "pending_revoke",
        True,
        "cooperative",
    )
    assert len(to_revoke) == 2
    assert str(told["revocation_deadline"]).endswith("Z")
    assert reconcile(client, second)["state"] == "pending_assign"
    assert client.get(f"{GROUP}/cooperative").json()["rebalance_state"] == "pending_revoke"
    let_go = client.post(
        f"{GROUP}/revoke", json={"member_id": first["member_id"], "revoked_partitions": to_revoke}
    ).json()
    assert (let_go["status"], let_go["pending_count"]) == ("acknowledged", 0)
    assert reconcile(client, second)["partitions_assigned"] == to_revoke
    assert reconcile(client, first)["state"] in ("complete", "none")

    settled = client.get(f"{GROUP}/cooperative").json()
    assert (settled["state"], settled["rebalance_state"]) == ("stable", "none")
    assert settled["assignment_strategy"] == "sticky"
    assert settled["member_assignments"][second["member_id"]] == to_revoke
    again = client.post(
        f"{GROUP}/revoke", json={"member_id": first["member_id"], "revoked_partitions": to_revoke}
    )
    assert (again.status_code, again.json()["code"]) == (409, "not_rebalancing")
    left = client.post(f"{GROUP}/leave/cooperative", json={"member_id": first["member_id"]})
    assert left.json()["status"] == "left"


def test_rebalances_are_counted_by_their_reasons(client: httpx.Client) -> None:
    before = client.get("/rebalance/stats").json()["total_rebalances"]
    first, _ = join(client), join(client)
    client.post(f"{GROUP}/leave", json={"member_id": first["member_id"]})

    stats = client.get(f"{GROUP}/rebalance/stats").json()

    assert (stats["total_rebalances"], stats["successful_rebalances"]) == (3, 3)
    assert stats["rebalances_by_reason"] == {"member_joined": 2, "member_left": 1}
    assert stats["last_rebalance_at"].endswith("Z")
    assert client.get("/rebalance/stats").json()["total_rebalances"] == before + 3
    assert client.get("/groups/nobody/rebalance/stats").status_code == 404


def test_members_and_their_generation_survive_a_restart(tmp_path: Path) -> None:
    with RunningDoor(tmp_path) as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 4})
        first, second = join(running.client), join(running.client)
    with RunningDoor(tmp_path) as running:
        assert beat(running.client, first, generation=2).json()["generation"] == 2
        assert _numbers(join(running.client, member_id=second["member_id"])) == _numbers(second)


def _numbers(member: Json) -> list[int]:
    numbers: list[int] = member["partitions"]
    return numbers
