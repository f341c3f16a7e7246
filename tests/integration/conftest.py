"""Real brokers for real clients. Every process started here is gone when its test ends."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.running_broker import RunningBroker
from tests.integration.running_cluster import RunningCluster, cluster

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


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Three nodes that all tests of any node share: whoever kills one leaves the others and itself well."""
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "--nodes=3") as running:
        running.start()
        yield running
        assert running.stop() == 0


@pytest.fixture
def all_three(three: RunningCluster) -> RunningCluster:
    """The same, when all of its nodes are there again, and know that."""
    deadline_s = time.monotonic() + 60
    while not all(_knows_all(at) for at in three.http):
        assert time.monotonic() < deadline_s, "a node has not come back"
        time.sleep(0.05)
    return three


def _knows_all(at: str) -> bool:
    try:
        told = httpx.get(f"http://{at}/cluster/health", timeout=5).json()
    except httpx.TransportError:
        return False
    return bool(told["healthy_nodes"] == 3)


@pytest.fixture
def doors(all_three: RunningCluster) -> Iterator[list[httpx.Client]]:
    """A client of the HTTP door of each node."""
    clients = [httpx.Client(base_url=f"http://{at}", timeout=60) for at in all_three.http]
    yield clients
    for client in clients:
        client.close()
