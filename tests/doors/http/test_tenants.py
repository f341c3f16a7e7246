"""Tenants over HTTP: the tolerant forms of every request, quotas that hold, and what is refused."""

from typing import Any

import httpx
import pytest

from goqueue.broker.tenants.verbs import note_usage
from tests.doors.http.running_door import RunningDoor

DEFAULTS = {
    "publish_rate_limit": 1000,
    "consume_rate_limit": 5000,
    "publish_bytes_rate_limit": 10485760,
    "consume_bytes_rate_limit": 52428800,
    "max_storage_bytes": 10737418240,
    "max_topics": 100,
    "max_partitions_per_topic": 16,
    "max_total_partitions": 500,
    "max_message_size_bytes": 1048576,
    "max_retention_hours": 168,
    "max_delay_hours": 168,
    "max_connections": 100,
    "max_consumer_groups": 50,
    "max_consumers_per_group": 20,
}


def create(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    reply = client.post("/admin/tenants", json={"id": "acme", "name": "Acme"} | fields)
    assert reply.status_code == 201, reply.text
    body: dict[str, Any] = reply.json()
    return body


def publish(client: httpx.Client, topic: str, *values: str) -> httpx.Response:
    return client.post(f"/topics/{topic}/messages", json={"messages": [{"value": value} for value in values]})


def create_topic(client: httpx.Client, name: str, **fields: Any) -> httpx.Response:
    return client.post("/topics", json={"name": name, "num_partitions": 1} | fields)


def test_a_tenant_is_created_with_the_defaults_and_shown(client: httpx.Client) -> None:
    tenant = create(client, metadata={"plan": "gold"}, description="the first")

    assert (tenant["id"], tenant["name"], tenant["status"]) == ("acme", "Acme", "active")
    assert tenant["quotas"] == DEFAULTS
    assert tenant["metadata"] == {"plan": "gold"} and tenant["description"] == "the first"
    assert "suspended_at" not in tenant and "suspend_reason" not in tenant
    assert tenant["created_at"] == tenant["updated_at"]
    assert client.get("/admin/tenants/acme").json() == tenant
    assert client.get("/v1/admin/tenants/acme/quotas").json() == DEFAULTS
    listed = client.get("/admin/tenants").json()
    assert listed["count"] == 2
    assert [one["id"] for one in listed["tenants"]] == ["__system", "acme"]


def test_clients_that_send_no_id_and_other_names_are_understood(client: httpx.Client) -> None:
    quotas = {"max_messages_per_second": 7, "max_bytes_per_second": 70, "max_topics": 3}
    body = {"name": "Blue Sky", "display_name": "Blue Sky Ltd.", "quotas": quotas}

    tenant = client.post("/admin/tenants", json=body).json()

    assert (tenant["id"], tenant["name"], tenant["display_name"]) == ("blue-sky", "Blue Sky", "Blue Sky Ltd.")
    changed = {"publish_rate_limit": 7, "publish_bytes_rate_limit": 70, "max_topics": 3}
    assert tenant["quotas"] == DEFAULTS | changed
    shown = client.post("/admin/tenants", json={"display_name": "Only Shown"}).json()
    assert (shown["id"], shown["name"]) == ("only-shown", "Only Shown")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"id": "acme"},
        {"id": "Acme", "name": "x"},
        {"id": "ab", "name": "x"},
        {"name": "x", "quotas": {"max_topics": -1}},
        {"name": "x", "quotas": {"max_topics": "3"}},
        {"name": "x", "metadata": {"a": 1}},
    ],
)
def test_a_tenant_that_cannot_be_is_refused(client: httpx.Client, body: dict[str, object]) -> None:
    assert client.post("/admin/tenants", json=body).status_code == 400
    assert client.get("/admin/tenants").json()["count"] == 1


def test_omitted_quotas_go_back_to_the_defaults_and_old_names_count(client: httpx.Client) -> None:
    create(client, quotas={"max_topics": 5})
    aliases = {
        "max_partitions_total": 9,
        "max_retention_ms": 1_800_000,
        "max_delay_ms": 7_200_000,
        "consumers_per_group": 2,
        "publish_rate_limit": 0,
    }

    updated = client.put("/admin/tenants/acme/quotas", json=aliases).json()

    assert (updated["status"], updated["tenant_id"]) == ("updated", "acme")
    changed = {
        "max_total_partitions": 9,
        "max_retention_hours": 0.5,
        "max_delay_hours": 2,
        "max_consumers_per_group": 2,
        "publish_rate_limit": 0,
    }
    assert updated["quotas"] == DEFAULTS | changed
    assert (
        client.put("/admin/tenants/acme/quotas", json=updated["quotas"]).json()["quotas"] == updated["quotas"]
    )
    assert client.put("/admin/tenants/acme/quotas").json()["quotas"] == DEFAULTS


def test_names_change_statuses_filter_and_errors_have_their_status(client: httpx.Client) -> None:
    create(client, metadata={"a": "1"})

    changed = client.patch("/admin/tenants/acme", json={"name": "Acme 2", "metadata": {"b": "2"}}).json()
    assert (changed["name"], changed["metadata"]) == ("Acme 2", {"b": "2"})
    assert client.post("/admin/tenants", json={"id": "acme", "name": "again"}).status_code == 409
    assert client.post("/admin/tenants/acme/suspend", json={}).status_code == 400
    suspended = client.post("/admin/tenants/acme/suspend", json={"reason": "bill"}).json()
    assert (suspended["status"], suspended["suspend_reason"]) == ("suspended", "bill")
    assert suspended["suspended_at"] == suspended["updated_at"]
    by_status = {
        status: client.get("/admin/tenants", params={"status": status}).json()["count"]
        for status in ("active", "suspended", "disabled")
    }
    assert by_status == {"active": 1, "suspended": 1, "disabled": 0}
    assert client.get("/admin/tenants", params={"status": "gone"}).status_code == 400
    assert client.post("/admin/tenants/acme/disable").json()["status"] == "disabled"
    assert client.post("/admin/tenants/acme/activate").json()["status"] == "active"
    assert client.delete("/admin/tenants/acme").json() == {"status": "deleted", "tenant_id": "acme"}
    for method, path in [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/usage"),
        ("PUT", "/quotas"),
        ("GET", "/groups"),
    ]:
        reply = client.request(method, f"/admin/tenants/acme{path}")
        assert (reply.status_code, reply.json()["code"]) == (404, "tenant_not_found"), path
    for method, path, body in [
        ("PATCH", "", {"name": "x"}),
        ("DELETE", "?force=true", None),
        ("PUT", "/quotas", {}),
        ("POST", "/suspend", {"reason": "x"}),
        ("POST", "/usage/reset", None),
    ]:
        assert client.request(method, f"/admin/tenants/__system{path}", json=body).status_code == 403, path


def test_a_publish_that_is_too_fast_is_told_how_long_to_wait(client: httpx.Client) -> None:
    create(client, quotas={"publish_rate_limit": 2})
    create_topic(client, "acme.orders")
    assert publish(client, "acme.orders", "a", "b").status_code == 200

    refused = publish(client, "acme.orders", *"abcdef")

    assert refused.status_code == 429
    body = refused.json()
    assert body["code"] == "rate_exceeded" and "try again in" in body["error"]
    assert 0 < body["retry_after_ms"] <= 1_000
    assert refused.headers["retry-after"] == "1"
    assert client.get("/admin/tenants/acme/usage").json()["total_messages_published"] == 2


def test_a_reader_that_is_too_fast_is_told_how_long_to_wait(client: httpx.Client) -> None:
    create(client, quotas={"consume_rate_limit": 1, "consume_bytes_rate_limit": 10})
    create_topic(client, "acme.orders")
    publish(client, "acme.orders", "x" * 50)
    path = "/topics/acme.orders/partitions/0/messages"

    assert len(client.get(path).json()["messages"]) == 1
    refused = client.get(path)

    assert refused.status_code == 429
    assert 3_000 < refused.json()["retry_after_ms"] <= 4_000
    assert refused.headers["retry-after"] == "4"


def test_quotas_on_what_is_held_refuse_with_their_status(client: httpx.Client) -> None:
    create(
        client,
        quotas={
            "max_topics": 1,
            "max_message_size_bytes": 10,
            "max_storage_bytes": 50,
            "max_delay_hours": 1,
            "max_retention_hours": 2,
        },
    )
    too_long = create_topic(client, "acme.orders", retention_hours=3)
    assert (too_long.status_code, too_long.json()["code"]) == (403, "quota_exceeded")
    assert create_topic(client, "acme.orders").status_code == 201
    more = create_topic(client, "acme.more")
    assert (more.status_code, more.json()["code"]) == (403, "quota_exceeded")
    messages = [{"value": "x" * 11}, {"value": "x", "delay": "2h"}, {"value": "x"}]
    results = client.post("/topics/acme.orders/messages", json={"messages": messages}).json()["results"]
    assert ["error" in result for result in results] == [True, True, False]
    full = publish(client, "acme.orders", "x")
    assert (full.status_code, full.json()["code"]) == (507, "storage_quota_exceeded")
    refused = {"retention": 1, "topics": 1, "message_size": 1, "delay": 1, "storage": 1}
    assert client.get("/admin/tenants/acme/usage").json()["quota_violations"] == refused
    assert client.post("/admin/tenants/acme/usage/reset").json()["quota_violations"] == {}


def test_usage_tells_what_was_moved_and_what_is_held_and_can_be_reset(client: httpx.Client) -> None:
    create(client, quotas={"max_topics": 4, "max_total_partitions": 8, "max_consumer_groups": 2})
    create_topic(client, "acme.orders", num_partitions=2)
    publish(client, "acme.orders", *"abcd")
    client.post("/groups/acme.workers/join", json={"client_id": "ann", "topics": ["acme.orders"]})
    moved = sum(
        len(client.get(f"/topics/acme.orders/partitions/{partition}/messages").json()["messages"])
        for partition in range(2)
    )

    usage = client.get("/admin/tenants/acme/usage").json()
    assert usage["total_messages_published"] == usage["total_messages_consumed"] == moved == 4
    assert usage["total_bytes_published"] > 4 and usage["total_bytes_consumed"] == 4
    assert (usage["topic_count"], usage["partition_count"], usage["consumer_group_count"]) == (1, 2, 1)
    shown = client.get("/topics/acme.orders").json()
    assert usage["storage_bytes"] == shown["total_size_bytes"] > 0
    stats = client.get("/admin/tenants/acme/stats").json()
    percents = (stats["topic_usage_percent"], stats["partition_usage_percent"])
    assert percents == (25.0, 25.0) and stats["consumer_group_usage_percent"] == 50.0
    assert client.get("/admin/tenants/acme/topics").json() == {
        "tenant_id": "acme",
        "topics": ["acme.orders"],
        "count": 1,
    }
    assert client.get("/admin/tenants/acme/groups").json()["groups"] == ["acme.workers"]
    reset = client.post("/admin/tenants/acme/usage/reset").json()
    assert (reset["total_messages_published"], reset["topic_count"]) == (0, 1)


def test_a_suspended_tenant_is_refused_and_keeps_its_data(running: RunningDoor, client: httpx.Client) -> None:
    create(client)
    create_topic(client, "acme.orders")
    publish(client, "acme.orders", "a")
    client.post("/admin/tenants/acme/suspend", json={"reason": "bill"})
    path = "/topics/acme.orders/partitions/0/messages"

    for reply in (
        publish(client, "acme.orders", "b"),
        client.get(path),
        client.get("/topics/acme.orders/partitions/0/frames"),
        client.delete("/topics/acme.orders"),
    ):
        assert (reply.status_code, reply.json()["code"]) == (403, "topic_suspended"), reply.url
    joined = client.post("/groups/acme.workers/join", json={"client_id": "ann", "topics": ["acme.orders"]})
    assert (joined.status_code, joined.json()["code"]) == (403, "group_suspended")

    client.post("/admin/tenants/acme/activate")
    assert len(client.get(path).json()["messages"]) == 1


def test_a_tenant_with_topics_goes_only_by_force_and_leaves_them(client: httpx.Client) -> None:
    create(client)
    create_topic(client, "acme.orders")

    refused = client.delete("/admin/tenants/acme")
    assert (refused.status_code, refused.json()["code"]) == (409, "tenant_not_empty")
    assert client.delete("/admin/tenants/acme", params={"force": "true"}).status_code == 200
    assert publish(client, "acme.orders", "a").status_code == 200


def test_usage_is_kept_by_hour_whatever_is_reset(running: RunningDoor) -> None:
    client = running.client
    create(client)
    create_topic(client, "acme.t")
    publish(client, "acme.t", "one", "two")
    client.get("/topics/acme.t/partitions/0/messages")
    running.run(note_usage(running.broker))
    publish(client, "acme.t", "three")
    assert client.post("/admin/tenants/acme/usage/reset").status_code == 200
    publish(client, "acme.t", "four")
    running.run(note_usage(running.broker))

    told = client.get("/admin/tenants/acme/usage/hours", params={"hours": 2}).json()
    assert told["tenant_id"] == "acme"
    assert sum(hour["messages_published"] for hour in told["hours"]) == 4
    assert max(hour["storage_bytes"] for hour in told["hours"]) > 0
    assert client.get("/admin/tenants/acme/usage").json()["total_messages_published"] == 1
    assert client.get("/admin/tenants/nobody/usage/hours").status_code == 404
    assert client.get("/admin/tenants/acme/usage/hours", params={"hours": 0}).status_code == 400
