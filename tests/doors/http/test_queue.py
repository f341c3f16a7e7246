"""The work queue over HTTP: poll, ack, nack, reject, visibility, with the shapes existing clients read."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import httpx
import pytest

from tests.doors.http.running_door import RunningDoor

Json = dict[str, Any]
_numbers = count()


class Queue:
    """A topic of its own and a group that takes from it, at a door that other tests use too."""

    def __init__(self, client: httpx.Client, *, name: str = "") -> None:
        self.client = client
        self.topic = name or f"orders{next(_numbers)}"
        self.group = f"workers-of-{self.topic}"
        self.member = ""
        client.post("/topics", json={"name": self.topic, "num_partitions": 3})

    def publish(self, *messages: str | Json) -> None:
        bodies = [{"value": message} if isinstance(message, str) else message for message in messages]
        reply = self.client.post(f"/topics/{self.topic}/messages", json={"messages": bodies})
        assert all("error" not in result for result in reply.json()["results"]), reply.text

    def join(self, **more: object) -> str:
        body = {"client_id": "test", "topics": [self.topic], **more}
        reply = self.client.post(f"/groups/{self.group}/join", json=body)
        assert reply.status_code == 200, reply.text
        return str(reply.json()["member_id"])

    def poll(self, member: str = "", **query: str | int) -> list[Json]:
        """As one member, which joins with its first poll, or as another."""
        self.member = self.member or (not member and self.join()) or ""
        params = {"member_id": member or self.member, "timeout": "0s", **query}
        reply = self.client.get(f"/groups/{self.group}/poll", params=params)
        assert reply.status_code == 200, reply.text
        return list(reply.json()["messages"])

    def settle(self, what: str, **body: object) -> Json:
        reply = self.client.post(f"/messages/{what}", json=body)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("queue")) as running:
        yield running


@pytest.fixture
def client(door: RunningDoor) -> httpx.Client:
    return door.client


@pytest.fixture
def queue(client: httpx.Client) -> Queue:
    return Queue(client)


def test_a_polled_message_says_all_there_is_to_say(queue: Queue) -> None:
    queue.publish(
        {"value": "a", "key": "k", "partition": 1, "priority": "high", "headers": {"tenant": "blue"}},
        {"value": "/w==", "encoding": "base64", "partition": 2},
    )

    params = {"member_id": queue.join(), "timeout": "1s"}
    reply = queue.client.get(f"/groups/{queue.group}/poll", params=params)

    text, binary = sorted(reply.json()["messages"], key=lambda message: int(message["partition"]))
    handle, timestamp = text.pop("receipt_handle"), text.pop("timestamp")
    traces = [message["headers"].pop("traceparent") for message in (text, binary)]
    stories = [queue.client.get(f"/traces/{trace.split('-')[1]}").json() for trace in traces]
    assert [(story["partition"], story["offset"]) for story in stories] == [(1, 0), (2, 0)]
    assert text == {
        "topic": queue.topic,
        "partition": 1,
        "offset": 0,
        "key": "k",
        "value": "a",
        "headers": {"tenant": "blue"},
        "priority": "high",
        "delivery_count": 1,
    }
    assert handle.rpartition(":")[0] == f"{queue.topic}:1:0:1"
    assert len(handle.rpartition(":")[2]) == 16
    assert timestamp.endswith("Z")
    assert (binary["value"], binary["encoding"]) == ("/w==", "base64")
    next_offsets = {"0": 0, "1": 1, "2": 1}
    next_offsets |= {f"{queue.topic}-{partition}": offset for partition, offset in next_offsets.items()}
    assert reply.json()["next_offset"] == next_offsets


def test_an_ack_tells_how_far_the_group_is(queue: Queue) -> None:
    queue.publish(*({"value": f"{n}", "partition": 0} for n in range(3)))
    first, second, _ = (message["receipt_handle"] for message in queue.poll())

    assert queue.settle("ack", receipt_handle=second, consumer_id=None) == {
        "success": True,
        "acknowledged": True,
        "topic": queue.topic,
        "partition": 0,
        "offset": 1,
        "committed_offset": -1,
        "offset_advanced": False,
        "in_flight_count": 2,
    }
    reply = queue.settle("ack", receipt_handle=first)
    assert (reply["committed_offset"], reply["offset_advanced"]) == (1, True)
    assert queue.client.get(f"/groups/{queue.group}/offsets").json()["offsets"][queue.topic]["0"] == 2
    assert queue.settle("ack", receipt_handle=first)["success"], "once more is no mistake"


def test_a_nack_says_when_the_message_is_delivered_again(queue: Queue) -> None:
    queue.publish("a")
    [message] = queue.poll()

    reply = queue.settle("nack", receipt_handle=message["receipt_handle"], delay="100ms")

    assert (reply["action"], reply["requeued"], reply["delivery_count"]) == ("requeued", True, 1)
    assert reply["next_visible_at"] > message["timestamp"]
    [again] = queue.poll(timeout="5s")
    assert (again["value"], again["delivery_count"]) == ("a", 2)
    assert again["receipt_handle"] != message["receipt_handle"]


def test_a_rejected_message_is_among_the_dead_letters_and_can_be_sent_back(queue: Queue) -> None:
    queue.publish({"value": "a", "key": "k", "headers": {"tenant": "blue"}})
    [message] = queue.poll()

    reply = queue.settle("reject", receipt_handle=message["receipt_handle"], reason=None)
    assert (reply["action"], reply["rejected"], reply["dlq_topic"]) == (
        "rejected",
        True,
        f"{queue.topic}.dlq",
    )
    found = queue.client.get(f"/topics/{queue.topic}/dlq").json()
    [dead] = found["messages"]
    assert (dead["value"], dead["key"], dead["headers"]["tenant"]) == ("a", "k", "blue")
    assert (dead["reason"], dead["original_offset"], dead["delivery_attempts"]) == ("REJECTED", 0, 1)

    dry = queue.client.post(f"/topics/{queue.topic}/dlq/redrive", json={"dry_run": True}).json()
    assert (dry["matched"], dry["redriven"]) == (1, 0)
    done = queue.client.post(
        f"/topics/{queue.topic}/dlq/redrive", json={"filter": {"reason": "REJECTED"}}
    ).json()
    assert (done["redriven"], done["complete"]) == (1, True)
    [again] = queue.poll()
    assert (again["value"], again["partition"]) == ("a", message["partition"])
    assert queue.client.get(f"/topics/{queue.topic}/dlq").json()["count"] == 0


@pytest.mark.parametrize("rate", ["NaN", "-1", "0", "1e308", "1e-300", "-Infinity"])
def test_a_redrive_at_an_impossible_rate_is_refused(queue: Queue, rate: str) -> None:
    queue.publish("bad")
    [message] = queue.poll()
    queue.settle("reject", receipt_handle=message["receipt_handle"])

    refused = queue.client.post(f"/topics/{queue.topic}/dlq/redrive", content=f'{{"rate": {rate}}}')

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")


def test_groups_in_whose_names_the_broker_redrives_are_not_among_those_of_users(queue: Queue) -> None:
    queue.publish("bad")
    [message] = queue.poll()
    queue.settle("reject", receipt_handle=message["receipt_handle"])
    queue.client.post(f"/topics/{queue.topic}/dlq/redrive")

    own = f"goqueue.redrive.{queue.topic}"
    assert own not in queue.client.get("/groups").json()["groups"]
    assert own in queue.client.get("/groups", params={"internal": "true"}).json()["groups"]


@pytest.mark.parametrize("body", [b"", b"{}", b'{"filter": null, "dry_run": null, "limit": null}'])
def test_a_redrive_needs_no_body(queue: Queue, body: bytes) -> None:
    queue.publish("a")
    [message] = queue.poll()
    queue.settle("reject", receipt_handle=message["receipt_handle"])

    done = queue.client.post(f"/topics/{queue.topic}/dlq/redrive", content=body).json()

    assert (done["redriven"], done["dry_run"]) == (1, False)


@pytest.mark.parametrize("length", [{"timeout": "60s"}, {"extension_seconds": 60}])
def test_a_message_can_be_kept_for_longer(queue: Queue, length: Json) -> None:
    queue.publish("a")
    [message] = queue.poll(visibility_timeout="200ms")

    reply = queue.settle("visibility", receipt_handle=message["receipt_handle"], **length)

    assert (reply["success"], reply["extended"], reply["extended_by"]) == (True, True, 60)
    assert queue.poll(timeout="400ms") == [], "it would have come back by now"


def test_many_receipts_that_are_all_good_are_answered_one_by_one_too(queue: Queue) -> None:
    queue.publish(*({"value": f"{n}", "partition": 0} for n in range(3)))
    handles = [message["receipt_handle"] for message in queue.poll()]

    reply = queue.settle("ack", receipt_handles=handles)

    results = [{"receipt_handle": handle, "success": True} for handle in handles]
    assert reply == {"results": results, "success": True, "settled": 3, "failed": 0}
    # The offset of this one is read as the number that it stands for, and it is told as it was given.
    topic, partition, offset, more = handles[0].split(":", 3)
    odd = f"{topic}:{partition}:\n{offset}:{more}"
    assert queue.settle("ack", receipt_handles=[odd])["results"] == [{"receipt_handle": odd, "success": True}]


def test_many_receipts_are_answered_one_by_one(queue: Queue) -> None:
    queue.publish(*("abcd"))
    handles = [message["receipt_handle"] for message in queue.poll()]

    for what in ("ack", "nack", "reject", "visibility"):
        reply = queue.settle(what, receipt_handles=[handles.pop(), "nonsense"], timeout="1m")
        assert (reply["success"], reply["settled"], reply["failed"]) == (False, 1, 1)
        good, bad = reply["results"]
        assert good["success"]
        assert (bad["success"], bad["status"], bad["code"]) == (False, 400, "invalid_receipt")


@pytest.mark.parametrize("what", ["ack", "nack", "reject", "visibility"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"receipt_handle": None}, 400),
        ({"receipt_handle": "nonsense"}, 400),
        ({"receipt_handle": "orders:0:0:1:xyz"}, 400),
        ({"receipt_handle": "a:b", "receipt_handles": ["c"]}, 400),
        ({"receipt_handles": []}, 400),
        ({"receipt_handle": 5}, 400),
        ({"receipt_handle": "orders:0:0:1:0123456789abcdef"}, 404),
    ],
)
def test_a_receipt_that_is_no_good_is_never_an_error_of_the_server(
    client: httpx.Client, what: str, body: Json, status: int
) -> None:
    reply = client.post(f"/messages/{what}", json={"timeout": "1s", **body})

    assert reply.status_code == status
    assert reply.json()["status"] == status


def test_a_lease_that_ran_out_is_a_conflict(queue: Queue) -> None:
    queue.publish("a")
    [message] = queue.poll(visibility_timeout="1ms")
    queue.poll(timeout="1s", visibility_timeout="1m")

    reply = queue.client.post("/messages/ack", json={"receipt_handle": message["receipt_handle"]})

    assert (reply.status_code, reply.json()["code"]) == (409, "lease_lost")


def test_a_poll_that_waits_is_answered_when_a_message_comes(queue: Queue) -> None:
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        waiting = pool.submit(queue.poll, timeout="15s")
        queue.publish("a")

        assert [message["value"] for message in waiting.result()] == ["a"]
        assert time.monotonic() - began < 10


def test_a_poll_takes_from_all_topics_of_the_group(queue: Queue) -> None:
    payments = Queue(queue.client)
    payments.publish("p")
    queue.publish("o")
    member = queue.join(topics=[queue.topic, payments.topic])

    assert {message["topic"] for message in queue.poll(member)} == {queue.topic, payments.topic}


def test_a_shared_group_has_more_consumers_than_partitions(queue: Queue) -> None:
    queue.publish(*(f"{n}" for n in range(10)))
    members = [queue.join(mode="shared") for _ in range(5)]

    taken = [message["value"] for member in members for message in queue.poll(member, max_messages=2)]

    assert sorted(taken) == [f"{n}" for n in range(10)]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400),
        ({"member_id": "nobody"}, 404),
        ({"limit": "0"}, 400),
        ({"limit": "x"}, 400),
        ({"max_bytes": "-1"}, 400),
        ({"timeout": "soon"}, 400),
        ({"visibility_timeout": "0s"}, 400),
        ({"generation": "99"}, 409),
        ({"encoding": "rot13"}, 400),
    ],
)
def test_a_poll_that_cannot_be_served_says_why(queue: Queue, query: dict[str, str], status: int) -> None:
    given = {"member_id": queue.join(), **query} if query else {}

    reply = queue.client.get(f"/groups/{queue.group}/poll", params=given)

    assert (reply.status_code, reply.json()["status"]) == (status, status)


def test_nobody_polls_a_group_that_is_not_there(client: httpx.Client) -> None:
    assert client.get("/groups/nobody/poll?member_id=x").status_code == 404


def test_statistics_come_in_both_sets_of_keys(running: RunningDoor) -> None:
    queue = Queue(running.client, name="orders")
    queue.publish(*({"value": f"{n}", "priority": "low", "partition": 0} for n in range(6)))
    a, b, c, d = (message["receipt_handle"] for message in queue.poll(limit=4))
    queue.settle("ack", receipt_handle=a)
    queue.settle("nack", receipt_handle=b)
    queue.settle("reject", receipt_handle=c)
    queue.settle("visibility", receipt_handle=d, timeout="1m")

    stats = queue.client.get("/reliability/stats").json()
    assert stats["ack_manager"]["total_acks"] == stats["acks_total"] == 1
    assert stats["ack_manager"]["total_nacks"] == stats["nacks_total"] == 1
    assert stats["ack_manager"]["total_rejects"] == stats["rejects_total"] == 1
    assert stats["dlq"]["total_routed"] == stats["dlq_messages"] == 1
    assert stats["dlq"]["routes_by_reason"] == {"REJECTED": 1}
    assert stats["visibility_tracker"]["total_extended"] == stats["visibility_extensions"] == 1
    assert stats["visibility_tracker"]["current_in_flight"] == 1
    assert stats["ack_manager"]["current_queued"] == 1

    lanes = queue.client.get("/priority/stats").json()
    assert lanes["messages_by_priority"]["low"] == 7, "the dead letter is one, too"
    own = lanes["topics"]["orders"]
    assert own["total_by_priority"] == [0, 0, 0, 6, 0]
    assert own["partitions"]["0"]["consumed"] == [0, 0, 0, 4, 0]
    assert own["partitions"]["0"]["pending"] == [0, 0, 0, 2, 0]
    assert own["partitions"]["0"]["in_flight"] == 1
    assert own["partitions"]["0"]["in_flight_by_priority"] == [0, 0, 0, 1, 0]
    assert [bool(time) for time in own["partitions"]["0"]["last_served"]] == [
        False,
        False,
        False,
        True,
        False,
    ]
    assert own["partitions"]["0"]["oldest_pending"][3] != ""


def test_a_message_with_a_time_to_live_is_not_delivered_when_it_is_over(queue: Queue) -> None:
    queue.publish({"value": "short", "ttl": "1ms"}, {"value": "long", "ttl": "1h"})
    refused = queue.client.post(
        f"/topics/{queue.topic}/messages", json={"messages": [{"value": "x", "ttl": "0s"}]}
    )
    assert refused.json()["results"][0]["code"] == "invalid"

    assert [message["value"] for message in queue.poll(timeout="1s")] == ["long"]


def test_a_closing_door_answers_polls_that_wait(running: RunningDoor) -> None:
    queue = Queue(running.client)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.poll, timeout="15s")
        while not running.broker.waiting_reads:
            time.sleep(0.001)
        running.run(running.door.stop())

        assert waiting.result() == []


def test_what_the_disk_has_spoilt_is_left_out_and_told(queue: Queue, door: RunningDoor) -> None:
    for value in ("before", "spoilt", "behind"):
        queue.publish({"value": value, "partition": 0})
    [path] = (door.folder / "logs" / queue.topic / "0").glob("*.log")
    data = bytearray(path.read_bytes())
    data[data.index(b"spoilt")] ^= 1
    with path.open("r+b") as file:
        file.write(data)

    taken = queue.poll()
    read = queue.client.get(f"/topics/{queue.topic}/partitions/0/messages", params={"offset": 1})
    described = queue.client.get(f"/groups/{queue.group}").json()

    assert [message["value"] for message in taken] == ["before", "behind"]
    assert (read.status_code, read.json()["code"]) == (500, "corrupt")
    assert read.json()["error"].endswith("messages go on at offset 2")
    [row] = described["passed_over"]
    assert (row["topic"], row["partition"], row["first_offset"], row["end_offset"]) == (queue.topic, 0, 1, 2)
    metrics = queue.client.get("/metrics").text
    [line] = [one for one in metrics.splitlines() if "passed_over_total{" in one and queue.group in one]
    assert float(line.split()[-1]) == 1


def test_a_member_may_have_committed_by_its_next_poll_what_it_was_given(queue: Queue) -> None:
    queue.publish(*({"value": f"{number}", "partition": 0} for number in range(4)))

    first = queue.poll(limit=2, auto_commit="true")
    offsets = queue.client.get(f"/groups/{queue.group}/offsets").json()["offsets"]
    second = queue.poll(limit=2, auto_commit="true")
    left = queue.poll(auto_commit="true")

    assert [message["value"] for message in (*first, *second)] == ["0", "1", "2", "3"]
    assert offsets[queue.topic]["0"] == 0, "what was given is not done before the next poll"
    assert left == []
    assert queue.client.get(f"/groups/{queue.group}/offsets").json()["offsets"][queue.topic]["0"] == 4
    stranger = {"member_id": "nobody", "auto_commit": "true"}
    assert queue.client.get(f"/groups/{queue.group}/poll", params=stranger).status_code == 404
