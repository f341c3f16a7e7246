"""Three real nodes: whichever is asked, every route of the HTTP door gives the same answer.

The routes are those of the API's own document, so that a new one is walked, or named here with its reason.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from goqueue.edge.http.app import api_document
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from tests.integration.running_cluster import RunningCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PARTITIONS = 6
TOPIC, GROUP = "walked", "walkers"
HINT = "goqueue-leader"
TENANT = "walkers-inc"
SCHEMA_IDS: list[int] = []
"""The one that was registered."""

ABOUT_THE_NODE = {
    "/health", "/healthz", "/livez", "/readyz", "/version", "/metrics", "/cluster/state", "/cluster/health",
    "/cluster/partition/{topic}/{partition}/info",
    "/admin/reassignment/{reassignment_id}", "/admin/decommission/{node}", "/admin/backup/whole",
    "/admin/backup", "/admin/backup/{backup_id}", "/admin/backup/{backup_id}/metadata",
    "/admin/keys", "/admin/users",
}  # fmt: skip
"""What is asked of one node and about it; backups, orders, keys and users have their own tests."""
WALKED: dict[str, Callable[[str], str]] = {
    "/stats": str,
    "/topics": str,
    "/admin/acls": str,
    "/admin/roles": str,
    "/sinks": str,
    "/topics/{topic}": str,
    "/topics/{topic}/partitions": str,
    "/admin/topics/{topic}/scaling-status": str,
    "/topics/{topic}/partitions/{partition}/messages": str,
    "/topics/{topic}/partitions/{partition}/frames": lambda path: f"{path}?offset=0",
    "/topics/{topic}/partitions/{partition}/splits": lambda path: f"{path}?from=0&until=4",
    "/groups": str,
    "/groups/{group}": str,
    "/groups/{group}/offsets": str,
    "/groups/{group}/lag": str,
    "/groups/{group}/cooperative": str,
    "/groups/{group}/rebalance/stats": str,
    "/groups/{group}/assignment": lambda path: f"{path}?member_id=MEMBER",
    "/rebalance/stats": str,
    "/admin/reassignment": str,
    "/schemas/subjects": str,
    "/schemas/subjects/{subject}/versions": str,
    "/schemas/subjects/{subject}/versions/{version}": str,
    "/schemas/subjects/{subject}/versions/{version}/schema": str,
    "/schemas/subjects/{subject}/versions/{version}/referencedby": str,
    "/schemas/schemas/ids/{schema_id}": str,
    "/schemas/ids/{schema_id}": str,
    "/schemas/schemas/ids/{schema_id}/subjects": str,
    "/schemas/schemas/ids/{schema_id}/versions": str,
    "/schemas/schemas/types": str,
    "/schemas/contexts": str,
    "/schemas/config": str,
    "/schemas/config/{subject}": lambda path: f"{path}?defaultToGlobal=true",
    "/schemas/validation": str,
    "/schemas/validation/{subject}": lambda path: f"{path}?defaultToGlobal=true",
    "/schemas/mode": str,
    "/schemas/mode/{subject}": lambda path: f"{path}?defaultToGlobal=true",
    "/schemas/stats": str,
    "/topics/{topic}/delayed": str,
    "/topics/{topic}/schedules": str,
    "/delay/stats": str,
    "/transactions": str,
    "/transactions/stats": str,
    "/admin/tenants": str,
    "/admin/tenants/{tenant_id}": str,
    "/admin/tenants/{tenant_id}/quotas": str,
    "/admin/tenants/{tenant_id}/usage": str,
    "/admin/tenants/{tenant_id}/usage/hours": str,
    "/admin/tenants/{tenant_id}/stats": str,
    "/admin/tenants/{tenant_id}/topics": str,
    "/admin/tenants/{tenant_id}/groups": str,
    "/topics/{topic}/dlq": str,
    "/reliability/stats": str,
    "/priority/stats": str,
    "/traces": str,
    "/traces/search": lambda path: f"{path}?topic={TOPIC}&consumer_group={GROUP}",
    "/traces/stats": str,
    "/traces/{trace_id}": str,
    "/topics/{topic}/partitions/{partition}/offsets/{offset}/trace": str,
}
"""Routes that only look, and what to put behind the path."""
CHANGES_TOO = {"/groups/{group}/poll"}
NAMED_BY_OTHERS = {
    "/schemas/schemas/guids/{guid}", "/sinks/{sink}", "/topics/{topic}/delayed/{offset}",
    "/topics/{topic}/schedules/{name}",
}  # fmt: skip
"""What is told of names that only a test of that room knows."""
MOVING = {
    "LastSyncTime", "current_tick", "last_heartbeat", "last_updated", "lag_seconds", "max_seconds", "node_id",
    "oldest_pending", "rates", "uptime",
}  # fmt: skip
"""What is another at each look, or each node's own."""


def told(response: httpx.Response) -> Any:
    assert response.status_code < 300, (response.request.url, response.status_code, response.text)
    return response.json()


def still(value: object) -> object:
    """An answer without what moves by itself."""
    if isinstance(value, dict):
        return {
            name: still(one)
            for name, one in value.items()
            if name not in MOVING and "per_sec" not in name and "rate" not in name
        }
    return [still(one) for one in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def member(three: RunningCluster) -> str:
    """A topic that was published to, a group that has read some of it, and its member."""
    one, two, last = (httpx.Client(base_url=f"http://{at}", timeout=60) for at in three.http)
    with one, two, last:
        told(one.post("/topics", json={"name": TOPIC, "partitions": PARTITIONS}))
        told(one.post("/admin/tenants", json={"id": TENANT, "name": "Walkers"}))
        schema = {"schema": '{"type": "string"}', "schemaType": "JSON"}
        SCHEMA_IDS.append(told(two.post(f"/schemas/subjects/{TOPIC}-value/versions", json=schema))["id"])
        messages = [{"value": f"v{n}", "partition": n % PARTITIONS} for n in range(5 * PARTITIONS)]
        for result in told(two.post(f"/topics/{TOPIC}/messages", json={"messages": messages}))["results"]:
            assert "offset" in result, result
        body = {"client_id": "walker", "topics": [TOPIC], "session_timeout": "5m"}
        member_id: str = told(last.post(f"/groups/{GROUP}/join", json=body))["member_id"]
        receipts: list[str] = []
        deadline_s = time.monotonic() + 60
        while len(receipts) < 12 and time.monotonic() < deadline_s:
            query: dict[str, str | int] = {
                "member_id": member_id,
                "limit": 12 - len(receipts),
                "timeout": "5s",
            }
            polled = told(one.get(f"/groups/{GROUP}/poll", params=query))
            receipts += [message["receipt_handle"] for message in polled["messages"]]
        told(two.post("/messages/ack", json={"receipt_handles": receipts[:8]}))
    return member_id


def test_every_route_that_looks_is_walked_or_named() -> None:
    paths = {path for path, methods in json.loads(api_document())["paths"].items() if "get" in methods}
    assert paths == ABOUT_THE_NODE | WALKED.keys() | CHANGES_TOO | NAMED_BY_OTHERS


@pytest.mark.parametrize("route", WALKED)
def test_every_node_gives_the_same_answer(doors: list[httpx.Client], member: str, route: str) -> None:
    trace = told(doors[0].get(f"/topics/{TOPIC}/partitions/0/offsets/0/trace"))
    path = (
        route.replace("{topic}", TOPIC)
        .replace("{group}", GROUP)
        .replace("{partition}", "0")
        .replace("{offset}", "0")
        .replace("{trace_id}", trace["trace_id"])
        .replace("{subject}", f"{TOPIC}-value")
        .replace("{version}", "1")
        .replace("{schema_id}", str(SCHEMA_IDS[0]))
        .replace("{tenant_id}", TENANT)
    )
    asked = WALKED[route](path).replace("MEMBER", member)
    answers = [door.get(asked) for door in doors]
    for answer in answers:
        assert answer.status_code == 200, (asked, answer.text)
    if answers[0].headers["content-type"].startswith("application/json"):
        bodies = [still(answer.json()) for answer in answers]
        assert bodies[1] == bodies[0]
        assert bodies[2] == bodies[0]
    else:
        assert len({answer.content for answer in answers}) == 1


def test_numbers_of_a_topic_are_those_of_the_partitions_leaders(
    doors: list[httpx.Client], member: str
) -> None:
    for door in doors:
        topic = told(door.get(f"/topics/{TOPIC}"))
        assert topic["total_messages"] == 5 * PARTITIONS
        assert topic["total_size_bytes"] > 0
        assert [ends["latest"] for ends in topic["partition_offsets"].values()] == [4] * PARTITIONS
        assert told(door.get("/stats"))["topic_stats"][TOPIC]["TotalMessages"] == 5 * PARTITIONS


def test_a_reply_from_afar_says_where_it_came_from(
    doors: list[httpx.Client], three: RunningCluster, member: str
) -> None:
    hints = [door.get(f"/topics/{TOPIC}/partitions/0/messages").headers.get(HINT) for door in doors]
    [leader] = {hint for hint in hints if hint is not None}
    assert hints == [None if at == leader else leader for at in three.http]
    for door in doors:
        assert HINT not in door.get("/topics").headers, "every node knows that by itself"


def test_topics_are_made_and_changed_at_any_node_and_known_at_all_of_them(doors: list[httpx.Client]) -> None:
    for at, door in enumerate(doors):
        name = f"made-{at}"
        told(door.post("/topics", json={"name": name, "partitions": 2}))
        for other in doors:
            again = other.post("/topics", json={"name": name, "partitions": 2})
            assert (again.status_code, again.json()["code"]) == (409, "topic_exists")
            assert told(other.get(f"/topics/{name}"))["partitions"] == 2
        told(doors[at - 1].post(f"/admin/topics/{name}/partitions", json={"count": 4}))
        for number, other in enumerate(doors):
            body = {"messages": [{"value": "v", "partition": partition} for partition in range(4)]}
            results = told(other.post(f"/topics/{name}/messages", json=body))["results"]
            assert [result["offset"] for result in results] == [number] * 4
        told(doors[at - 2].delete(f"/topics/{name}"))
        for other in doors:
            assert other.get(f"/topics/{name}").status_code == 404
            assert name not in told(other.get("/topics"))["topics"]


def test_offsets_of_a_group_are_committed_and_reset_at_any_node(
    doors: list[httpx.Client], member: str
) -> None:
    for at, door in enumerate(doors):
        group = f"committed-{at}"
        body: dict[str, Any] = {"offsets": {TOPIC: {str(number): 2 for number in range(PARTITIONS)}}}
        told(door.post(f"/groups/{group}/offsets", json=body))
        for other in doors:
            offsets = told(other.get(f"/groups/{group}/offsets"))["offsets"][TOPIC]
            assert offsets == {str(number): 2 for number in range(PARTITIONS)}
        for other, goal, offset in zip(doors, ("earliest", "latest", 3), (0, 5, 3), strict=True):
            to = {TOPIC: {str(number): goal for number in range(PARTITIONS)}} if goal == 3 else goal
            reset = told(other.post(f"/groups/{group}/offsets/reset", json={"to": to, "topics": [TOPIC]}))
            assert reset["reset_count"] == PARTITIONS
            assert {one["new_offset"] for one in reset["partitions"]} == {offset}
        too_far = {"to": {TOPIC: {"0": 99}}}
        assert door.post(f"/groups/{group}/offsets/reset", json=too_far).status_code == 400
        told(doors[at - 1].delete(f"/groups/{group}"))
        assert {other.get(f"/groups/{group}").status_code for other in doors} == {404}


def test_a_story_is_told_by_the_leader_and_the_coordinator_together(
    doors: list[httpx.Client], member: str
) -> None:
    stories = [
        [span["event_type"] for span in told(door.get(path))["spans"]]
        for path in (f"/topics/{TOPIC}/partitions/{number}/offsets/0/trace" for number in range(PARTITIONS))
        for door in doors
    ]
    assert any("consume.acked" in story and "publish.persisted" in story for story in stories)
    for number in range(0, len(stories), len(doors)):
        assert stories[number] == stories[number + 1] == stories[number + 2]


def test_batches_of_a_bulk_writer_reach_all_leaders_through_any_node(doors: list[httpx.Client]) -> None:
    told(doors[0].post("/topics", json={"name": "bulk", "partitions": PARTITIONS}))
    for at, door in enumerate(doors):
        entries = b"".join(
            encode_entry(TopicPartition(TopicName("bulk"), number), batch.lane, batch.body)
            for number in range(PARTITIONS)
            for batch in encode([Message(b"%d" % at)], now_ms=1)
        )
        places = told(door.post("/batches", content=entries))["placed"]
        assert [(place["partition"], place["base_offset"]) for place in places] == [
            (number, at) for number in range(PARTITIONS)
        ]
    for door in doors:
        assert told(door.get("/topics/bulk"))["total_messages"] == 3 * PARTITIONS


def test_every_node_tells_of_the_copy_that_it_has(doors: list[httpx.Client], member: str) -> None:
    told_by = [told(door.get(f"/cluster/partition/{TOPIC}/0/info")) for door in doors]
    assert sorted(told["local_replica"]["role"] for told in told_by) == ["follower", "follower", "leader"]
    for told_of in told_by:
        assert told_of["leader"] == told_by[0]["leader"]
        assert sorted(told_of["replicas"]) == sorted(told_of["isr"]) == ["node-1", "node-2", "node-3"]
        assert told_of["local_replica"]["log_end_offset"] == 5


def test_backups_are_made_found_and_deleted_through_any_node(doors: list[httpx.Client], member: str) -> None:
    for at, door in enumerate(doors):
        made = told(door.post("/admin/backup", json={}))
        backup_id = made["backup_id"]
        described = told(doors[at - 1].get(f"/admin/backup/{backup_id}"))
        assert {"name": TOPIC, "num_partitions": PARTITIONS} in described["topics"]
        assert GROUP in [group["group_id"] for group in described["consumer_groups"]]
        assert described["stats"] == made["stats"]
        for other in doors:
            assert backup_id in [one["backup_id"] for one in told(other.get("/admin/backup"))["backups"]]
        document = doors[at - 2].get(f"/admin/backup/{backup_id}/metadata").content
        [kept] = [topic for topic in json.loads(document)["topics"] if topic["name"] == TOPIC]
        assert [partition["id"] for partition in kept["partitions"]] == list(range(PARTITIONS))

        told(doors[at - 1].delete(f"/admin/backup/{backup_id}"))

        brought = told(doors[at - 2].put(f"/admin/backup/{backup_id}", content=document))
        assert brought["stats"] == made["stats"]
        assert told(door.get(f"/admin/backup/{backup_id}")) == described


def test_a_topic_that_was_deleted_is_restored_through_any_node(doors: list[httpx.Client]) -> None:
    one, two, three = doors
    told(one.post("/topics", json={"name": "lost", "partitions": 3}))
    messages = [{"value": str(number), "partition": 1} for number in range(5)]
    told(one.post("/topics/lost/messages", json={"messages": messages}))
    told(two.post("/groups/losers/offsets", json={"offsets": {"lost": {"1": 3}}}))
    backup_id = told(three.post("/admin/backup", json={}))["backup_id"]
    one.delete("/topics/lost").raise_for_status()

    restored = told(two.post(f"/admin/backup/{backup_id}/restore", json={}))

    assert restored["topics_restored"] == 1
    # Its offset in the topic went with that; it goes on behind the messages that are gone.
    assert restored["groups_restored"] == 1
    for door in doors:
        [after] = told(door.get("/groups/losers/offsets"))["offsets"]["lost"].items()
        assert after == ("1", 5)
    [placed] = told(three.post("/topics/lost/messages", json={"messages": [messages[0]]}))["results"]
    assert (placed["partition"], placed["offset"]) == (1, 5)
    refused = one.post(f"/admin/backup/{backup_id}/restore", json={"data_follows": True})
    assert (refused.status_code, refused.json()["code"]) == (400, "not_supported")
