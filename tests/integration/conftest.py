"""Real brokers for real clients. Every process started here is gone when its test ends."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.running_broker import RunningBroker

StartBroker = Callable[..., RunningBroker]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers, each on a data folder named by its flags' order in the test."""
    started: list[RunningBroker] = []

    def start(*flags: str, folder: Path = tmp_path / "data") -> RunningBroker:
        broker = RunningBroker(folder, *flags)
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.kill()


@pytest.fixture
def broker(start_broker: StartBroker) -> RunningBroker:
    """One broker with the defaults of the house."""
    return start_broker()
