"""Backups over HTTP: every field is filled, and a restore tells what it did."""

import time

import httpx
import pytest

from tests.doors.http.running_door import RunningDoor


@pytest.fixture
def furnished(client: httpx.Client, orders: str) -> httpx.Client:
    """A broker with a topic of three partitions, five messages, a group and a schema."""
    messages = [{"value": str(number), "partition": 0} for number in range(5)]
    client.post(f"/topics/{orders}/messages", json={"messages": messages}).raise_for_status()
    client.post("/groups/workers/offsets", json={"offsets": {orders: {"0": 3}}}).raise_for_status()
    schema = {"schema": '{"type": "object"}', "schemaType": "JSON"}
    client.post("/schemas/subjects/orders-value/versions", json=schema).raise_for_status()
    return client


def test_a_backup_is_made_listed_described_and_deleted(furnished: httpx.Client) -> None:
    created = furnished.post("/admin/backup").json()
    backup_id = created["backup_id"]

    stats = created["stats"]
    assert (stats["topic_count"], stats["partition_count"], stats["total_messages"]) == (1, 3, 5)
    assert (stats["consumer_group_count"], stats["schema_count"]) == (1, 1)
    assert stats["total_bytes"] > 0
    assert stats["duration_ns"] > 0
    assert stats["duration_human"].endswith("s")
    assert created["broker_id"] == "node-1"
    assert len(created["cluster_id"]) == 22
    [listed] = furnished.get("/admin/backup").json()["backups"]
    assert listed == {
        "backup_id": backup_id,
        "timestamp": created["timestamp"],
        "broker_id": "node-1",
        "topics": 1,
        "consumer_groups": 1,
        "schemas": 1,
    }
    described = furnished.get(f"/admin/backup/{backup_id}").json()
    assert described["topics"] == [{"name": "orders", "num_partitions": 3}]
    assert described["consumer_groups"] == [{"group_id": "workers", "state": "Empty"}]
    assert described["schemas"] == [{"subject": "orders-value", "version": 1}]
    assert described["stats"] == stats

    deleted = furnished.delete(f"/admin/backup/{backup_id}").json()

    assert (deleted["success"], deleted["backup_id"]) == (True, backup_id)
    assert furnished.get(f"/admin/backup/{backup_id}").status_code == 404
    assert furnished.delete(f"/admin/backup/{backup_id}").json()["code"] == "backup_not_found"


@pytest.mark.parametrize("body", [None, {}, {"include_topics": True}])
def test_what_is_not_said_is_kept(furnished: httpx.Client, body: dict[str, bool] | None) -> None:
    stats = furnished.post("/admin/backup", json=body).json()["stats"]

    assert (stats["topic_count"], stats["consumer_group_count"], stats["schema_count"]) == (1, 1, 1)


def test_a_part_can_be_left_out_and_a_body_that_is_none_is_refused(furnished: httpx.Client) -> None:
    stats = furnished.post("/admin/backup", json={"include_schemas": False}).json()["stats"]

    assert (stats["topic_count"], stats["schema_count"]) == (1, 0)
    assert furnished.post("/admin/backup", content=b"all of it").status_code == 400
    assert furnished.post("/admin/backup", json={"include_topics": 1}).status_code == 400


def test_a_backup_is_taken_to_another_broker_and_restored_there(
    furnished: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    backup_id = furnished.post("/admin/backup").json()["backup_id"]
    document = furnished.get(f"/admin/backup/{backup_id}/metadata").content
    with RunningDoor(tmp_path_factory.mktemp("other")) as other:
        brought = other.client.put(f"/admin/backup/{backup_id}", content=document)
        assert brought.status_code == 201
        assert brought.json()["stats"]["topic_count"] == 1

        restored = other.client.post(f"/admin/backup/{backup_id}/restore", json={"data_follows": True})

        assert restored.json() == {
            "success": True,
            "message": f"backup {backup_id} is restored",
            "backup_id": backup_id,
            "topics_restored": 1,
            "groups_restored": 1,
            "schemas_restored": 1,
            "tenants_restored": 0,
            "skipped": [],
        }
        assert other.client.get("/groups/workers/offsets").json()["offsets"] == {"orders": {"0": 3}}
        version = other.client.get("/schemas/subjects/orders-value/versions/1").json()
        assert version["id"] == 1
        again = other.client.post(f"/admin/backup/{backup_id}/restore", json={"data_follows": True}).json()
        assert (again["topics_restored"], again["groups_restored"], again["schemas_restored"]) == (0, 0, 0)
        assert len(again["skipped"]) == 3


def test_what_is_in_the_way_is_a_conflict_that_names_it(furnished: httpx.Client) -> None:
    backup_id = furnished.post("/admin/backup").json()["backup_id"]
    furnished.post("/groups/workers/offsets", json={"offsets": {"orders": {"0": 5}}}).raise_for_status()

    refused = furnished.post(f"/admin/backup/{backup_id}/restore")

    assert refused.status_code == 409
    assert refused.json()["code"] == "restore_conflict"
    assert "group workers stands at 5 in orders/0 here, not at 3" in refused.json()["error"]
    skipped = furnished.post(f"/admin/backup/{backup_id}/restore", json={"skip_existing": True}).json()
    assert "group workers stands at 5 in orders/0 here, not at 3" in skipped["skipped"]


def test_a_name_that_is_no_id_reaches_no_other_file(client: httpx.Client) -> None:
    for name in ("..%2F..%2Fgoqueue.pid", "logs", "2026"):
        assert client.get(f"/admin/backup/{name}").status_code == 404
        assert client.get(f"/admin/backup/{name}/metadata").status_code == 404
        assert client.put(f"/admin/backup/{name}", content=b"{}").status_code == 400


def test_a_whole_backup_is_begun_watched_and_deleted(furnished: httpx.Client) -> None:
    begun = furnished.post("/admin/backup/whole")
    assert begun.status_code == 202
    backup_id = begun.json()["backup_id"]

    deadline_s = time.monotonic() + 20
    while (listed := furnished.get("/admin/backup/whole").json()["backups"])[0]["state"] == "running":
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    [backup] = listed
    assert backup["backup_id"] == backup_id
    assert backup["state"] == "done"
    assert 0 < backup["new_bytes"] <= backup["size_bytes"]

    assert furnished.delete(f"/admin/backup/whole/{backup_id}").json()["success"]
    assert furnished.delete(f"/admin/backup/whole/{backup_id}").status_code == 404
    assert furnished.get("/admin/backup/whole").json() == {"backups": []}
