"""Traces over HTTP: a message's story by id and by place, lists, searches and counts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest

from goqueue.model.settings import BrokerConfig, TopicSettings
from goqueue.model.telemetry import ExportStatus
from tests.doors.http.running_door import RunningDoor

Json = dict[str, Any]
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
OTHER_ID = "0af7651916cd43dd8448eb211c80319c"
PRODUCER_SPAN_ID = "00f067aa0ba902b7"
_numbers = count()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def topic(client: httpx.Client) -> str:
    """A topic with one partition, of this test alone."""
    name = f"orders{next(_numbers)}"
    assert client.post("/topics", json={"name": name, "num_partitions": 1}).status_code == 201
    return name


def publish(client: httpx.Client, topic: str, *messages: Json) -> None:
    reply = client.post(f"/topics/{topic}/messages", json={"messages": list(messages)})
    assert all("error" not in result for result in reply.json()["results"]), reply.text


def poll(client: httpx.Client, topic: str, group: str = "workers") -> list[Json]:
    """Take all there is as a new member of the topic's group."""
    group = f"{group}-{topic}"
    joined = client.post(f"/groups/{group}/join", json={"client_id": "test", "topics": [topic]}).json()
    query = {"member_id": joined["member_id"], "timeout": "0s"}
    return list(client.get(f"/groups/{group}/poll", params=query).json()["messages"])


def story(client: httpx.Client, topic: str, offset: int = 0) -> Json:
    reply = client.get(f"/topics/{topic}/partitions/0/offsets/{offset}/trace")
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def stages(trace: Json) -> list[str]:
    return [span["event_type"] for span in trace["spans"]]


def test_a_message_tells_its_story_by_its_place(client: httpx.Client, topic: str) -> None:
    publish(client, topic, {"value": "a"})
    (message,) = poll(client, topic)
    client.post("/messages/ack", json={"receipt_handle": message["receipt_handle"]})

    trace = story(client, topic)

    assert (trace["topic"], trace["partition"], trace["offset"]) == (topic, 0, 0)
    assert trace["status"] == "completed"
    assert {"publish.received", "publish.persisted", "consume.fetched", "consume.acked"} <= set(stages(trace))
    assert trace["span_count"] == len(trace["spans"]) == len(trace["events"])
    fetched = next(span for span in trace["spans"] if span["event_type"] == "consume.fetched")
    assert fetched["consumer_group"] == f"workers-{topic}"
    assert fetched["parent_span_id"] == trace["spans"][0]["span_id"]


def test_events_tell_the_same_for_clients_that_look_for_them(client: httpx.Client, topic: str) -> None:
    publish(client, topic, {"value": "a"})

    trace = story(client, topic)

    for event, span in zip(trace["events"], trace["spans"], strict=True):
        assert event["event_type"] == event["type"] == span["event_type"]
        assert event["timestamp"] == span["timestamp"]
        place = {name: event["details"][name] for name in ("topic", "partition", "offset")}
        assert place == {"topic": topic, "partition": 0, "offset": 0}


def test_a_made_id_leads_to_the_same_story_in_either_letter_case(client: httpx.Client, topic: str) -> None:
    publish(client, topic, {"value": "a"}, {"value": "b"})
    by_place = story(client, topic, 1)
    trace_id = by_place["trace_id"]

    for path in (f"/traces/{trace_id}", f"/v1/traces/{trace_id.upper()}"):
        assert client.get(path).json() == by_place


def test_the_producers_traceparent_names_the_trace_and_the_parent(client: httpx.Client, topic: str) -> None:
    trace_id = f"{next(_numbers):032x}".replace("0", "a")
    headers = {"traceparent": f"00-{trace_id}-{PRODUCER_SPAN_ID}-01"}
    publish(client, topic, {"value": "a", "headers": headers})

    trace = client.get(f"/traces/{trace_id}").json()

    assert (trace["trace_id"], trace["topic"], trace["offset"]) == (trace_id, topic, 0)
    assert trace["spans"][0]["event_type"] == "publish.received"
    assert trace["spans"][0]["parent_span_id"] == PRODUCER_SPAN_ID


@pytest.mark.parametrize("own", ["garbage", f"00-{OTHER_ID.upper()}-{PRODUCER_SPAN_ID}-01", ""])
def test_a_consumer_is_given_a_trace_in_the_place_of_a_header_that_names_none(
    client: httpx.Client, topic: str, own: str
) -> None:
    publish(client, topic, {"value": "a", "headers": {"traceparent": own}})
    body = {"messages": [{"value": "b", "headers": {"traceparent": own}}]}
    asked = {"traceparent": f"00-{OTHER_ID}-{PRODUCER_SPAN_ID}-01"}
    client.post(f"/topics/{topic}/messages", json=body, headers=asked)

    first, second = poll(client, topic)

    assert first["headers"]["traceparent"].split("-")[1] == story(client, topic)["trace_id"]
    assert second["headers"]["traceparent"] == asked["traceparent"], "it is part of its request's trace"
    assert story(client, topic, 1)["trace_id"] == OTHER_ID


@pytest.mark.parametrize("trace_id", ["x", "12", "g" * 32, "a" * 31, "a" * 33, "٣" * 32])
def test_what_is_no_trace_id_is_refused(client: httpx.Client, trace_id: str) -> None:
    reply = client.get(f"/traces/{trace_id}")

    assert reply.status_code == 400
    assert "32 hexadecimal digits" in reply.json()["error"]


def test_an_unknown_trace_is_not_found(client: httpx.Client) -> None:
    assert client.get(f"/traces/{TRACE_ID}").status_code == 404


def test_an_offset_that_is_not_written_yet_is_told_as_such(client: httpx.Client, topic: str) -> None:
    publish(client, topic, {"value": "a"})

    reply = client.get(f"/topics/{topic}/partitions/0/offsets/1/trace")

    assert reply.status_code == 404
    assert "still to be written" in reply.json()["error"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/topics/nowhere/partitions/0/offsets/0/trace", 404),
        ("/topics/{topic}/partitions/7/offsets/0/trace", 404),
        ("/topics/{topic}/partitions/x/offsets/0/trace", 400),
        ("/topics/{topic}/partitions/0/offsets/-1/trace", 400),
        ("/topics/{topic}/partitions/0/offsets/99999999999999999999/trace", 400),
    ],
)
def test_a_place_that_is_none_is_refused(client: httpx.Client, topic: str, path: str, status: int) -> None:
    assert client.get(path.format(topic=topic)).status_code == status


def test_clients_in_go_get_the_details_of_events_as_text(client: httpx.Client, topic: str) -> None:
    publish(client, topic, {"value": "a"})
    place = f"/topics/{topic}/partitions/0/offsets/0/trace"
    by_place = client.get(place, headers={"User-Agent": "Go-http-client/1.1"}).json()
    by_id = client.get(f"/traces/{by_place['trace_id']}", headers={"User-Agent": "Go-http-client/2.0"}).json()

    for trace in (by_place, by_id):
        assert all(event["details"].startswith(f"{topic}/0@0") for event in trace["events"])
    assert all(isinstance(event["details"], dict) for event in client.get(place).json()["events"])


def test_the_newest_traces_come_first(client: httpx.Client, topic: str) -> None:
    for value in "abc":
        publish(client, topic, {"value": value})

    reply = client.get("/traces", params={"limit": 2}).json()

    assert reply["total"] == 2
    assert [(trace["topic"], trace["offset"]) for trace in reply["traces"]] == [(topic, 2), (topic, 1)]
    assert {(trace["status"], trace["state"]) for trace in reply["traces"]} == {("pending", "in_progress")}


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x", "", "9" * 30])
def test_a_limit_that_is_none_counts_as_a_hundred(client: httpx.Client, limit: str) -> None:
    reply = client.get("/traces/search", params={"limit": limit})

    assert reply.json()["query"]["limit"] == 100


def test_a_search_finds_by_topic_group_and_status(client: httpx.Client, topic: str) -> None:
    publish(client, topic, {"value": "a"}, {"value": "b"})
    first, _ = poll(client, topic)
    client.post("/messages/ack", json={"receipt_handle": first["receipt_handle"]})

    def found(**query: str) -> list[int]:
        reply = client.get("/traces/search", params={"topic": topic, **query}).json()
        assert reply["total"] == len(reply["traces"]) and reply["complete"]
        return sorted(trace["offset"] for trace in reply["traces"])

    assert found() == [0, 1]
    assert found(partition="0") == found(partition="-1") == [0, 1]
    assert found(partition="1") == []
    assert found(status="completed") == [0]
    assert found(status="in_progress") == found(status="pending") == [1]
    assert found(status="error") == []
    assert found(consumer_group=f"workers-{topic}") == [0, 1]
    assert found(consumer_group="others") == []


def test_a_rejected_message_is_found_under_the_servers_word_and_under_the_clients(
    client: httpx.Client, topic: str
) -> None:
    publish(client, topic, {"value": "a"})
    (message,) = poll(client, topic)
    client.post("/messages/reject", json={"receipt_handle": message["receipt_handle"], "reason": "broken"})

    for word in ("failed", "error"):
        reply = client.get("/traces/search", params={"topic": topic, "status": word}).json()
        assert [trace["offset"] for trace in reply["traces"]] == [0], reply
        assert reply["query"]["status"] == word
        assert [(trace["status"], trace["state"]) for trace in reply["traces"]] == [("error", "failed")]


def test_a_time_range_counts_when_both_its_ends_are_given(client: httpx.Client, topic: str) -> None:
    publish(client, topic, {"value": "a"})
    now = datetime.now(UTC)
    before, after = ((now + timedelta(hours=hours)).isoformat() for hours in (-1, 1))

    def count_found(**query: str) -> int:
        return int(client.get("/traces/search", params={"topic": topic, **query}).json()["total"])

    assert count_found(start=before, end=after) == 1
    assert count_found(start=after, end=after) == 0
    assert count_found(start=after) == 1
    assert count_found(start=after, end="tomorrow") == 1


def test_what_a_search_does_not_understand_is_left_out_and_told(client: httpx.Client) -> None:
    query = {"partition": "x", "status": "odd", "start": "now", "end": "then", "limit": "many"}

    understood = client.get("/traces/search", params=query).json()["query"]

    assert understood == {
        "topic": "",
        "partition": -1,
        "consumer_group": "",
        "start": "",
        "end": "",
        "status": "",
        "limit": 100,
    }


def test_counts_are_told_under_all_names_that_clients_know(client: httpx.Client, topic: str) -> None:
    publish(client, topic, {"value": "a"}, {"value": "b"})
    first, _ = poll(client, topic)
    client.post("/messages/ack", json={"receipt_handle": first["receipt_handle"]})

    stats = client.get("/traces/stats").json()

    assert stats["enabled"] is True
    assert (stats["sampling_rate"], stats["buffer_capacity"]) == (1.0, 100_000)
    assert 0 < stats["spans_in_buffer"] <= stats["events_recorded"]
    assert stats["traces_total"] == stats["total_traces"] == stats["traces_indexed"]
    assert stats["traces_completed"] == stats["completed_traces"] >= 1
    assert stats["traces_error"] == stats["error_traces"]
    assert stats["active_traces"] >= 1
    assert stats["by_topic"][topic] == 2
    assert stats["exporters_enabled"] == stats["exporters"] == []


def test_exporters_tell_how_they_fare(running: RunningDoor) -> None:
    status = ExportStatus("otlp-http", sent=7, dropped=3, failures=1, waiting=2)
    running.broker.telemetry.exports[:] = [status]
    try:
        stats = running.client.get("/traces/stats").json()
    finally:
        running.broker.telemetry.exports.clear()

    assert stats["exporters_enabled"] == ["otlp-http"]
    assert stats["exporters"] == [
        {"name": "otlp-http", "sent": 7, "dropped": 3, "failures": 1, "waiting": 2, "last_error": ""}
    ]


def test_an_offset_that_retention_has_taken_is_told_as_such(tmp_path: Any) -> None:
    settings = TopicSettings(segment_bytes=4096, retention_bytes=4096)
    with RunningDoor(
        tmp_path, broker_config=BrokerConfig(topic_defaults=settings, upkeep_interval_ms=1)
    ) as own:
        own.client.post("/topics", json={"name": "orders", "num_partitions": 1})
        publish(own.client, "orders", *({"value": "x" * 1000} for _ in range(30)))
        place = "/topics/orders/partitions/0/offsets/0/trace"
        while (reply := own.client.get(place)).status_code == 200:
            publish(own.client, "orders", {"value": "x" * 1000})

    assert reply.status_code == 404
    assert "retention" in reply.json()["error"]
