"""`make soak MINUTES=60`: all clients of the storm at an easy pace, no storm, and an eye on the process.

Memory, descriptors and threads must be flat after the warm-up, and what the clients check on the way must
hold. Topics keep little (retention by size), so that a broker that is well comes to rest.
"""

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.integration.running_broker import RunningBroker
from tests.soak.process import Process
from tests.soak.samples import Sample, verdicts
from tests.storm.actor import Actor
from tests.storm.actors import ACTORS
from tests.storm.record import Record
from tests.storm.site import Door, Site
from tests.storm.table import table

PACE = 8.0
"""How much longer than in a storm clients wait between two steps."""
SAMPLE_EVERY_S = 10.0
TOLD_EVERY_S = 60.0
TOPIC_SETTINGS = {"segment.bytes": 4 * 1024, "retention.bytes": 8 * 1024}
"""So little that even a slow client's topic has all the segments it will ever have within the warm-up."""
BROKER_FLAGS = ("--log-upkeep-interval-ms=1000", "--tracing-events-max=20000")
"""Traces are kept in memory up to a bound: a small one is reached within the warm-up."""
_JOURNAL_NAMES = 300
"""So many groups and transactional ids meet each of the 50 partitions of their journals."""
_ENDED_WITHIN_S = 60


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--pace", type=float, default=PACE, help="larger is slower")
    parser.add_argument("--only", default="", help="clients whose class has this in its name")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="goqueue-soak-"))
    print(f"soak: seed {given.seed}, {given.minutes:g} minutes, in {folder}", flush=True)
    record = Record()
    broker = RunningBroker(folder / "data", *BROKER_FLAGS).start()
    site = Site.of(broker, record, topic_settings=TOPIC_SETTINGS)
    site.is_up.set()
    kinds = [kind for kind in ACTORS if given.only in kind.__name__]
    actors = [kind(site, random.Random(f"{kind.__name__} {given.seed}"), pace=given.pace) for kind in kinds]
    try:
        samples = _soak(broker, site, actors, minutes=given.minutes)
    finally:
        broker.kill()
    is_good = _tell(samples, record)
    if is_good:
        shutil.rmtree(folder)
    else:
        print(f"data and log: {folder}", file=sys.stderr)
    return 0 if is_good else 1


def _soak(broker: RunningBroker, site: Site, actors: list[Actor], *, minutes: float) -> list[Sample]:
    for actor in actors:
        actor.prepare()
    _open_journals(site)
    threads = [threading.Thread(target=actor.run, name=actor.feature, daemon=True) for actor in actors]
    for thread in threads:
        thread.start()
    process = Process(broker)
    samples: list[Sample] = []
    end_s = time.monotonic() + minutes * 60
    told_s = 0.0
    while time.monotonic() < end_s:
        time.sleep(SAMPLE_EVERY_S)
        samples.append(process.sample())
        if time.monotonic() - told_s >= TOLD_EVERY_S:
            told_s = time.monotonic()
            print(_line(samples[-1]), flush=True)
    site.is_over.set()
    for thread in threads:
        thread.join(_ENDED_WITHIN_S)
    for actor in actors:
        actor.rest()
        actor.end()
    return samples


def _open_journals(site: Site) -> None:
    """Their partitions are opened when first needed, and stay open: let that happen before it is counted."""
    door = Door(site, "journals")
    door.create_topic("journals", partitions=1)
    for number in range(_JOURNAL_NAMES):
        door.post("/producers/init", {"transactional_id": f"soak-{number}"})
        door.post(f"/groups/soak-{number}/offsets", {"offsets": {"journals": {"0": 0}}})
        door.ask("DELETE", f"/groups/soak-{number}")
    door.close()


def _line(sample: Sample) -> str:
    return (
        f"{sample.at_s:>7.0f} s  {sample.rss_mib:>7.1f} MiB  {sample.descriptors:>4.0f} descriptors  "
        f"{sample.threads:>3.0f} threads  {sample.loop_lag_ms:>6.1f} ms lag  {sample.cpu_cores:>5.2f} cores"
    )


def _tell(samples: list[Sample], record: Record) -> bool:
    """The tables of the end; whether all is well."""
    print(table(record, seconds=samples[-1].at_s))
    print(f"\n{'after the warm-up':<20}{'first':>9}{'last':>9}{'most':>9}{'growth':>9}  bound")
    found = verdicts(samples)
    for one in found:
        bound = one.bound
        limit = f"grows by {bound.growth_max:g}" if bound.growth_max is not None else f"{bound.level_max:g}"
        word = "flat" if one.is_good else "NOT FLAT"
        print(
            f"{bound.name:<20}{one.first:>9.1f}{one.last:>9.1f}{one.most:>9.1f}{one.growth:>9.1f}  "
            f"{limit}: {word}"
        )
    cores = sum(sample.cpu_cores for sample in samples) / len(samples)
    print(f"the broker took {cores:.2f} cores")
    for violation in record.violations:
        print(violation, file=sys.stderr)
    return all(one.is_good for one in found) and not record.violations


if __name__ == "__main__":
    sys.exit(main())
