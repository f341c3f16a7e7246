"""The same job on a standalone cluster of two workers, asked for through Spark Connect."""

import subprocess
import sys
from pathlib import Path

from tests.integration.clients import create_topic, read_all
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.cluster import QUICK_JAVA, connect_server, environment, standalone
from tests.integration.spark.published import Publisher

_TIMEOUT_S = 240
_BOTH_WORKERS = {
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    # Nothing begins before both workers have come.
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}


def copied(broker: RunningBroker, folder: Path, *, master: str) -> list[int]:
    """Run the example on a master; the numbers that it has copied."""
    create_topic(broker.kafka, "clustered-in", partitions=2)
    create_topic(broker.kafka, "clustered-out", partitions=2)
    Publisher(broker.kafka, "clustered-in").publish_numbers(range(2_000), partitions=2)
    command = [sys.executable, "-m", "examples.spark.on_a_cluster", "--master", master, "--memory", "512m"]
    command += ["--bootstrap", broker.http, "--source", "clustered-in", "--target", "clustered-out"]
    command += ["--checkpoint", str(folder / "checkpoint")]
    ended = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = read_all(broker.kafka, "clustered-out", partitions=2)
    return sorted(int(value) for values in found.values() for value in values)


def test_a_cluster_of_two_workers_behind_spark_connect_copies_each_row_once(
    shared_broker: RunningBroker, tmp_path: Path
) -> None:
    with (
        standalone(tmp_path, workers=2) as master,
        connect_server(tmp_path, master=master, settings=_BOTH_WORKERS) as address,
    ):
        numbers = copied(shared_broker, tmp_path, master=address)

    assert numbers == list(range(0, 2_000, 2))
    assert all(list((tmp_path / f"work-{number}").glob("app-*/*/stderr")) for number in range(2))
