"""The frame of every fuzzer: cases from seeds, and what must be true of the broker whatever is sent to it.

A case is known by the run's seed and its own number, and makes all its choices from these two: it can be had
again alone. State that earlier cases left in the broker is not part of it.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import psutil

from tests.integration.running_broker import RunningBroker

RESIDENT_BYTES_MAX = 1 << 30
PROBE_S_MAX = 10.0
"""Wall time, on a machine that may be busy with other things."""
CASE_CPU_S_MAX = 2.0
CASES_A_CHECK = 100
_NEVER_LOGGED = ("Traceback", "request_failed", "never retrieved", "MemoryError")


class Failed(Exception):
    """The broker did what it must not."""


class Door(Protocol):
    """What is particular to a door."""

    def attack(self, chance: random.Random) -> str:
        """Send one case and see that it is answered or refused; what it was, for people."""

    def probe(self) -> None:
        """Ask for something simple that must be answered."""

    def work(self) -> None:
        """Do some of what a client that means well does, and see that it comes out right."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Run:
    seed: int
    first: int
    cases: int

    def chance(self, number: int) -> random.Random:
        return random.Random(f"{self.seed}:{number}")


def fuzz(broker: RunningBroker, door: Door, run: Run, tell: Callable[[str], None]) -> None:
    """Attack until all cases are done or one of them fails, which names itself."""
    watch = _Watch(broker)
    door.work()
    began = time.monotonic()
    for number in range(run.first, run.first + run.cases):
        what = ""
        before_s = watch.cpu_s()
        try:
            what = door.attack(run.chance(number))
            if (spent_s := watch.cpu_s() - before_s) > CASE_CPU_S_MAX:
                raise Failed(f"took {spent_s:.1f} s of CPU")
            if (number + 1 - run.first) % CASES_A_CHECK == 0 or number + 1 == run.first + run.cases:
                watch.check(door)
        except Exception as error:
            again = f"--seed {run.seed} --first {number} --cases 1"
            raise Failed(f"case {number} ({what}): {error!r}; again with {again}") from error
        if (number + 1 - run.first) % 5_000 == 0:
            rate = (number + 1 - run.first) / (time.monotonic() - began)
            tell(f"{number + 1 - run.first} cases, {rate:.0f} a second, {watch.resident_bytes >> 20} MiB")


class _Watch:
    """What can be seen of the broker from outside."""

    def __init__(self, broker: RunningBroker) -> None:
        self._broker = broker
        self._process = psutil.Process(broker.process.pid)
        self._clock = ~broker.process.pid << 3 | 2
        self._read = 0

    @property
    def resident_bytes(self) -> int:
        return int(self._process.memory_info().rss)

    def cpu_s(self) -> float:
        """Linux' clock of the CPU that the process has spent."""
        try:
            return time.clock_gettime(self._clock)
        except OSError:
            raise Failed("the broker has ended") from None

    def check(self, door: Door) -> None:
        if self._broker.process.poll() is not None:
            raise Failed(f"the broker has ended with {self._broker.process.returncode}")
        if self.resident_bytes > RESIDENT_BYTES_MAX:
            raise Failed(f"the broker takes {self.resident_bytes >> 20} MiB")
        began = time.monotonic()
        door.probe()
        if (waited_s := time.monotonic() - began) > PROBE_S_MAX:
            raise Failed(f"a probe was answered after {waited_s:.1f} s")
        door.work()
        self._check_log()

    def _check_log(self) -> None:
        with self._broker.log_path.open("rb") as log:
            log.seek(self._read)
            added = log.read()
        self._read += len(added)
        text = added.decode(errors="replace")
        for bad in _NEVER_LOGGED:
            if (at := text.find(bad)) >= 0:
                raise Failed(f"the log says {text[max(at - 500, 0) : at + 3_000]}")
