"""A query copies one topic to another while its driver and the broker are killed with -9, again and again.

A driver may also stall: it is thought to be dead, another one takes its place on the same checkpoint,
and then it comes back.

The same story at two lengths: a short one in the suite, and the long one as `make soak-spark`. Each row
must be found in the target once. The moments of the kills come from a seed, which is told on failure.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from confluent_kafka import Producer

from tests.integration.clients import create_topic, read_all
from tests.integration.running_broker import RunningBroker

SOURCE, TARGET = "soak-in", "soak-out"
PARTITIONS = 3
_MODULE = "tests.integration.spark.soak"
_STALL_S = 120
_KILL_WITHIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is copied, and how often it is disturbed."""

    rows: int
    rows_an_epoch: int
    driver_kills: int
    driver_stalls: int
    broker_kills: int
    seed: int


class Driver:
    """A process of its own with a Spark of its own, which runs the query until it is killed."""

    def __init__(self, bootstrap: str, checkpoint: Path, rows_an_epoch: int, log_path: Path) -> None:
        self._log_path = log_path
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, "drive", bootstrap, str(checkpoint), str(rows_an_epoch)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[3],
            )
        self._head = psutil.Process(self._process.pid)
        self._stalled: list[psutil.Process] = []

    @property
    def log(self) -> str:
        return self._log_path.read_text(encoding="utf-8", errors="replace")[-6_000:]

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def check(self) -> None:
        """A query that is alone on its checkpoint never ends by itself."""
        assert not self.has_ended, f"the driver has ended:\n{self.log}"

    def kill(self) -> None:
        """As a machine that goes down: the driver, its JVM and its Python workers at once."""
        family = self._family()
        _send(family, signal.SIGKILL)
        psutil.wait_procs(family, timeout=30)
        self._process.wait(30)

    def stall(self) -> None:
        """As a machine that hangs: no process of the driver takes another step."""
        self._stalled = self._family()
        _send(self._stalled, signal.SIGSTOP)

    def come_back(self) -> None:
        """Go on from where it stalled, as if nothing had happened, and be refused."""
        _send(self._stalled, signal.SIGCONT)
        assert self._process.wait(_STALL_S) != 0, f"two drivers went on side by side:\n{self.log}"

    def _family(self) -> list[psutil.Process]:
        if self.has_ended:
            return []
        return [*self._head.children(recursive=True), self._head]


def _send(family: list[psutil.Process], number: signal.Signals) -> None:
    for process in family:
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            continue


def copy_under_kills(broker: RunningBroker, folder: Path, plan: Plan, tell: Callable[[str], None]) -> None:
    """Copy all rows under kills, and check that each is in the target once."""
    chance = random.Random(plan.seed)
    for topic in (SOURCE, TARGET):
        create_topic(broker.kafka, topic, partitions=PARTITIONS)
    _publish(broker.kafka, plan.rows)
    kills = ["driver"] * plan.driver_kills + ["stall"] * plan.driver_stalls + ["broker"] * plan.broker_kills
    chance.shuffle(kills)

    def start() -> Driver:
        bootstrap = broker.http.removeprefix("http://")
        return Driver(bootstrap, folder / "checkpoint", plan.rows_an_epoch, folder / "driver.log")

    driver = start()
    drivers = [driver]
    try:
        for number, victim in enumerate(kills, start=1):
            count = _wait_for_rows(broker, driver, plan.rows * number // (len(kills) + 3))
            # Rows are counted when an epoch has ended, so a kill at once would always hit the same moment.
            threading.Event().wait(chance.uniform(0, _KILL_WITHIN_S))
            tell(f"kill {number} of {len(kills)}: {victim} after {count} rows")
            if victim == "broker":
                broker.kill()
                broker.start()
                continue
            former = driver
            if victim == "driver":
                former.kill()
            else:
                former.stall()
            driver = start()
            drivers.append(driver)
            if victim == "stall":
                # The former may have had one epoch under way at the broker: the next but one is not its own.
                count = _wait_for_rows(broker, driver, 0)
                _wait_for_rows(broker, driver, count + 2 * plan.rows_an_epoch)
                former.come_back()
        _wait_for_rows(broker, driver, plan.rows)
    finally:
        for started in drivers:
            started.kill()
    _check_each_row_once(broker, plan)


def drive(bootstrap: str, checkpoint: str, rows_an_epoch: int) -> None:
    """What the driver's process does."""
    from goqueue.spark import session

    # A driver lives for seconds here, too short for the second compiler to be of use.
    compiler = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    spark = session("soak", master="local[2]", memory="1g", settings=compiler)
    rows = (
        spark.readStream.format("goqueue")
        .option("bootstrap", bootstrap)
        .option("topic", SOURCE)
        .option("columns", "key,value")
        .option("startingOffsets", "earliest")
        .option("maxRecordsPerBatch", rows_an_epoch)
        .load()
    )
    query = (
        rows.writeStream.format("goqueue")
        .option("bootstrap", bootstrap)
        .option("topic", TARGET)
        .option("checkpointLocation", checkpoint)
        .start()
    )
    query.awaitTermination()


def _publish(bootstrap: str, rows: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "acks": "all"})
    for number in range(rows):
        while True:
            try:
                producer.produce(SOURCE, value=str(number).encode(), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0, "the rows to copy could not be published"


def _wait_for_rows(broker: RunningBroker, driver: Driver, count: int) -> int:
    """Wait until the target holds that many; how many it is then."""
    deadline, found = time.monotonic() + _STALL_S, -1
    with httpx.Client(base_url=broker.http, timeout=30) as client:
        while (now := client.get(f"/topics/{TARGET}").json()["total_messages"]) < count:
            driver.check()
            if now > found:
                deadline, found = time.monotonic() + _STALL_S, now
            assert time.monotonic() < deadline, f"{now} rows for {_STALL_S} s:\n{driver.log}"
            time.sleep(0.05)
    return int(now)


def _check_each_row_once(broker: RunningBroker, plan: Plan) -> None:
    partitions = read_all(broker.kafka, TARGET, partitions=PARTITIONS)
    found = sorted(int(value) for values in partitions.values() for value in values)
    missing = len(set(range(plan.rows)) - set(found))
    twice = len(found) - len(set(found))
    assert found == list(range(plan.rows)), f"{missing} rows are missing, {twice} too many; {plan}"


def main() -> None:
    if sys.argv[1:2] == ["drive"]:
        drive(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(prog="soak-spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--stalls", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    given = parser.parse_args()
    plan = Plan(
        rows=given.rows,
        rows_an_epoch=max(1, given.rows // (4 * given.kills)),
        driver_kills=given.kills // 2,
        driver_stalls=given.stalls,
        broker_kills=given.kills - given.kills // 2,
        seed=given.seed,
    )
    print(plan, flush=True)
    with tempfile.TemporaryDirectory() as name:
        broker = RunningBroker(Path(name) / "data")
        started = time.monotonic()
        try:
            copy_under_kills(broker.start(), Path(name), plan, lambda line: print(line, flush=True))
        finally:
            broker.kill()
    print(f"{plan.rows} rows, each of them once, in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
