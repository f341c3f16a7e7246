"""Errors have one shape, whatever goes wrong; and a bug of ours tells nothing of its inside."""

import logging

import httpx
import pytest

from goqueue.edge.http.messages import publishing
from goqueue.model.errors import Corrupt, StorageFull
from tests.doors.http.running_door import RunningDoor

BODY = {"messages": [{"value": "x"}]}


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/",
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/v1/topics",
        "/v1/docs",
        "/v1/openapi.json",
        "/v1topics",
        "/v2/topics",
        "/topics/a/b/c",
        "/schema",
    ],
)
def test_an_unknown_route_is_answered_in_json(client: httpx.Client, path: str) -> None:
    missing = client.get(path)

    assert (missing.status_code, missing.json()["status"], missing.json()["code"]) == (
        404,
        404,
        "no_such_route",
    )


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/topics", {"GET", "POST", "OPTIONS"}),
        ("PUT", "/topics/orders", {"GET", "PATCH", "DELETE", "OPTIONS"}),
        ("GET", "/topics/orders/messages", {"POST", "OPTIONS"}),
        ("POST", "/health", {"GET", "OPTIONS"}),
        ("DELETE", "/v1/topics", {"GET", "POST", "OPTIONS"}),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    client: httpx.Client, method: str, path: str, allowed: set[str]
) -> None:
    refused = client.request(method, path)

    assert (refused.status_code, refused.json()["code"]) == (405, "method_not_allowed")
    assert set(refused.headers["allow"].split(", ")) == allowed


def test_head_is_not_served(client: httpx.Client) -> None:
    assert client.head("/topics").status_code == 405


def test_options_names_all_methods_of_a_path(client: httpx.Client) -> None:
    assert set(client.options("/topics").headers["allow"].split(", ")) == {"GET", "POST", "OPTIONS"}


@pytest.mark.parametrize("path", ["/topics/orders/messages", "/topics/orders/messages/"])
def test_a_bug_is_a_500_that_tells_its_story_only_to_the_log(
    client: httpx.Client,
    orders: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    path: str,
) -> None:
    async def fail(*_: object) -> None:
        raise AssertionError("a secret of the house")

    monkeypatch.setattr(publishing, "publish", fail)
    with caplog.at_level(logging.ERROR, logger="goqueue.edge.http"):
        failed = client.post(path, json=BODY)

    assert (failed.status_code, failed.json()["code"]) == (500, "internal")
    assert "secret" not in failed.text
    assert "a secret of the house" in caplog.text


def test_corrupt_data_is_named_and_not_served(
    running: RunningDoor, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise Corrupt("orders/0 is corrupt at offset 7", topic="orders", partition=0, offset=7)

    monkeypatch.setattr("goqueue.edge.http.parts.long_polls.read_messages", fail)
    failed = running.client.get("/topics/orders/partitions/0/messages")

    assert failed.status_code == 500
    assert failed.json() == {
        "error": "orders/0 is corrupt at offset 7",
        "status": 500,
        "code": "corrupt",
        "topic": "orders",
        "partition": 0,
        "offset": 7,
    }


def test_a_full_disk_is_told_as_such(
    client: httpx.Client, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StorageFull("no space is left")

    monkeypatch.setattr(publishing, "publish", fail)
    failed = client.post("/topics/orders/messages", json=BODY)

    assert (failed.status_code, failed.json()["code"]) == (507, "storage_full")


@pytest.mark.parametrize("path", ["/debug/pprof", "/debug/pprof/", "/debug/pprof/heap"])
def test_whoever_looks_for_go_profiles_hears_what_there_is_instead(client: httpx.Client, path: str) -> None:
    told = client.get(path)

    assert (told.status_code, told.json()["code"]) == (404, "not_found")
    assert "py-spy" in told.json()["error"]
