"""`goqueue pipelines` as a process: told by the command line to rest and to go on, and killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from typer.testing import CliRunner

from goqueue.cli.main import app
from goqueue.spark.pipelines.status import SILENCE_MS, State, believed
from goqueue.spark.pipelines.storage import Storage, is_running
from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.published import Publisher

_TIMEOUT_S = 200
# As in the session of the other tests: a short life is not worth what the second compiler costs.
_CONF = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PIPELINE = """\
name: copy
source: {topic: driver-in, startingOffsets: earliest}
sinks: [{topic: driver-out}]
"""


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_so():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def test_a_driver_does_as_the_command_line_says_and_is_missed_when_it_is_killed(
    shared_broker: RunningBroker, tmp_path: Path
) -> None:
    create_topic(shared_broker.kafka, "driver-in", partitions=1)
    publisher = Publisher(shared_broker.kafka, "driver-in").publish_numbers(range(3), partitions=1)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "copy.yaml").write_text(PIPELINE)
    storage, log = tmp_path / "storage", tmp_path / "driver.log"
    folder = Storage(storage).pipeline("copy")
    flags = ["--storage", str(storage), "--bootstrap", shared_broker.http, "--conf", _CONF]
    with log.open("wb") as written:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "goqueue.node.main",
                "pipelines",
                str(tmp_path / "pipelines"),
                *flags,
                "--master",
                "local[1]",
            ],
            stdout=written,
            stderr=subprocess.STDOUT,
        )

    def copied() -> int:
        reply = httpx.get(f"{shared_broker.http}/topics/driver-out")
        return int(reply.json()["total_messages"]) if reply.status_code == 200 else 0

    def tell(word: str) -> None:
        result = CliRunner().invoke(app, ["pipeline", word, "copy", "--storage", str(storage)])
        assert result.exit_code == 0, result.stderr

    try:
        wait_until(lambda: copied() == 3, process, log)
        tell("stop")
        stopped = folder.read_status()
        assert stopped is not None and stopped.state is State.STOPPED
        publisher.publish_numbers(range(3, 5), partitions=1)
        tell("start")
        wait_until(lambda: copied() == 5, process, log)
        assert is_running(folder)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(_TIMEOUT_S)
    finally:
        process.kill()
        process.wait(_TIMEOUT_S)

    assert not is_running(folder)
    told = folder.read_status()
    assert told is not None and told.state is State.RUNNING
    assert believed(told, now_ms=told.heartbeat_ms + SILENCE_MS + 1).state is State.LOST
