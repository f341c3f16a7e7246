"""More partitions for a topic."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from goqueue.broker.topics.verbs import add_partitions
from goqueue.model.topics import AddPartitions
from tests.doors.http.running_door import RunningDoor


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def orders(client: httpx.Client) -> Iterator[str]:
    """A topic with three partitions and nothing in it, gone afterwards."""
    assert client.post("/topics", json={"name": "orders", "num_partitions": 3}).status_code == 201
    yield "orders"
    assert client.delete("/topics/orders").status_code == 200


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_a_topic_gets_more_partitions(client: httpx.Client, orders: str, prefix: str) -> None:
    client.post("/topics/orders/messages", json={"messages": [{"value": "x", "partition": 2}]})

    grown = client.post(f"{prefix}/admin/topics/orders/partitions", json={"count": 5})

    assert (grown.status_code, grown.json()) == (
        200,
        {
            "success": True,
            "topic_name": "orders",
            "old_partition_count": 3,
            "new_partition_count": 5,
            "partitions_added": [3, 4],
            "old_count": 3,
            "new_count": 5,
        },
    )
    assert client.get("/topics/orders").json()["partitions"] == 5
    message = {"messages": [{"value": "y", "partition": 4}]}
    assert client.post("/topics/orders/messages", json=message).json()["results"][0]["offset"] == 0
    assert len(client.get("/topics/orders/partitions/2/messages").json()["messages"]) == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"count": 3}, "invalid_partition_count"),
        ({"count": 2}, "invalid_partition_count"),
        ({"count": 0}, "invalid"),
        ({"count": 10_001}, "invalid_partition_count"),
        ({"count": "4"}, "invalid"),
        ({}, "invalid"),
        ({"count": 4, "replica_assignments": {"3": ["node-2"]}}, "invalid"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    client: httpx.Client, orders: str, body: dict[str, object], code: str
) -> None:
    refused = client.post("/admin/topics/orders/partitions", json=body)

    assert (refused.status_code, refused.json()["code"]) == (400, code)
    assert client.get("/topics/orders").json()["partitions"] == 3


def test_this_node_may_be_named_for_the_new_ones(client: httpx.Client, orders: str) -> None:
    body = {"count": 4, "replica_assignments": {"3": ["node-1"]}}

    assert client.post("/admin/topics/orders/partitions", json=body).status_code == 200


@pytest.mark.parametrize(("topic", "status"), [("missing", 404), ("__metadata", 403)])
def test_only_topics_of_clients_can_grow(client: httpx.Client, topic: str, status: int) -> None:
    assert client.post(f"/admin/topics/{topic}/partitions", json={"count": 4}).status_code == status


def test_the_status_tells_while_a_topic_grows(
    running: RunningDoor, client: httpx.Client, orders: str
) -> None:
    async def seen_while_growing() -> bool:
        growing = asyncio.ensure_future(add_partitions(running.broker, AddPartitions(name=orders, total=4)))
        while not growing.done() and not running.broker.topic(orders).is_growing:
            await asyncio.sleep(0)
        seen = running.broker.topic(orders).is_growing
        await growing
        return seen

    assert running.run(seen_while_growing())
    assert client.get("/admin/topics/orders/scaling-status").json() == {
        "topic": "orders",
        "scaling_in_progress": False,
    }
    assert client.get("/admin/topics/missing/scaling-status").status_code == 404
