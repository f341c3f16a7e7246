"""Producers and transactions over HTTP, in the forms that the various clients send."""

import re
from typing import Any

import httpx
import pytest

from goqueue.records.frame import FLAG_TRANSACTIONAL, frame_borders
from tests.doors.http.running_door import RunningDoor

pytestmark = pytest.mark.usefixtures("orders")


class Writer:
    """A transactional producer over HTTP."""

    def __init__(self, client: httpx.Client, name: str = "writer") -> None:
        self.client = client
        reply = client.post("/producers/init", json={"transactional_id": name})
        assert reply.status_code == 200, reply.text
        self.who = {"transactional_id": name} | {key: reply.json()[key] for key in ("producer_id", "epoch")}

    def ask(self, what: str, **fields: Any) -> httpx.Response:
        return self.client.post(f"/transactions/{what}", json=self.who | fields)

    def begin(self) -> str:
        reply = self.ask("begin")
        assert reply.status_code == 200, reply.text
        return str(reply.json()["transaction_id"])

    def put(self, value: str, **fields: Any) -> httpx.Response:
        return self.ask("publish", topic="orders", value=value, **fields)


@pytest.fixture
def writer(client: httpx.Client) -> Writer:
    return Writer(client)


def seen(client: httpx.Client, partition: int = 0) -> list[str]:
    reply = client.get(f"/topics/orders/partitions/{partition}/messages")
    assert reply.status_code == 200, reply.text
    return [message["value"] for message in reply.json()["messages"]]


def test_a_transaction_is_seen_when_it_commits(writer: Writer, client: httpx.Client) -> None:
    name = writer.begin()
    placed = writer.put("a", partition=0, sequence=0).json()
    writer.put("b", partition=1, sequence=0)
    assert (placed, seen(client), seen(client, 1)) == (
        {"partition": 0, "offset": 0, "duplicate": False}, [], []
    )  # fmt: skip

    assert name.startswith("txn-")
    assert writer.ask("commit").json() == {"status": "committed"}

    assert (seen(client), seen(client, 1)) == (["a"], ["b"])


def test_what_was_aborted_is_never_seen(writer: Writer, client: httpx.Client) -> None:
    writer.begin()
    writer.put("lost", partition=0)
    assert writer.ask("abort").json() == {"status": "aborted"}
    writer.begin()
    writer.put("kept", partition=0)
    writer.ask("commit")

    assert seen(client) == ["kept"]


def test_frames_for_bulk_readers_hold_committed_messages_only(writer: Writer, client: httpx.Client) -> None:
    for number, end in enumerate(("commit", "abort", "commit")):
        writer.begin()
        writer.put(str(number), partition=0)
        writer.ask(end)
    writer.begin()
    writer.put("open", partition=0)

    reply = client.get("/topics/orders/partitions/0/frames")
    ends = client.post("/offsets", json={"topics": ["orders"]}).json()["topics"]["orders"]["0"]

    borders = frame_borders(memoryview(reply.content))
    assert len(borders) == 2
    assert all(flags & FLAG_TRANSACTIONAL for _, _, flags in borders)
    assert reply.headers["x-goqueue-next-offset"] == reply.headers["x-goqueue-end-offset"] == "6"
    assert ends["end"] == 6


@pytest.mark.parametrize("first", [0, 1])
def test_sequences_begin_at_zero_or_one_and_duplicates_are_told(writer: Writer, first: int) -> None:
    writer.begin()
    placed = [writer.put("x", partition=2, sequence=first + number).json() for number in (0, 1, 1, 2)]

    assert [(place["offset"], place["duplicate"]) for place in placed] == [
        (0, False), (1, False), (1, True), (2, False)
    ]  # fmt: skip
    gap = writer.put("x", partition=2, sequence=first + 9)
    assert (gap.status_code, gap.json()["code"]) == (400, "out_of_sequence")


def test_a_message_without_a_partition_goes_by_its_key(writer: Writer, client: httpx.Client) -> None:
    plain = client.post("/topics/orders/messages", json={"messages": [{"value": "x", "key": "k"}]})
    by_key = plain.json()["results"][0]["partition"]

    placed = [writer.put("x", key="k", partition=partition, sequence=7).json() for partition in (None, -1)]

    assert [place["partition"] for place in placed] == [by_key, by_key]
    assert [place["duplicate"] for place in placed] == [False, True]


def test_outside_a_transaction_a_message_is_seen_at_once(writer: Writer, client: httpx.Client) -> None:
    writer.put("now", partition=0, sequence=0, priority="high", headers={"h": "1"})

    [message] = client.get("/topics/orders/partitions/0/messages").json()["messages"]
    assert (message["value"], message["priority"], message["headers"]) == ("now", "high", {"h": "1"})


def test_a_producer_without_a_transactional_id_only_has_its_messages_stored_once(
    client: httpx.Client,
) -> None:
    who = client.post("/producers/init", json={}).json()
    given = {"producer_id": who["producer_id"], "epoch": 0, "topic": "orders", "partition": 0, "sequence": 0}

    first = client.post("/transactions/publish", json=given | {"value": "x"}).json()
    again = client.post("/transactions/publish", json=given | {"value": "x"}).json()
    beat = client.post(f"/producers/{who['producer_id']}/heartbeat", json={"epoch": 0})
    begun = client.post("/transactions/begin", json={"producer_id": who["producer_id"], "epoch": 0})

    assert (first["duplicate"], again["duplicate"], again["offset"]) == (False, True, 0)
    assert beat.json() == {"status": "ok", "success": True}
    assert (begun.status_code, begun.json()["code"]) == (404, "producer_not_found")
    assert seen(client) == ["x"]


def test_a_delayed_and_prioritised_message_is_part_of_the_transaction(
    writer: Writer, client: httpx.Client
) -> None:
    writer.begin()
    writer.put("first", partition=0, priority="critical")
    later = writer.put("later", partition=0, priority="low", delay="1h").json()
    number = later.pop("offset")
    at = later.pop("deliverAt")
    assert later == {"partition": 0, "duplicate": False, "delayed": True}
    assert client.delete(f"/topics/orders/delayed/0/{number}").status_code == 404
    stats = client.get("/delay/stats").json()
    assert (stats["pending_count"], stats["in_transactions"]) == (0, 1)

    writer.ask("commit")

    [waiting] = client.get("/topics/orders/delayed").json()["messages"]
    assert (waiting["offset"], waiting["deliver_at"], waiting["priority"]) == (number, at, "low")
    [message] = client.get("/topics/orders/partitions/0/messages").json()["messages"]
    assert (message["value"], message["priority"]) == ("first", "critical")


def test_a_delayed_message_goes_with_an_abort(writer: Writer, client: httpx.Client) -> None:
    writer.begin()
    writer.put("never", partition=0, deliverAt="2099-01-01T00:00:00Z")
    writer.ask("abort")

    stats = client.get("/delay/stats").json()
    assert (stats["pending_count"], stats["in_transactions"], stats["cancelled_count"]) == (0, 0, 1)


def test_lag_ends_where_an_open_transaction_begins_and_tells_of_it(
    writer: Writer, client: httpx.Client
) -> None:
    client.post("/groups/readers/join", json={"topics": ["orders"], "client_id": "c"})
    client.post("/topics/orders/messages", json={"messages": [{"value": "x", "partition": 0}] * 2})
    name = writer.begin()
    writer.put("open", partition=0)
    client.post("/topics/orders/messages", json={"messages": [{"value": "behind", "partition": 0}]})

    held, free, _ = client.get("/groups/readers/lag").json()["partitions"]
    writer.ask("commit")
    after = client.get("/groups/readers/lag").json()["partitions"][0]

    opened = held["held_back_by"]
    assert (held["end_offset"], held["lag"], opened["first_offset"]) == (2, 2, 2)
    assert (opened["transaction_id"], opened["transactional_id"]) == (name, "writer")
    assert (opened["producer_id"], opened["epoch"]) == (writer.who["producer_id"], writer.who["epoch"])
    assert opened["open_seconds"] >= 0
    assert "held_back_by" not in free
    assert "held_back_by" not in after
    assert (after["end_offset"], after["lag"]) == (5, 5)


def test_a_fenced_producer_is_refused_everywhere(writer: Writer, client: httpx.Client) -> None:
    writer.begin()
    writer.put("open", partition=0)
    successor = Writer(client)

    assert successor.who["epoch"] == writer.who["epoch"] + 1
    refused = [writer.ask("begin"), writer.put("late"), writer.ask("commit")]
    refused.append(
        client.post(f"/producers/{writer.who['producer_id']}/heartbeat", json={"epoch": writer.who["epoch"]})
    )
    assert [(reply.status_code, reply.json()["code"]) for reply in refused] == [(409, "producer_fenced")] * 4
    assert seen(client) == []


def test_one_transaction_at_a_time_and_none_to_end_twice(writer: Writer) -> None:
    writer.begin()
    assert (writer.ask("begin").status_code, writer.ask("abort").status_code) == (409, 200)
    assert writer.ask("abort").status_code == 200  # the same again after a lost reply
    refused = writer.ask("commit")
    assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transaction_state")
    unknown = writer.client.post("/transactions/begin", json={"producer_id": 999_999, "epoch": 0})
    assert unknown.status_code == 404


def test_offsets_of_a_group_move_with_the_commit(writer: Writer, client: httpx.Client) -> None:
    client.post("/topics/orders/messages", json={"messages": [{"value": "x", "partition": 0}] * 3})
    for end, offset in (("abort", 2), ("commit", 3)):
        writer.begin()
        added = writer.ask("add-offsets", group="readers", offsets={"orders": {"0": offset}})
        assert (added.status_code, added.json()) == (200, {"status": "added"})
        writer.ask(end)

    assert client.get("/groups/readers/offsets").json()["offsets"] == {"orders": {"0": 3}}


class Consumer:
    """A member of a queue group."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        joined = client.post("/groups/workers/join", json={"topics": ["orders"], "client_id": "c"})
        self._member_id = joined.json()["member_id"]

    def poll(self) -> list[str]:
        """The receipts of what it gets."""
        polled = self._client.get("/groups/workers/poll", params={"member_id": self._member_id})
        assert polled.status_code == 200, polled.text
        return [message["receipt_handle"] for message in polled.json()["messages"]]


def test_an_acknowledgement_is_part_of_the_transaction(writer: Writer, client: httpx.Client) -> None:
    client.post("/topics/orders/messages", json={"messages": [{"value": "job", "partition": 0}]})
    receipts = Consumer(client).poll()
    writer.begin()
    writer.put("done", partition=1)
    added = writer.ask("add-offsets", receipt_handles=receipts)
    assert added.status_code == 200, added.text
    writer.ask("commit")

    assert seen(client, 1) == ["done"]
    assert client.get("/groups/workers/offsets").json()["offsets"]["orders"]["0"] == 1
    assert writer.ask("add-offsets", receipt_handles=["nonsense"]).status_code == 400


def test_a_commit_without_the_message_it_has_consumed_is_refused(
    writer: Writer, client: httpx.Client
) -> None:
    client.post("/topics/orders/messages", json={"messages": [{"value": "job", "partition": 0}]})
    consumer = Consumer(client)
    receipts = consumer.poll()
    writer.begin()
    writer.put("done", partition=1)
    writer.ask("add-offsets", receipt_handles=receipts)
    client.post("/messages/nack", json={"receipt_handle": receipts[0], "delay": "0s"})

    refused = writer.ask("commit")
    writer.ask("abort")

    assert (refused.status_code, refused.json()["code"]) == (409, "lease_lost")
    assert seen(client, 1) == []
    assert len(consumer.poll()) == 1


def test_people_see_what_is_open_and_can_end_it(writer: Writer, client: httpx.Client) -> None:
    name = writer.begin()
    writer.put("open", partition=0)

    listed = client.get("/transactions").json()
    stats = client.get("/transactions/stats").json()

    [row] = listed["transactions"]
    assert (listed["count"], row["transaction_id"], row["state"]) == (1, name, "ongoing")
    assert row["partitions"] == [{"topic": "orders", "partition": 0}]
    assert row["start_time"] == row["started_at"]
    assert (stats["ActiveTransactions"], stats["active_transactions"]) == (1, 1)
    assert stats["TransactionsByState"] == {"1": 1}
    assert [open_one["transaction_id"] for open_one in stats["longest_open"]] == [name]

    aborted = client.post(f"/transactions/{name}/abort")
    assert (aborted.status_code, aborted.json()["state"]) == (200, "completed_abort")
    assert client.post(f"/transactions/{name}/abort").status_code == 409
    assert client.post("/transactions/no-such/abort").status_code == 404
    assert writer.ask("commit").status_code == 409
    assert client.get("/transactions").json() == {"transactions": [], "count": 0}
    [ended] = client.get("/transactions", params={"state": "all"}).json()["transactions"]
    assert (ended["transaction_id"], ended["state"]) == (name, "completed_abort")
    assert client.get("/transactions", params={"state": "some"}).status_code == 400
    after = client.get("/transactions/stats").json()
    assert re.fullmatch(r"[0-9.]+m?s", after["avg_duration"])
    assert (after["active_transactions"], after["committed_total"], after["aborted_total"]) == (0, 0, 1)


def test_a_time_out_above_the_limit_is_refused(client: httpx.Client) -> None:
    given = {"transactional_id": "slow", "transaction_timeout_ms": 900_001}

    reply = client.post("/producers/init", json=given)

    assert (reply.status_code, reply.json()["code"]) == (400, "invalid_transaction_timeout")


def test_the_same_routes_are_served_under_a_version(running: RunningDoor) -> None:
    assert running.client.get("/v1/transactions").json() == {"transactions": [], "count": 0}
