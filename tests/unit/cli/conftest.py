"""A home of its own for each test, and one broker behind an HTTP door for all of them."""

from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from typer.main import get_command

from goqueue.client import GoQueue
from tests.doors.http.running_door import RunningDoor
from tests.unit.cli.command_line import CommandLine

VARIABLES = (
    "GOQUEUE_SERVER",
    "GOQUEUE_CONTEXT",
    "GOQUEUE_API_KEY",
    "GOQUEUE_API_KEY_FILE",
    "GOQUEUE_CA_FILE",
    "GOQUEUE_CERT_FILE",
    "GOQUEUE_KEY_FILE",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's own is read or written."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def one_tree_of_commands() -> Iterator[None]:
    """Building the tree of commands takes longer than most commands do, so it is built once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("cli-broker")) as running:
        yield running


@pytest.fixture(scope="session")
def queue(door: RunningDoor) -> Iterator[GoQueue]:
    """The same broker without a command line, to prepare and to look."""
    with GoQueue(door.url, retry_for_s=0) as queue:
        yield queue


_numbers = count()


@pytest.fixture
def topic(queue: GoQueue) -> str:
    """A topic with one partition and nothing in it, for this test alone."""
    name = f"topic-{next(_numbers)}"
    queue.topics.create(name, partitions=1)
    return name


@pytest.fixture
def cli(door: RunningDoor) -> CommandLine:
    return CommandLine(door.url)
