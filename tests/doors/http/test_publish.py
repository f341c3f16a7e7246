"""Publish through the HTTP door. A trailing slash takes the framework's route instead of the fast one."""

import base64
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from goqueue.edge.http.config import HttpConfig
from tests.doors.http.running_door import RunningDoor

BOTH_LANES = pytest.mark.parametrize("path", ["/topics/orders/messages", "/v1/topics/orders/messages/"])


def publish(
    client: httpx.Client, *messages: Mapping[str, object], **fields: object
) -> list[dict[str, object]]:
    published = client.post("/topics/orders/messages", json={"messages": messages, **fields})
    assert published.status_code == 200, published.text
    results = published.json()["results"]
    assert isinstance(results, list)
    return results


def read(client: httpx.Client, partition: int, **parameters: str) -> list[dict[str, object]]:
    found = client.get(f"/topics/orders/partitions/{partition}/messages", params=parameters)
    assert found.status_code == 200, found.text
    messages = found.json()["messages"]
    assert isinstance(messages, list)
    return messages


@BOTH_LANES
def test_each_message_is_answered_with_its_place(client: httpx.Client, orders: str, path: str) -> None:
    messages = [
        {"value": "a", "partition": 1},
        {"value": "b", "partition": 1},
        {"value": "c", "partition": 2},
    ]

    published = client.post(path, json={"messages": messages})

    assert published.status_code == 200
    assert published.json() == {
        "results": [
            {"partition": 1, "offset": 0, "priority": "normal"},
            {"partition": 1, "offset": 1, "priority": "normal"},
            {"partition": 2, "offset": 0, "priority": "normal"},
        ]
    }


def test_keyless_messages_visit_every_partition(client: httpx.Client, orders: str) -> None:
    results = publish(client, *[{"value": str(number)} for number in range(6)])

    assert sorted(result["partition"] for result in results) == [0, 0, 1, 1, 2, 2]  # type: ignore[type-var]


def test_keyless_messages_of_single_requests_visit_every_partition(client: httpx.Client, orders: str) -> None:
    visited = {publish(client, {"value": "x", "key": ""})[0]["partition"] for _ in range(3)}

    assert visited == {0, 1, 2}


def test_messages_with_one_key_share_a_partition(client: httpx.Client, orders: str) -> None:
    results = publish(client, *[{"value": str(number), "key": "customer-7"} for number in range(9)])

    assert len({result["partition"] for result in results}) == 1
    assert [result["offset"] for result in results] == list(range(9))


@pytest.mark.parametrize("priority", ["critical", "High", "NORMAL", "low", "backGround"])
def test_priority_is_understood_in_any_letter_case(client: httpx.Client, orders: str, priority: str) -> None:
    result = publish(client, {"value": "x", "partition": 0, "priority": priority})[0]

    assert result["priority"] == priority.lower()
    assert read(client, 0)[0]["priority"] == priority.lower()


def test_null_stands_for_an_absent_field(client: httpx.Client, orders: str) -> None:
    message = dict.fromkeys(["key", "partition", "priority", "headers", "encoding", "delay", "deliverAt"])

    results = publish(client, {"value": "x", **message}, acks=None, encoding=None)

    assert results == [{"partition": 0, "offset": 0, "priority": "normal"}]


@BOTH_LANES
@pytest.mark.parametrize("encoding", ["text", "base64"])
def test_a_null_value_is_a_message_without_one(
    client: httpx.Client, orders: str, path: str, encoding: str
) -> None:
    """In a compacted topic such a message ends its key; so do those of Kafka's producers."""
    body = {"messages": [{"key": "a2V5", "value": None, "partition": 0}, {"value": "", "partition": 0}]}

    published = client.post(path, json=body | {"encoding": encoding})

    assert [result.get("error") for result in published.json()["results"]] == [None, None]
    assert [message["value"] for message in read(client, 0)] == [None, ""]


@pytest.mark.parametrize("said", [{"key": "k"}, {"key": ""}, {"key": None}, {}])
def test_a_message_that_says_little_is_stored_like_one_that_says_more(
    client: httpx.Client, orders: str, said: dict[str, str | None]
) -> None:
    [little] = publish(client, {"value": "v", **said}, acks="leader")
    [more] = publish(client, {"value": "v", **said, "partition": little["partition"], "comment": "ignored"})

    assert (more["partition"], more["priority"]) == (little["partition"], little["priority"])
    first, second = read(client, int(str(little["partition"])))
    for message in (first, second):
        del message["offset"], message["timestamp"]
    assert first == second


def test_headers_are_kept(client: httpx.Client, orders: str) -> None:
    publish(client, {"value": "x", "partition": 0, "headers": {"trace": "ü", "empty": "", "none": None}})

    assert read(client, 0)[0]["headers"] == {"trace": "ü", "empty": "", "none": None}


def test_any_text_comes_back_as_it_was(client: httpx.Client, orders: str) -> None:
    value = 'plain "quoted" \\ \n\t\x00 é 漢 😀'

    publish(client, {"value": value, "key": value, "partition": 0}, {"value": "", "partition": 0})

    first, second = read(client, 0)
    assert (first["value"], first["key"]) == (value, value)
    assert (second["value"], "key" in second) == ("", False)


@pytest.mark.parametrize("scope", ["message", "request"])
def test_bytes_come_in_as_base64(client: httpx.Client, orders: str, scope: str) -> None:
    value, key = b"\xff\x00binary", b"\xfe"
    message: dict[str, object] = {
        "value": base64.b64encode(value).decode(),
        "key": base64.b64encode(key).decode(),
        "partition": 0,
    }
    if scope == "message":
        publish(client, {**message, "encoding": "base64"})
    else:
        publish(client, message, {"value": "text", "partition": 0, "encoding": "text"}, encoding="base64")

    shown = read(client, 0)
    assert shown[0]["encoding"] == "base64"
    assert base64.b64decode(str(shown[0]["value"])) == value
    assert base64.b64decode(str(shown[0]["key"])) == key
    assert scope == "message" or shown[1]["value"] == "text"


def test_what_is_wrong_with_one_message_is_told_in_its_place(client: httpx.Client, orders: str) -> None:
    results = publish(
        client,
        {"value": "first", "partition": 0},
        {"value": "x", "partition": 99},
        {"value": "x", "partition": -1},
        {"value": "x", "priority": "urgent"},
        {"value": "%%%", "encoding": "base64"},
        {"value": "x", "encoding": "rot13"},
        {"value": "x", "delay": "tomorrow"},
        {"value": "x", "deliverAt": "2026-13-01T00:00:00Z"},
        {"key": "a message without a word of its value"},
        {"value": "x", "deliverAt": "2999-01-01T00:00:00Z"},
        {"value": "last", "partition": 0},
    )

    assert [result.get("code") for result in results] == [
        None,
        "partition_not_found",
        "partition_not_found",
        *["invalid"] * 6,
        "invalid_timestamp",
        None,
    ]
    for result in results[1:-1]:
        assert (result["partition"], result["offset"]) == (-1, -1)
        assert result["error"]
    assert [message["value"] for message in read(client, 0)] == ["first", "last"]


@pytest.mark.parametrize(
    "due", [{"delay": "0"}, {"delay": "-5s"}, {"delay": ""}, {"deliverAt": "2001-01-01T00:00:00+02:00"}]
)
def test_a_message_that_is_due_already_is_published_now(
    client: httpx.Client, orders: str, due: dict[str, object]
) -> None:
    assert publish(client, {"value": "x", "partition": 0, **due})[0]["offset"] == 0


@BOTH_LANES
@pytest.mark.parametrize("acks", ["none", "leader", "all"])
def test_acks_may_stand_in_the_query_or_in_the_body(
    client: httpx.Client, orders: str, path: str, acks: str
) -> None:
    message = {"value": "x", "partition": 0}

    by_query = client.post(path, params={"acks": acks}, json={"messages": [message]})
    by_body = client.post(path, json={"messages": [message], "acks": acks})

    assert by_query.json()["results"][0]["offset"] == 0
    assert by_body.json()["results"][0]["offset"] == 1


@BOTH_LANES
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"null",
        b"{}",
        b'{"messages": []}',
        b'{"messages": null}',
        b'{"messages": [{"value": 7}]}',
        b'{"messages": [{"value": "\\ud800"}]}',
        b'{"messages": [{"value": "\xff"}]}',
        b'{"messages": [{"value": "x", "partition": "0"}]}',
        b'{"messages": [{"value": "x", "partition": 4294967296}]}',
        b'{"messages": [{"value": "x"}], "acks": "some"}',
        b'{"messages": [{"value": "x"}]} {',
    ],
)
def test_a_body_that_cannot_be_read_is_refused_whole(
    client: httpx.Client, orders: str, path: str, body: bytes
) -> None:
    refused = client.post(path, content=body)

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")
    assert client.get("/topics/orders").json()["total_messages"] == 0


@BOTH_LANES
def test_unknown_acks_are_refused(client: httpx.Client, orders: str, path: str) -> None:
    refused = client.post(path, params={"acks": "some"}, json={"messages": [{"value": "x"}]})

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize("message", [{"value": "x"}, {"value": "x", "priority": "wrong"}])
def test_publishing_does_not_create_a_topic(client: httpx.Client, message: dict[str, str]) -> None:
    refused = client.post("/topics/nothing/messages", json={"messages": [message]})

    assert (refused.status_code, refused.json()["code"]) == (404, "topic_not_found")


def test_topics_of_the_broker_cannot_be_written(client: httpx.Client) -> None:
    refused = client.post("/topics/__metadata/messages", json={"messages": [{"value": "x"}]})

    assert (refused.status_code, refused.json()["code"]) == (403, "internal_topic")


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("path", ["/topics/orders/messages", "/topics/orders/messages/", "/topics"])
def test_a_body_over_the_limit_is_refused(tmp_path: Path, path: str, chunked: bool) -> None:
    body = b'{"messages": [{"value": "%s"}]}' % (b"x" * 4_000)
    with RunningDoor(tmp_path, HttpConfig(json_bytes=1_000)) as running:
        running.client.post("/topics", json={"name": "orders"})

        refused = running.client.post(path, content=iter([body[:500], body[500:]]) if chunked else body)

    assert (refused.status_code, refused.json()["code"]) == (413, "request_too_large")


def test_a_large_body_within_the_limit_is_taken(client: httpx.Client, orders: str) -> None:
    value = "x" * 3_000_000

    publish(client, {"value": value, "partition": 0})

    assert read(client, 0)[0]["value"] == value


def test_a_request_with_too_many_messages_is_refused(tmp_path: Path) -> None:
    with RunningDoor(tmp_path, HttpConfig(messages_per_request=3)) as running:
        running.client.post("/topics", json={"name": "orders"})

        refused = running.client.post("/topics/orders/messages", json={"messages": [{"value": "x"}] * 4})

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")


@BOTH_LANES
def test_messages_of_a_request_that_is_part_of_a_trace_are_part_of_it(
    client: httpx.Client, orders: str, path: str
) -> None:
    own = "00-11111111111111111111111111111111-2222222222222222-01"
    given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    messages = [
        {"value": "a", "partition": 0},
        {"value": "b", "partition": 0, "headers": {"traceparent": own}},
    ]
    for traceparent in (given, "nonsense"):
        client.post(path, json={"messages": messages}, headers={"traceparent": traceparent})

    found = client.get("/topics/orders/partitions/0/messages").json()["messages"]
    assert [one.get("headers", {}).get("traceparent") for one in found] == [given, own, None, own]
