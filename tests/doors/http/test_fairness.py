"""One client must not spoil it for all: no request holds the loop for longer than the rule allows."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from goqueue.broker.read import read as broker_read
from goqueue.broker.write.publish import publish as publish_verb
from goqueue.edge.http.transport.shares import SHARE_BYTES
from goqueue.model.commands import Publish
from goqueue.model.ids import TopicName
from goqueue.model.messages import Acks, Message
from goqueue.testing.world.holds import HOLD_MS_MAX
from tests.doors.http.running_door import RunningDoor

pytestmark = pytest.mark.slow
MB = 1_000_000
BULK = "/topics/bulk/partitions/0"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    """A broker with a topic of 50 MB: 10,000 small messages, then large ones."""
    with RunningDoor(Path(tmp_path_factory.mktemp("fairness"))) as door:
        door.client.post("/topics", json={"name": "bulk", "num_partitions": 1})
        for _ in range(10):
            publish(door.client, ["x" * 100] * 1000)
        for _ in range(49):
            publish(door.client, ["y" * MB])
        publish(door.client, ["y" * MB], acks="all")  # readers are shown all of it from here on
        yield door


def publish(client: httpx.Client, values: list[str], topic: str = "bulk", acks: str = "leader") -> None:
    body = json.dumps({"messages": [{"value": value} for value in values]})
    reply = client.post(f"/topics/{topic}/messages", params={"acks": acks}, content=body)
    assert reply.status_code == 200, reply.text


def fill_with_crumbs(door: RunningDoor) -> None:
    """30,000 messages, each stored for itself: so many frames, so many events."""

    async def fill() -> None:
        one = Publish(topic=TopicName("crumbs"), messages=[Message(b"x")], acks=Acks.NONE)
        for _ in range(4_999):
            await publish_verb(door.broker, one)
        await publish_verb(door.broker, replace(one, acks=Acks.ALL))

    if door.client.post("/topics", json={"name": "crumbs", "num_partitions": 1}).status_code == 201:
        for _ in range(6):
            door.run(fill())


def test_a_bulk_read_of_frames_leaves_the_loop_to_others(door: RunningDoor) -> None:
    def read() -> None:
        reply = door.client.get(f"{BULK}/frames", params={"max_bytes": 60 * MB})
        assert len(reply.content) > 50 * MB

    assert door.longest_hold(read) < HOLD_MS_MAX


def test_a_bulk_read_gives_what_was_asked_for_up_to_one_share(door: RunningDoor) -> None:
    for asked in (1, 3 * MB, 20 * MB):
        size = len(door.client.get(f"{BULK}/frames", params={"max_bytes": asked, "offset": 10_000}).content)

        assert max(asked - broker_read.SHARE_BYTES - MB, 1) <= size <= max(asked, 2 * MB)


def test_frames_read_in_shares_are_those_of_the_log(door: RunningDoor) -> None:
    whole = door.client.get(f"{BULK}/frames", params={"max_bytes": 60 * MB}).content
    parts, offset = b"", 0
    while offset < 10_050:
        reply = door.client.get(f"{BULK}/frames", params={"max_bytes": MB // 2, "offset": offset})
        parts += reply.content
        offset = int(reply.headers["x-goqueue-next-offset"])

    assert len(whole) > 100 * SHARE_BYTES
    assert parts == whole


def test_neither_do_very_many_very_small_frames_hold_the_loop(door: RunningDoor) -> None:
    fill_with_crumbs(door)

    def read() -> None:
        reply = door.client.get("/topics/crumbs/partitions/0/frames", params={"max_bytes": 50 * MB})
        assert reply.headers["x-goqueue-next-offset"] == "30000"

    assert door.longest_hold(read) < HOLD_MS_MAX


def test_a_publish_of_ten_thousand_messages_is_taken_in_by_pieces(door: RunningDoor) -> None:
    door.client.post("/topics", json={"name": "many", "num_partitions": 3})
    body = json.dumps({"messages": [{"key": f"key-{n}", "value": "x" * 100} for n in range(10_000)]})

    def publish_all() -> None:
        reply = door.client.post("/topics/many/messages", content=body)
        assert len(reply.json()["results"]) == 10_000

    assert door.longest_hold(publish_all) < 12


def test_pieces_keep_the_order_of_a_publish(door: RunningDoor) -> None:
    door.client.post("/topics", json={"name": "ordered", "num_partitions": 2})
    messages = [
        {"value": str(n), "partition": n % 3} for n in range(2_500)
    ]  # every third names none there is

    results = door.client.post("/topics/ordered/messages", json={"messages": messages}).json()["results"]

    assert [result["partition"] for result in results] == [-1 if n % 3 == 2 else n % 3 for n in range(2_500)]
    stored = [result["offset"] for result in results if result["partition"] == 1]
    assert stored == list(range(len(stored)))
    last = door.client.get("/topics/ordered/partitions/1/messages", params={"offset": stored[-1]}).json()
    assert last["messages"][0]["value"] == "2497"


@pytest.mark.parametrize(
    ("one", "count"), [("{}", 349_000), ('{"value":""}', 320_000), ('{"value":""}', 1_000_000)]
)
def test_a_body_of_too_many_parts_is_refused_unread(door: RunningDoor, one: str, count: int) -> None:
    body = '{"messages":[' + ",".join([one] * count) + "]}"

    def publish_all() -> None:
        refused = door.client.post("/topics/bulk/messages", content=body)
        assert (refused.status_code, refused.json()["code"]) == (413, "request_too_large")

    assert door.longest_hold(publish_all) < HOLD_MS_MAX


def test_a_large_value_may_hold_what_it_likes_up_to_a_mebibyte(door: RunningDoor) -> None:
    value = "[" + "1," * 400_000 + "1]"

    publish(door.client, [value], topic="bulk")


def test_a_read_of_a_thousand_messages_opens_and_writes_them_in_slices(door: RunningDoor) -> None:
    def read() -> None:
        reply = door.client.get(f"{BULK}/messages", params={"limit": 1000})
        assert (len(reply.json()["messages"]), reply.json()["next_offset"]) == (1000, 1000)

    assert door.longest_hold(read) < 8


def test_a_read_of_large_messages_is_cut_and_tells_where_to_go_on(door: RunningDoor) -> None:
    params = {"offset": 10_000, "limit": 1000, "max_bytes": 64 * MB}
    found: list[int] = []
    while params["offset"] < 10_050:
        reply = door.client.get(f"{BULK}/messages", params=params)
        assert len(reply.content) < 5 * MB
        found += [message["offset"] for message in reply.json()["messages"]]
        params["offset"] = reply.json()["next_offset"]

    assert found[:50] == list(range(10_000, 10_050))
    assert door.longest_hold(lambda: door.client.get(f"{BULK}/messages", params=params)) < HOLD_MS_MAX


@pytest.mark.parametrize(
    "path",
    [
        "/traces?limit=1000",
        "/traces/search?limit=1000&topic=crumbs",
        "/traces/search?limit=1000&status=failed",
        "/traces/search?limit=1000&status=completed",
        "/traces/search?consumer_group=nobody",
        "/traces/stats",
    ],
)
def test_looking_through_all_events_leaves_the_loop_to_others(door: RunningDoor, path: str) -> None:
    fill_with_crumbs(door)

    assert door.longest_hold(lambda: door.client.get(path).raise_for_status()) < HOLD_MS_MAX


def test_what_is_told_of_every_partition_is_told_in_slices(door: RunningDoor) -> None:
    made = door.client.post("/topics", json={"name": "wide", "num_partitions": 4_000}, timeout=60)
    assert made.status_code == 201
    messages = [{"value": "x", "partition": number} for number in range(4_000)]
    door.client.post("/topics/wide/messages", json={"messages": messages}).raise_for_status()

    for path in ("/priority/stats", "/topics/wide", "/topics/wide/partitions", "/stats"):
        hold_ms = door.longest_hold(lambda path=path: door.client.get(path).raise_for_status())  # type: ignore[misc]
        assert hold_ms < HOLD_MS_MAX, path


def test_receipts_that_are_no_good_do_not_hold_the_loop_however_many(door: RunningDoor) -> None:
    handles = [f"bulk:0:{number}:1:0123456789abcdef" for number in range(60_000)]

    def ack(count: int) -> int:
        return door.client.post("/messages/ack", json={"receipt_handles": handles[:count]}).status_code

    assert (ack(5_000), ack(60_000)) == (200, 400)
    assert door.longest_hold(lambda: ack(60_000)) < HOLD_MS_MAX
    assert door.longest_hold(lambda: ack(5_000)) < HOLD_MS_MAX
