"""What any client can bring into being has a bound on the whole node, whoever asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from goqueue.edge.http.config import HttpConfig
from goqueue.model.settings import BrokerConfig, GroupConfig, Limits
from tests.doors.http.running_door import RunningDoor


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDoor]:
    config = BrokerConfig(limits=Limits(topics=2), groups=GroupConfig(groups_max=2, initial_delay_ms=0))
    with RunningDoor(tmp_path, HttpConfig(), config) as running:
        yield running


def test_there_are_as_many_topics_as_there_may_be(running: RunningDoor) -> None:
    client = running.client
    for name in ("one", "two"):
        assert client.post("/topics", json={"name": name}).status_code == 201
    refused = client.post("/topics", json={"name": "three"})
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_topics")
    made = client.post("/topics/four/messages", json={"messages": [{"value": "x"}]})
    assert made.status_code != 200, "nor by publishing to it"
    assert client.delete("/topics/one").status_code == 200
    assert client.post("/topics", json={"name": "three"}).status_code == 201


def test_there_are_as_many_groups_as_there_may_be(running: RunningDoor) -> None:
    client = running.client
    client.post("/topics", json={"name": "t"})
    body = {"client_id": "c", "topics": ["t"]}
    for group in ("a", "b", "a"):
        assert client.post(f"/groups/{group}/join", json=body).status_code == 200
    refused = client.post("/groups/c/join", json=body)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_groups")
