"""Doors for tests: one broker a test, or one a module where tests only look or use topics of their own."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.doors.http.running_door import RunningDoor


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path) as running:
        yield running


@pytest.fixture
def client(running: RunningDoor) -> httpx.Client:
    return running.client


@pytest.fixture
def orders(client: httpx.Client) -> str:
    """A topic with three partitions and nothing in it."""
    created = client.post("/topics", json={"name": "orders", "num_partitions": 3})
    assert created.status_code == 201, created.text
    return "orders"
