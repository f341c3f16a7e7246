"""Delayed messages and schedules over HTTP."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest


def publish(client: httpx.Client, *messages: dict[str, object]) -> list[dict[str, object]]:
    reply = client.post("/topics/orders/messages", json={"messages": messages})
    assert reply.status_code == 200, reply.text
    results: list[dict[str, object]] = reply.json()["results"]
    return results


def read(client: httpx.Client, partition: int) -> list[dict[str, object]]:
    reply = client.get(f"/topics/orders/partitions/{partition}/messages", params={"wait": "200ms"})
    messages: list[dict[str, object]] = reply.json()["messages"]
    return messages


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came true"


def test_a_delayed_message_is_named_in_the_reply_and_comes_when_it_is_due(
    client: httpx.Client, orders: str
) -> None:
    began = datetime.now(UTC)

    delayed, now = publish(
        client,
        {"value": "later", "partition": 1, "delay": "300ms", "priority": "high", "headers": {"a": "b"}},
        {"value": "now", "partition": 1},
    )

    assert delayed["delayed"] is True and delayed["partition"] == 1 and delayed["priority"] == "high"
    due = datetime.fromisoformat(str(delayed["deliverAt"]))
    assert timedelta(milliseconds=299) < due - began < timedelta(seconds=5)
    assert "delayed" not in now and "deliverAt" not in now
    until(lambda: len(read(client, 1)) == 2)
    assert datetime.now(UTC) >= due
    first, second = read(client, 1)
    assert (first["value"], second["value"]) == ("now", "later")
    assert (second["timestamp"], second["priority"]) == (delayed["deliverAt"], "high")
    headers = second["headers"]
    assert isinstance(headers, dict) and set(headers) == {"a", "traceparent"}, "its own, and its trace"


def test_pending_messages_are_listed_by_the_time_they_are_due(client: httpx.Client, orders: str) -> None:
    publish(
        client, {"value": "c", "delay": "3h"}, {"value": "a", "delay": "90m"}, {"value": "b", "delay": "2h"}
    )

    body = client.get("/topics/orders/delayed", params={"limit": "2", "skip": "1"}).json()

    assert (body["topic"], body["count"], body["limit"], body["skip"]) == ("orders", 2, 2, 1)
    assert [message["offset"] for message in body["messages"]] == [2, 0]
    first = body["messages"][0]
    assert first["state"] == "pending" and first["priority"] == "normal"
    assert first["time_remaining"].startswith("1h59m")
    assert client.get("/topics/orders/delayed", params={"limit": "many"}).json()["limit"] == 100
    assert client.get("/topics/nowhere/delayed").json()["messages"] == []


def test_a_pending_message_can_be_looked_at_moved_and_cancelled(client: httpx.Client, orders: str) -> None:
    [place] = publish(client, {"value": "x", "delay": "1h", "partition": 2})
    number = place["offset"]

    assert client.get(f"/topics/orders/delayed/{number}").json()["deliver_at"] == place["deliverAt"]
    moved = client.post(f"/topics/orders/delayed/2/{number}/move", json={"delay": "3h"})
    assert moved.json()["time_remaining"] == "3h0m0s"
    assert client.get(f"/topics/orders/delayed/{number}").json()["deliver_at"] == moved.json()["deliver_at"]
    assert client.post(f"/topics/orders/delayed/2/{number}/move", json={}).status_code == 400
    assert client.delete(f"/topics/orders/delayed/1/{number}").status_code == 404
    cancelled = client.delete(f"/topics/orders/delayed/2/{number}").json()
    assert cancelled == {
        "topic": "orders", "partition": 2, "offset": number, "canceled": True, "cancelled": True
    }  # fmt: skip
    for gone in (
        client.get(f"/topics/orders/delayed/{number}"),
        client.delete(f"/topics/orders/delayed/2/{number}"),
        client.post(f"/topics/orders/delayed/2/{number}/move", json={"delay": "1s"}),
    ):
        assert (gone.status_code, gone.json()["code"]) == (404, "delayed_not_found")


def test_a_message_may_be_moved_to_now(client: httpx.Client, orders: str) -> None:
    [place] = publish(client, {"value": "x", "deliverAt": "2199-01-01T00:00:00Z", "partition": 0})

    client.post(
        f"/topics/orders/delayed/0/{place['offset']}/move", json={"deliverAt": "2001-01-01T00:00:00Z"}
    )

    until(lambda: [message["value"] for message in read(client, 0)] == ["x"])


def test_statistics_speak_the_words_of_all_clients(client: httpx.Client, orders: str) -> None:
    places = publish(client, *({"value": "x", "delay": "1h", "partition": 0} for _ in range(3)))
    client.delete(f"/topics/orders/delayed/0/{places[0]['offset']}")

    stats = client.get("/delay/stats").json()

    assert stats["by_topic"] == {"orders": 2}
    assert stats["total_pending"] == stats["pending_count"] == 2
    assert stats["total_canceled"] == stats["cancelled_count"] == stats["canceled_count"] == 1
    assert stats["total_delivered"] == stats["delivered_count"] == 0
    assert stats["total_scheduled"] == stats["timer_wheel"]["total_scheduled"] == 3
    assert stats["avg_delay"] in ("1h0m0s", "59m59.999s"), "a millisecond may have begun meanwhile"


def test_a_schedule_is_created_listed_paused_resumed_and_deleted(client: httpx.Client, orders: str) -> None:
    given = {
        "name": "morning",
        "cron": "0 9 * * MON-FRI",
        "time_zone": "Europe/Vienna",
        "message": {"value": "report", "key": "k", "priority": "low", "headers": {"a": "b"}},
    }

    created = client.post("/topics/orders/schedules", json=given)

    assert created.status_code == 201
    body = created.json()
    assert body["message"] == given["message"] and body["state"] == "active" and body["fired"] == 0
    [waiting] = client.get("/topics/orders/delayed").json()["messages"]
    assert waiting["deliver_at"] == body["next_at"]
    assert client.post("/topics/orders/schedules", json=given).json()["code"] == "schedule_exists"
    paused = client.post("/topics/orders/schedules/morning/pause").json()
    assert paused["state"] == "paused" and "next_at" not in paused
    assert client.get("/topics/orders/delayed").json()["count"] == 0
    assert client.post("/topics/orders/schedules/morning/resume").json()["next_at"] == body["next_at"]
    [listed] = client.get("/topics/orders/schedules").json()["schedules"]
    assert listed == client.get("/topics/orders/schedules/morning").json()
    assert client.delete("/topics/orders/schedules/morning").json()["deleted"] is True
    assert client.get("/topics/orders/schedules/morning").json()["code"] == "schedule_not_found"


@pytest.mark.parametrize(
    "wrong",
    [
        {"cron": "often"},
        {"time_zone": "Mars/Base"},
        {"name": "a b"},
        {"message": {"value": "x", "priority": "y"}},
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(
    client: httpx.Client, orders: str, wrong: dict[str, object]
) -> None:
    body = {"cron": "* * * * *", "message": {"value": "x"}, **wrong}

    assert client.post("/topics/orders/schedules", json=body).status_code == 400
