"""A broker with its HTTP door for a module of tests, and both forms of the client before it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from goqueue.client import AsyncGoQueue, GoQueue
from tests.doors.http.running_door import RunningDoor
from tests.unit.client.forms import Awaited

Body = Callable[[AsyncGoQueue], Awaitable[object]]
Run = Callable[[Body], None]

_names = count()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    folder: Path = tmp_path_factory.mktemp("client")
    with RunningDoor(folder) as running:
        yield running


@pytest.fixture
def topic(door: RunningDoor) -> str:
    """A topic of the test's own, with three partitions."""
    name = f"topic-{next(_names)}"
    with GoQueue(door.url) as queue:
        queue.topics.create(name, partitions=3)
    return name


@pytest.fixture(params=["plain", "awaited"])
def run(request: pytest.FixtureRequest, door: RunningDoor) -> Run:
    """Runs a test's body with one form of the client, then with the other."""

    def run_body(body: Body) -> None:
        asyncio.run(_plain(body, door) if request.param == "plain" else _awaited(body, door))

    return run_body


async def _plain(body: Body, door: RunningDoor) -> None:
    with GoQueue(door.url) as queue:
        await body(cast(AsyncGoQueue, cast(Any, Awaited(queue))))


async def _awaited(body: Body, door: RunningDoor) -> None:
    async with AsyncGoQueue(door.url) as queue:
        await body(queue)
