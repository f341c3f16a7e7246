"""Topics through the HTTP door."""

import httpx
import pytest


def test_a_topic_is_created_with_the_partitions_asked_for(client: httpx.Client) -> None:
    created = client.post("/topics", json={"name": "orders", "num_partitions": 6})

    assert created.status_code == 201
    assert created.json() == {"name": "orders", "partitions": 6, "num_partitions": 6, "created": True}


@pytest.mark.parametrize(
    ("body", "partitions"),
    [
        ({}, 3),
        ({"num_partitions": 0}, 3),
        ({"num_partitions": -1}, 3),
        ({"num_partitions": None}, 3),
        ({"partitions": 4}, 4),
        ({"num_partitions": 2, "partitions": 4, "unknown": "ignored"}, 2),
    ],
)
def test_partitions_have_an_alias_and_a_default(
    client: httpx.Client, body: dict[str, object], partitions: int
) -> None:
    created = client.post("/topics", json={"name": "orders", **body})

    assert created.json()["partitions"] == partitions


@pytest.mark.parametrize(
    ("body", "retention_ms"),
    [
        ({"retention_hours": 2}, "7200000"),
        ({"retention_hours": 0}, "604800000"),
        ({"settings": {"retention.ms": 1000}}, "1000"),
        ({"settings": {"retention.ms": "1000"}}, "1000"),
        ({"settings": {"retention.ms": None}}, "604800000"),
        ({"retention_hours": 2, "settings": {"retention.ms": "1000"}}, "1000"),
    ],
)
def test_retention_is_told_in_hours_or_as_a_setting(
    client: httpx.Client, body: dict[str, object], retention_ms: str
) -> None:
    client.post("/topics", json={"name": "orders", **body})

    assert client.get("/topics/orders").json()["settings"]["retention.ms"] == retention_ms


def test_the_content_type_of_a_request_is_not_looked_at(client: httpx.Client) -> None:
    created = client.post("/topics", content=b'{"name": "orders"}', headers={"content-type": "text/plain"})

    assert created.status_code == 201


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid"),
        (b"{", 400, "invalid"),
        (b"[]", 400, "invalid"),
        (b"\xff", 400, "invalid"),
        (b"[" * 100_000, 400, "invalid"),
        (b"{}", 400, "invalid"),
        (b'{"name": null}', 400, "invalid"),
        (b'{"name": ""}', 400, "invalid_topic_name"),
        (b'{"name": "../etc"}', 400, "invalid_topic_name"),
        (b'{"name": "\\ud800"}', 400, "invalid"),
        (b'{"name": "__metadata"}', 403, "internal_topic"),
        (b'{"name": "orders", "num_partitions": "3"}', 400, "invalid"),
        (b'{"name": "orders", "num_partitions": 2000000000}', 400, "invalid_partition_count"),
        (b'{"name": "orders", "num_partitions": 99999999999999999999}', 400, "invalid"),
        (b'{"name": "orders", "settings": {"colour": "red"}}', 400, "invalid_setting"),
        (b'{"name": "orders", "settings": {"retention.ms": "soon"}}', 400, "invalid_setting"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_with_its_reason(
    client: httpx.Client, body: bytes, status: int, code: str
) -> None:
    refused = client.post("/topics", content=body)

    assert (refused.status_code, refused.json()["status"], refused.json()["code"]) == (status, status, code)
    assert refused.json()["error"]
    assert client.get("/topics").json() == {"topics": []}


def test_a_second_topic_of_the_same_name_is_a_conflict(client: httpx.Client, orders: str) -> None:
    again = client.post("/topics", json={"name": orders})

    assert again.status_code == 409
    assert again.json() == {"error": "topic orders already exists", "status": 409, "code": "topic_exists"}


@pytest.mark.parametrize("path", ["/topics", "/topics/", "/v1/topics", "/v1/topics/"])
def test_topics_are_listed_at_the_root_and_under_v1(client: httpx.Client, orders: str, path: str) -> None:
    assert client.get(path).json() == {"topics": [orders]}


def test_a_new_topic_is_described_as_empty(client: httpx.Client, orders: str) -> None:
    described = client.get(f"/topics/{orders}").json()

    assert described["name"] == described["topic"] == orders
    assert described["partitions"] == described["num_partitions"] == 3
    assert described["total_messages"] == 0
    assert described["partition_offsets"] == {
        "0": {"earliest": 0, "latest": -1},
        "1": {"earliest": 0, "latest": -1},
        "2": {"earliest": 0, "latest": -1},
    }


def test_a_description_counts_what_was_published(client: httpx.Client, orders: str) -> None:
    client.post(f"/topics/{orders}/messages", json={"messages": [{"value": "a", "partition": 1}] * 5})

    described = client.get(f"/topics/{orders}").json()

    assert described["total_messages"] == 5
    assert described["partition_offsets"]["1"] == {"earliest": 0, "latest": 4}
    assert described["total_size_bytes"] > 0
    assert described["total_size_kb"] == described["total_size_bytes"] // 1024


def test_partitions_name_this_node_as_leader_and_replica(client: httpx.Client, orders: str) -> None:
    partitions = client.get(f"/topics/{orders}/partitions").json()

    assert partitions["topic"] == orders
    assert partitions["partitions"][2] == {
        "partition": 2,
        "leader": "node-1",
        "replicas": ["node-1"],
        "isr": ["node-1"],
        "version": 0,
    }


def test_a_deleted_topic_is_gone(client: httpx.Client, orders: str) -> None:
    deleted = client.delete(f"/topics/{orders}")

    assert (deleted.status_code, deleted.json()) == (200, {"name": orders, "deleted": True})
    assert client.get(f"/topics/{orders}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/topics/nothing"),
        ("DELETE", "/topics/nothing"),
        ("GET", "/topics/nothing/partitions"),
        ("GET", "/topics/nothing/partitions/0/messages"),
        ("GET", "/v1/topics/nothing"),
    ],
)
def test_an_unknown_topic_is_not_found(client: httpx.Client, method: str, path: str) -> None:
    missing = client.request(method, path)

    assert missing.status_code == 404
    assert missing.json() == {
        "error": "topic nothing does not exist",
        "status": 404,
        "code": "topic_not_found",
    }


def test_settings_are_changed_and_those_not_named_stay(client: httpx.Client, orders: str) -> None:
    before = client.get(f"/topics/{orders}").json()["settings"]

    changed = client.patch(f"/topics/{orders}", json={"settings": {"retention.ms": "60000", "flush.ms": 5}})
    after = client.get(f"/topics/{orders}").json()["settings"]
    back = client.patch(f"/topics/{orders}", json={"settings": {"retention.ms": None, "flush.ms": None}})

    assert changed.status_code == 200
    assert changed.json() == {"name": orders, "settings": after}
    assert after == before | {"retention.ms": "60000", "flush.ms": "5"}
    assert back.json()["settings"] == before


@pytest.mark.parametrize(
    ("topic", "body", "status", "code"),
    [
        ("orders", {"settings": {"retention.mz": "1"}}, 400, "invalid_setting"),
        ("orders", {"settings": {"retention.ms": "soon"}}, 400, "invalid_setting"),
        ("orders", {"settings": {"compression.type": "brotli"}}, 400, "invalid_setting"),
        ("orders", {}, 400, "invalid"),
        ("nowhere", {"settings": {"retention.ms": "1"}}, 404, "topic_not_found"),
    ],
)
def test_a_change_that_cannot_be_is_refused(
    client: httpx.Client, orders: str, topic: str, body: dict[str, object], status: int, code: str
) -> None:
    refused = client.patch(f"/topics/{topic}", json=body)

    assert (refused.status_code, refused.json()["code"]) == (status, code), orders
