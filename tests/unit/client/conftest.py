"""A broker with its HTTP door for a module of tests, and both forms of the client before it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from goqueue.client import Address, AsyncGoQueue, GoQueue
from tests.doors.http.running_door import RunningDoor
from tests.unit.client.forms import Awaited

Body = Callable[[AsyncGoQueue], Awaitable[object]]
Run = Callable[[Body], None]
RunAt = Callable[..., None]
"""Takes the addresses of nodes and a body, and options of the queue by name."""
Opens = Callable[..., AbstractAsyncContextManager[AsyncGoQueue]]

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
def opens(request: pytest.FixtureRequest) -> Opens:
    """Opens a queue in one form, then in the other."""
    return _plain if request.param == "plain" else _awaited


@pytest.fixture
def run_at(opens: Opens) -> RunAt:
    """Runs a test's body with a queue at these addresses, in one form, then in the other."""

    def run_body(server: str | Sequence[Address], body: Body, **options: Any) -> None:
        async def story() -> None:
            async with opens(server, **options) as queue:
                await body(queue)

        asyncio.run(story())

    return run_body


@pytest.fixture
def run(run_at: RunAt, door: RunningDoor) -> Run:
    """Runs a test's body with a broker."""
    return lambda body: run_at(door.url, body)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed is tried again after a millisecond."""
    monkeypatch.setattr("goqueue.client.call._PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr("goqueue.client.call._PAUSE_MAX_S", 0.001)


@asynccontextmanager
async def _plain(server: str | Sequence[Address], **options: Any) -> AsyncIterator[AsyncGoQueue]:
    with GoQueue(server, **options) as queue:
        yield cast(AsyncGoQueue, cast(Any, Awaited(queue)))


@asynccontextmanager
async def _awaited(server: str | Sequence[Address], **options: Any) -> AsyncIterator[AsyncGoQueue]:
    async with AsyncGoQueue(server, **options) as queue:
        yield queue
