"""Orders to move partitions, where there is one node and nothing can be moved."""

import httpx
import pytest

MOVE = {"topic": "orders", "partition": 0, "new_replicas": ["node-2"]}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/admin/reassignment", {"partitions": [MOVE]}),
        ("POST", "/admin/decommission/node-1", {}),
        ("DELETE", "/admin/decommission/node-1", None),
        ("DELETE", "/admin/reassignment/reassign-1", None),
        ("POST", "/admin/elections", {"unclean": True}),
    ],
)
def test_one_node_takes_no_orders(client: httpx.Client, method: str, path: str, body: object) -> None:
    reply = client.request(method, path, json=body)

    assert (reply.status_code, reply.json()["code"]) == (400, "not_supported")


def test_one_node_has_moved_nothing(client: httpx.Client) -> None:
    assert client.get("/admin/reassignment").json() == {"count": 0, "reassignments": []}
    unknown = client.get("/admin/reassignment/reassign-1")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "reassignment_not_found")


@pytest.mark.parametrize(
    "body", [{"partitions": [{"topic": "orders"}]}, {"throttle_bytes_per_sec": -2}, {"topics": "all"}, []]
)
def test_an_order_that_cannot_be_read_is_refused(client: httpx.Client, body: object) -> None:
    assert client.post("/admin/reassignment", json=body).status_code == 400
