"""Messages that do not fit their topic's schemas, through the HTTP door."""

import base64
import json
from typing import Any

import httpx
import pytest

ORDER = json.dumps({"type": "object", "properties": {"to": {"properties": {"zip": {"type": "string"}}}}})
GOOD = '{"to": {"zip": "8000"}}'
BAD = '{"to": {"zip": 8000}}'
TEXT = 'value: #/to/zip: 8000 is not of type "string"'


@pytest.fixture
def checked(client: httpx.Client) -> httpx.Client:
    """Topics `orders` and `kept`, which check messages in full; the second keeps what does not fit."""
    for topic, on_invalid in (("orders", "refuse"), ("kept", "quarantine")):
        settings = {"goqueue.schema.validation": "full", "goqueue.schema.on.invalid": on_invalid}
        body = {"name": topic, "num_partitions": 1, "settings": settings}
        assert client.post("/topics", json=body).status_code == 201
        registered = client.post(
            f"/schemas/subjects/{topic}-value/versions", json={"schema": ORDER, "schemaType": "JSON"}
        )
        assert registered.status_code == 200, registered.text
    return client


def publish(client: httpx.Client, topic: str, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    reply = client.post(f"/topics/{topic}/messages", json={"messages": list(messages)})
    assert reply.status_code == 200, reply.text
    results: list[dict[str, Any]] = reply.json()["results"]
    return results


def stored(client: httpx.Client, topic: str) -> list[tuple[int, str]]:
    reply = client.get(f"/topics/{topic}/partitions/0/messages")
    assert reply.status_code == 200, reply.text
    return [(message["offset"], message["value"]) for message in reply.json()["messages"]]


def test_the_registry_tells_whether_some_topic_checks(client: httpx.Client) -> None:
    assert client.get("/schemas/stats").json()["validationEnabled"] is False
    body = {"name": "orders", "settings": {"goqueue.schema.validation": "id"}}
    assert client.post("/topics", json=body).status_code == 201
    assert client.get("/schemas/stats").json()["validationEnabled"] is True


def test_a_bad_message_is_told_in_its_own_result(checked: httpx.Client) -> None:
    framed = base64.b64encode(b"\x00\x00\x00\x00\x01" + GOOD.encode()).decode()
    results = publish(
        checked,
        "orders",
        {"value": GOOD},
        {"value": BAD},
        {"value": GOOD, "headers": {"schema-id": "1"}},
        {"value": GOOD, "headers": {"schema-id": "9"}},
        {"value": framed, "encoding": "base64"},
    )

    assert [result["offset"] for result in results] == [0, -1, 1, -1, 2]
    assert (results[1]["code"], results[1]["error"]) == ("schema_mismatch", TEXT)
    assert results[3]["error"] == "value: Schema 9 not found"
    assert [offset for offset, _ in stored(checked, "orders")] == [0, 1, 2]


def test_the_only_message_of_a_request_is_refused_with_an_error_and_its_result(
    checked: httpx.Client,
) -> None:
    reply = checked.post("/topics/orders/messages", json={"messages": [{"value": BAD}]})

    assert reply.status_code == 400
    told = reply.json()
    assert (told["code"], told["error"]) == ("schema_mismatch", TEXT)
    assert told["results"] == [
        {"partition": -1, "offset": -1, "priority": "normal", "error": TEXT, "code": "schema_mismatch"}
    ]
    kept = checked.post("/topics/kept/messages", json={"messages": [{"value": BAD}]})
    assert (kept.status_code, kept.json()["results"][0]["quarantined"]) == (200, "kept.quarantine")


def test_checking_is_switched_off_and_on_for_a_subject_and_for_all(checked: httpx.Client) -> None:
    def is_taken() -> bool:
        reply = checked.post("/topics/orders/messages", json={"messages": [{"value": BAD}]})
        return reply.status_code == 200

    def switch(place: str, is_on: bool) -> None:
        reply = checked.put(f"/schemas/validation{place}", json={"validationEnabled": is_on})
        assert (reply.status_code, reply.json()) == (200, {"validationEnabled": is_on})

    assert not is_taken()
    switch("/orders-value", False)
    assert is_taken()
    assert _subject_stats(checked, "orders-value")["validationEnabled"] is False
    assert _subject_stats(checked, "kept-value")["validationEnabled"] is True
    switch("", False)
    switch("/orders-value", True)
    assert not is_taken()
    assert checked.delete("/schemas/validation/orders-value").json() == {"validationEnabled": False}
    assert is_taken()
    assert checked.delete("/schemas/validation/orders-value").status_code == 404
    assert checked.get("/schemas/stats").json()["validationEnabled"] is False
    switch("", True)
    assert not is_taken()


def test_the_registry_tells_how_many_schemas_are_ready_to_check(checked: httpx.Client) -> None:
    assert checked.get("/schemas/stats").json()["cachedValidators"] == 0

    publish(checked, "orders", {"value": GOOD})

    stats = checked.get("/schemas/stats").json()
    assert (stats["cachedValidators"], stats["slowSchemas"]) == (1, [])


def _subject_stats(client: httpx.Client, subject: str) -> dict[str, Any]:
    details: list[dict[str, Any]] = client.get("/schemas/stats").json()["details"]
    return next(each for each in details if each["subject"] == subject)


def test_a_bad_message_is_kept_and_told_so(checked: httpx.Client) -> None:
    good, bad = publish(checked, "kept", {"value": GOOD}, {"value": BAD})

    assert (good["offset"], good.get("quarantined")) == (0, None)
    assert bad == {
        "partition": 0,
        "offset": 0,
        "priority": "normal",
        "quarantined": "kept.quarantine",
        "reason": TEXT,
    }
    assert stored(checked, "kept") == [(0, GOOD)]
    assert stored(checked, "kept.quarantine") == [(0, BAD)]


def test_a_numbered_message_that_does_not_fit_is_refused_and_its_number_is_free(
    checked: httpx.Client,
) -> None:
    who = checked.post("/producers/init", json={}).json()
    message = {**who, "topic": "orders", "partition": 0, "sequence": 0}

    refused = checked.post("/transactions/publish", json={**message, "value": BAD})
    assert (refused.status_code, refused.json()["code"]) == (400, "schema_mismatch")
    assert checked.post("/transactions/publish", json={**message, "value": GOOD}).json()["offset"] == 0


def test_a_message_of_a_transaction_that_does_not_fit_is_kept_and_the_count_goes_on(
    checked: httpx.Client,
) -> None:
    publish(checked, "kept", {"value": BAD})  # creates the quarantine
    who = checked.post("/producers/init", json={"transactional_id": "writer"}).json()
    assert checked.post("/transactions/begin", json=who).status_code == 200

    replies = [
        checked.post(
            "/transactions/publish",
            json={**who, "topic": "kept", "partition": 0, "sequence": number, "value": value},
        ).json()
        for number, value in enumerate((GOOD, BAD, GOOD))
    ]
    assert checked.post("/transactions/commit", json=who).status_code == 200

    assert [(reply["offset"], reply.get("quarantined", False)) for reply in replies] == [
        (0, False),
        (1, True),
        (2, False),
    ]
    assert stored(checked, "kept") == [(0, GOOD), (2, GOOD)]
    assert stored(checked, "kept.quarantine") == [(0, BAD), (1, BAD)]


def test_a_numbered_message_that_is_delayed_and_does_not_fit_is_refused(checked: httpx.Client) -> None:
    who = checked.post("/producers/init", json={}).json()
    message = {**who, "topic": "orders", "partition": 0, "sequence": 0, "delay": "1h"}

    refused = checked.post("/transactions/publish", json={**message, "value": BAD})
    assert (refused.status_code, refused.json()["code"]) == (400, "schema_mismatch")
    kept = checked.post("/transactions/publish", json={**message, "value": GOOD}).json()
    assert (kept["duplicate"], kept["delayed"]) == (False, True)


def test_a_numbered_message_that_is_delayed_and_does_not_fit_is_kept_aside_now(checked: httpx.Client) -> None:
    who = checked.post("/producers/init", json={}).json()
    message = {**who, "topic": "kept", "partition": 0, "sequence": 0, "delay": "1h", "value": BAD}

    replies = [checked.post("/transactions/publish", json=message).json() for _ in range(2)]
    assert [(reply["quarantined"], reply["duplicate"]) for reply in replies] == [(True, False), (True, True)]
    assert stored(checked, "kept.quarantine") == [(0, BAD)]


def test_a_numbered_message_waits_for_its_quarantine_to_be_created(checked: httpx.Client) -> None:
    who = checked.post("/producers/init", json={}).json()
    message = {**who, "topic": "kept", "partition": 0, "sequence": 0, "value": BAD}
    reply = checked.post("/transactions/publish", json=message)
    assert reply.json() == {"partition": 0, "offset": 0, "duplicate": False, "quarantined": True}
