"""`python -m tests.fuzz --door kafka --seed 7 --cases 10000`: attack one door of a fresh broker."""

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.frame import Door, Failed, Run, fuzz
from tests.fuzz.http_door import HttpDoor
from tests.fuzz.kafka_door import KafkaDoor
from tests.fuzz.login_door import LoginDoor
from tests.integration.running_broker import RunningBroker

DOORS: dict[str, Callable[[RunningBroker], Door]] = {"http": HttpDoor, "kafka": KafkaDoor}
LOGINS = "logins"
"""Both doors of a broker with all locks on, before anybody is known."""


def opened(name: str, folder: Path) -> tuple[RunningBroker, Door]:
    """A fresh broker, and what attacks it."""
    if name == LOGINS:
        logins = LoginDoor(folder)
        return logins.start(), logins
    broker = RunningBroker(folder / "data").start()
    return broker, DOORS[name](broker)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--door", choices=[*sorted(DOORS), LOGINS], default="kafka")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--cases", type=int, default=10_000)
    chosen = parser.parse_args()
    run = Run(chosen.seed, chosen.first, chosen.cases)
    print(f"door {chosen.door}, seed {run.seed}, {run.cases} cases", flush=True)
    with tempfile.TemporaryDirectory(prefix="goqueue-fuzz-") as folder:
        broker, door = opened(chosen.door, Path(folder))
        try:
            fuzz(broker, door, run, lambda text: print(text, flush=True))
        except Failed as failure:
            print(f"FAILED: {failure}", flush=True)
            return 1
        finally:
            door.close()
            broker.kill()
    print("all cases passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
