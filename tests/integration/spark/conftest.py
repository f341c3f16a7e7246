"""One Spark session and one broker a pytest worker: both take seconds to start."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import goqueue.spark
from tests.integration.running_broker import RunningBroker


def pytest_itemcollected(item: pytest.Item) -> None:
    """All tests here are slow: Spark takes ten seconds to its first row."""
    item.add_marker(pytest.mark.slow)
    item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A quiet local session on two cores."""
    started = goqueue.spark.session(
        "goqueue-tests",
        master="local[2]",
        memory="1g",
        # Tests are short: what the second compiler would gain, it costs more to start.
        settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
    )
    yield started
    started.stop()


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker for all tests; each uses topics of its own."""
    broker = RunningBroker(tmp_path_factory.mktemp("spark-broker") / "data").start()
    yield broker
    broker.kill()


@pytest.fixture
def bootstrap(shared_broker: RunningBroker) -> str:
    """Where the HTTP door of the shared broker is, as the option names it."""
    return shared_broker.http.removeprefix("http://")
