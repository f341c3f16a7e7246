"""A real broker, killed again and again while clients of all features work on it."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.integration.running_broker import BROKER, RunningBroker
from tests.storm.actors import ACTORS
from tests.storm.record import Kind, Record
from tests.storm.site import Away, Door, Site
from tests.storm.weather import Weather

BROKER_FLAGS = (
    "--log-upkeep-interval-ms=500",
    "--groups-initial-delay-ms=100",
    # Every start gives members their whole session again. One that went while the broker was away would keep
    # its partitions for as long as starts follow upon one another, and a storm would show little else.
    "--groups-consumer-session-ms=6000",
    "--groups-consumer-heartbeat-ms=500",
)
_ENDED_WITHIN_S = 180


def storm(
    folder: Path, record: Record, *, seed: int, minutes: float, only: str = "", program: str = BROKER
) -> None:
    """Let it blow for so long, then look at what is left."""
    broker = RunningBroker(folder / "data", *BROKER_FLAGS, program=program).start()
    site = Site.of(broker, record)
    site.is_up.set()
    kinds = [kind for kind in ACTORS if only in kind.__name__]
    actors = [kind(site, Random(f"{kind.__name__} {seed}")) for kind in kinds]
    try:
        for actor in actors:
            actor.prepare()
        threads = [threading.Thread(target=actor.run, name=actor.feature, daemon=True) for actor in actors]
        for thread in threads:
            thread.start()
        _blow(Weather(broker, site, Random(f"weather {seed}")), minutes)
        site.is_over.set()
        for thread in threads:
            thread.join(_ENDED_WITHIN_S)
            record.check(
                Kind.HIDDEN, not thread.is_alive(), thread.name, f"no end within {_ENDED_WITHIN_S} s"
            )
        _wait_until_ready(site)
        all_at_once([actor.rest for actor in actors])
        all_at_once([actor.finish for actor in actors])
    finally:
        all_at_once([actor.end for actor in actors])
        broker.kill()
    for line in broker.log.splitlines():
        if "Traceback" in line or " CRITICAL " in line:
            record.violate(Kind.UNEXPLAINED, "broker", f"its log says: {line}")


def _blow(weather: Weather, minutes: float) -> None:
    end_s = time.monotonic() + minutes * 60
    while time.monotonic() < end_s:
        weather.strike()


def _wait_until_ready(site: Site) -> None:
    """A machine that has too much to do makes a broker's loop late: it says so, and is ready afterwards."""
    door = Door(site, "broker")
    give_up_s = time.monotonic() + _ENDED_WITHIN_S
    while True:
        try:
            door.get("/readyz")
            return
        except Away as away:
            if time.monotonic() > give_up_s:
                site.record.violate(Kind.UNEXPLAINED, "broker", f"not ready in fine weather: {away}")
                return
            time.sleep(1)


def all_at_once(works: list[Callable[[], None]]) -> None:
    """Most of the time they wait for leases and due times."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_ENDED_WITHIN_S)
