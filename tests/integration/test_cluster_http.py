"""Three real nodes: whichever is asked over HTTP, messages are stored by their leaders and read from them."""

import time
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.integration.running_cluster import RunningCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
PARTITIONS = 6


def told(response: httpx.Response) -> Any:
    assert response.status_code < 300, response.text
    return response.json()


def create(doors: list[httpx.Client], topic: str) -> None:
    """Make a topic: when that is answered, all nodes know it."""
    told(doors[0].post("/topics", json={"name": topic, "partitions": PARTITIONS}))


def test_any_node_takes_messages_for_any_partition_and_gives_them_out(doors: list[httpx.Client]) -> None:
    create(doors, "orders")
    stored: dict[tuple[int, int], str] = {}
    for at, door in enumerate(doors):
        messages = [{"value": f"{at}-{n}", "partition": n % PARTITIONS} for n in range(4 * PARTITIONS)]
        results = told(door.post("/topics/orders/messages", json={"messages": messages}))["results"]
        for message, result in zip(messages, results, strict=True):
            assert result["partition"] == message["partition"], result
            stored[result["partition"], result["offset"]] = str(message["value"])
    assert len(stored) == 3 * 4 * PARTITIONS, "no place was given twice"
    for door in doors:
        found: dict[tuple[int, int], str] = {}
        for number in range(PARTITIONS):
            read = told(door.get(f"/topics/orders/partitions/{number}/messages", params={"limit": 1000}))
            found |= {(number, message["offset"]): message["value"] for message in read["messages"]}
        assert found == stored


def test_messages_without_a_key_are_spread_over_all_leaders(doors: list[httpx.Client]) -> None:
    create(doors, "spread")
    body = {"messages": [{"value": "v"}] * (10 * PARTITIONS)}
    results = told(doors[2].post("/topics/spread/messages", json=body))["results"]
    assert Counter(result["partition"] for result in results) == dict.fromkeys(range(PARTITIONS), 10)


def test_a_leader_that_is_killed_costs_a_moment_and_nothing_that_was_acknowledged(
    three: RunningCluster, doors: list[httpx.Client]
) -> None:
    create(doors, "kept")
    stored: dict[tuple[int, int], str] = {}
    refused: Counter[str] = Counter()
    count = 0

    def publish(door: httpx.Client) -> int:
        """Publish to all partitions; how many were acknowledged."""
        nonlocal count
        messages = []
        for number in range(PARTITIONS):
            count += 1
            messages.append({"value": f"v{count}", "partition": number})
        reply = door.post("/topics/kept/messages", json={"messages": messages})
        if reply.status_code != 200:
            refused[reply.json()["code"]] += PARTITIONS
            return 0
        acknowledged = 0
        for message, result in zip(messages, reply.json()["results"], strict=True):
            if result.get("code"):
                refused[result["code"]] += 1
            else:
                place = result["partition"], result["offset"]
                assert place not in stored, f"{place} was given twice"
                stored[place] = str(message["value"])
                acknowledged += 1
        return acknowledged

    for door in doors * 5:
        assert publish(door) == PARTITIONS
    assert not refused
    three.child("node-3").kill()
    killed_s = time.monotonic()
    while any(publish(door) < PARTITIONS for door in doors[:2]):
        assert time.monotonic() < killed_s + 30, refused
    for door in doors[:2] * 10:
        assert publish(door) == PARTITIONS
    assert set(refused) <= {"no_leader", "not_leader", "node_unreachable", "answer_lost"}, refused
    for door in doors[:2]:
        found: dict[tuple[int, int], str] = {}
        for number in range(PARTITIONS):
            read = told(door.get(f"/topics/kept/partitions/{number}/messages", params={"limit": 1000}))
            found |= {(number, message["offset"]): message["value"] for message in read["messages"]}
        assert stored.items() <= found.items(), "what was acknowledged is there, and where it was said to be"
        doubled = [value for value, times in Counter(found.values()).items() if times > 1]
        assert doubled == [], "what was passed on was stored once"
    three.wait_for("node-3   ready")
    print(f"killed: {refused}, all taken again within {time.monotonic() - killed_s:.1f} s")
