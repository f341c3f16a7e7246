"""Reading messages of a partition through the HTTP door."""

import base64
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from goqueue.broker.topics.verbs import delete_records
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.topics import DeleteRecords
from tests.doors.http.running_door import RunningDoor

PATH = "/topics/orders/partitions/0/messages"


def store(running: RunningDoor, *messages: Message) -> None:
    """Put messages into partition 0 that JSON could not carry."""
    placed = [message._replace(partition=0) for message in messages]
    running.run(publish(running.broker, Publish(topic=TopicName("orders"), messages=placed)))


def store_numbers(client: httpx.Client, count: int) -> None:
    messages = [{"value": str(number), "partition": 0} for number in range(count)]
    assert client.post("/topics/orders/messages", json={"messages": messages}).status_code == 200


def test_messages_come_in_log_order_whatever_their_priority(client: httpx.Client, orders: str) -> None:
    lanes = ["low", "critical", "normal", "background", "high"]
    client.post(
        "/topics/orders/messages",
        json={"messages": [{"value": lane, "priority": lane, "partition": 0} for lane in lanes]},
    )

    found = client.get(PATH).json()

    assert [message["offset"] for message in found["messages"]] == [0, 1, 2, 3, 4]
    assert [message["value"] for message in found["messages"]] == lanes
    assert found["next_offset"] == 5


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", range(100)),
        ("?limit=3", range(3)),
        ("?offset=1195", range(1195, 1200)),
        ("?offset=10&limit=2", range(10, 12)),
        ("?limit=5000", range(1000)),
        ("?max_bytes=1", range(1)),
    ],
)
def test_offset_and_limit_choose_what_is_read(
    client: httpx.Client, orders: str, query: str, numbers: range
) -> None:
    store_numbers(client, 1200)

    found = client.get(PATH + query).json()

    assert [message["value"] for message in found["messages"]] == [str(number) for number in numbers]
    assert found["next_offset"] == numbers.stop


def test_next_offset_leads_through_the_whole_log(client: httpx.Client, orders: str) -> None:
    store_numbers(client, 250)
    seen: list[str] = []
    offset = 0

    while (found := client.get(PATH, params={"offset": offset, "limit": 70}).json())["messages"]:
        seen += [message["value"] for message in found["messages"]]
        offset = found["next_offset"]

    assert seen == [str(number) for number in range(250)]


@pytest.mark.parametrize("query", ["limit=null", "max_bytes=null", "max_bytes=null&max_bytes=null"])
def test_the_word_null_is_no_number(client: httpx.Client, orders: str, query: str) -> None:
    for path in (PATH, PATH.replace("/messages", "/frames"), "/groups/readers/poll"):
        if "limit" not in query or "frames" not in path:
            assert client.get(f"{path}?member_id=m&{query}").status_code == 400, path


@pytest.mark.parametrize("offset", [3, 4, 1_000_000, 2**63 - 1])
def test_behind_the_end_there_is_nothing_and_the_offset_stays(
    client: httpx.Client, orders: str, offset: int
) -> None:
    store_numbers(client, 3)

    found = client.get(PATH, params={"offset": offset})

    assert (found.status_code, found.json()) == (200, {"messages": [], "next_offset": offset})


def test_before_the_start_of_the_log_reading_begins_at_its_start(running: RunningDoor, orders: str) -> None:
    store_numbers(running.client, 5)
    running.run(
        delete_records(
            running.broker, DeleteRecords(target=TopicPartition(TopicName(orders), 0), before_offset=3)
        )
    )

    found = running.client.get(PATH).json()

    assert [message["offset"] for message in found["messages"]] == [3, 4]
    assert running.client.get("/topics/orders").json()["partition_offsets"]["0"] == {
        "earliest": 3,
        "latest": 4,
    }


def test_reading_can_start_at_a_time(running: RunningDoor, orders: str) -> None:
    store(running, *[Message(b"%d" % second, timestamp_ms=second * 1000) for second in range(5)])

    def values(from_time: str) -> list[str]:
        found = running.client.get(PATH, params={"from_time": from_time}).json()
        return [message["value"] for message in found["messages"]]

    assert values("3000") == ["3", "4"]
    assert values("1970-01-01T00:00:03Z") == ["3", "4"]
    assert values("1970-01-01T02:00:02.500+02:00") == ["3", "4"]
    assert values("0") == ["0", "1", "2", "3", "4"]
    assert values("2999-01-01T00:00:00Z") == []


def test_a_message_tells_its_time_in_utc(running: RunningDoor, orders: str) -> None:
    store(running, Message(b"x", timestamp_ms=1_769_860_800_250))

    assert running.client.get(PATH).json()["messages"][0]["timestamp"] == "2026-01-31T12:00:00.250Z"


def test_bytes_that_are_not_text_come_as_base64_and_the_others_as_text(
    running: RunningDoor, orders: str
) -> None:
    store(
        running, Message(b"\xff\xfe", key=b"key"), Message(b"text", key=b"\x80"), Message(b"text", key=b"key")
    )

    first, second, third = running.client.get(PATH).json()["messages"]

    assert (first["value"], first["key"], first["encoding"]) == ("//4=", "a2V5", "base64")
    assert (second["value"], second["key"], second["encoding"]) == ("dGV4dA==", "gA==", "base64")
    assert (third["value"], third["key"], "encoding" in third) == ("text", "key", False)


def test_base64_can_be_asked_for(client: httpx.Client, orders: str) -> None:
    store_numbers(client, 1)

    message = client.get(PATH, params={"encoding": "base64"}).json()["messages"][0]

    assert (base64.b64decode(message["value"]), message["encoding"]) == (b"0", "base64")


def test_a_message_without_a_value_shows_null(running: RunningDoor, orders: str) -> None:
    store(running, Message(None, key=b"gone"))

    message = running.client.get(PATH).json()["messages"][0]

    assert (message["value"], message["key"]) == (None, "gone")


def test_repeated_and_binary_headers_are_listed_exactly(running: RunningDoor, orders: str) -> None:
    headers = (("a", b"1"), ("a", b"2"), ("raw", b"\xff"), ("none", None))
    store(running, Message(b"x", headers=headers))

    message = running.client.get(PATH).json()["messages"][0]

    assert message["headers"] == {"a": "2", "none": None}
    assert message["header_list"] == [
        {"name": "a", "value": "1"},
        {"name": "a", "value": "2"},
        {"name": "raw", "value": "/w==", "encoding": "base64"},
        {"name": "none", "value": None},
    ]


@pytest.mark.parametrize(
    "query",
    [
        "offset=-1",
        "offset=x",
        "offset=9223372036854775808",
        "limit=0",
        "limit=-5",
        "limit=many",
        "max_bytes=0",
        "wait=soon",
        "wait=5",
        "wait=" + "9" * 5_000 + "s",
        "from_time=yesterday",
        "from_time=2026-02-30T00:00:00Z",
        "encoding=hex",
    ],
)
def test_parameters_that_make_no_sense_are_refused(client: httpx.Client, orders: str, query: str) -> None:
    refused = client.get(f"{PATH}?{query}")

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    ("partition", "status", "code"),
    [("3", 404, "partition_not_found"), ("x", 400, "invalid"), ("-1", 400, "invalid")],
)
def test_a_partition_must_exist(
    client: httpx.Client, orders: str, partition: str, status: int, code: str
) -> None:
    refused = client.get(f"/topics/orders/partitions/{partition}/messages")

    assert (refused.status_code, refused.json()["code"]) == (status, code)


def test_a_long_poll_is_answered_when_a_message_comes(running: RunningDoor, orders: str) -> None:
    found: list[httpx.Response] = []
    poll = threading.Thread(target=lambda: found.append(httpx.get(f"{running.url}{PATH}?wait=20s")))
    poll.start()
    wait_for_a_poll(running)

    store_numbers(running.client, 1)
    poll.join(timeout=10)

    assert [message["value"] for message in found[0].json()["messages"]] == ["0"]


def test_a_long_poll_with_nothing_to_give_ends_empty(client: httpx.Client, orders: str) -> None:
    found = client.get(PATH, params={"wait": "20ms"})

    assert (found.status_code, found.json()) == (200, {"messages": [], "next_offset": 0})


def test_closing_the_door_answers_long_polls_at_once(tmp_path: Path) -> None:
    with RunningDoor(tmp_path) as running:
        running.client.post("/topics", json={"name": "orders"})
        found: list[httpx.Response] = []
        url = f"{running.url}{PATH}?wait=30s"
        poll = threading.Thread(target=lambda: found.append(httpx.get(url, timeout=30)))
        poll.start()
        wait_for_a_poll(running)

        running.run(running.door.stop())
        poll.join(timeout=5)

    assert (found[0].status_code, found[0].json()) == (200, {"messages": [], "next_offset": 0})


def test_a_client_that_hangs_up_leaves_no_long_poll_behind(running: RunningDoor, orders: str) -> None:
    with socket.create_connection(("127.0.0.1", running.port)) as connection:
        connection.sendall(f"GET {PATH}?wait=30s HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
        wait_for_a_poll(running)

    wait_until(running, lambda: not running.broker.waiting_reads)


def wait_for_a_poll(running: RunningDoor) -> None:
    """Return when a read is waiting inside the broker."""
    wait_until(running, lambda: bool(running.broker.waiting_reads))


def wait_until(running: RunningDoor, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        running.run(no_work())


async def no_work() -> None:
    """One turn of the loop."""
