"""Rows of the table, and the clocks behind them."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.integration.running_broker import RunningBroker


@dataclass(frozen=True)
class Row:
    """One line of the table. `is_met` is None where a number is only reported."""

    what: str
    value: float
    unit: str
    reach: str
    is_met: bool | None
    detail: str = ""

    @property
    def text(self) -> str:
        return f"{self.value:,.3g}" if self.value < 1000 else f"{self.value:,.0f}"


def at_most(what: str, value: float, unit: str, bound: float, detail: str = "") -> Row:
    return Row(what, value, unit, f"≤ {bound:g}", value <= bound, detail)


def at_least(what: str, value: float, unit: str, bound: float, detail: str = "") -> Row:
    return Row(what, value, unit, f"≥ {bound:,g}", value >= bound, detail)


def reported(what: str, value: float, unit: str, detail: str = "") -> Row:
    return Row(what, value, unit, "reported", None, detail)


@dataclass
class Spent:
    cpu_s: float = 0.0
    wall_s: float = 0.0


@contextmanager
def running(folder: Path, *flags: str) -> Iterator[RunningBroker]:
    """A real broker process on free ports."""
    broker = RunningBroker(folder, *flags)
    try:
        yield broker.start()
    finally:
        broker.kill()


@contextmanager
def measuring(broker: RunningBroker) -> Iterator[Spent]:
    """The CPU that the broker's process, with all its threads, spends meanwhile; and the time."""
    with measuring_all([broker.process.pid]) as spent:
        yield spent


@contextmanager
def measuring_all(pids: Iterable[int]) -> Iterator[Spent]:
    """The same of several processes together."""
    clocks = [_cpu_clock(pid) for pid in pids]
    spent = Spent()
    before_s, began = sum(map(time.clock_gettime, clocks)), time.perf_counter()
    yield spent
    spent.cpu_s = sum(map(time.clock_gettime, clocks)) - before_s
    spent.wall_s = time.perf_counter() - began


def _cpu_clock(pid: int) -> int:
    """Linux' clock of the CPU that a process has spent, as clock_getcpuclockid(3) makes its number.

    What psutil tells is rounded to hundredths of a second, user and system each: of a round of a fourth of
    a second that is more than what tracing may cost.
    """
    return ~pid << 3 | 2


def resident_mb(broker: RunningBroker) -> float:
    return psutil.Process(broker.process.pid).memory_info().rss / 1e6


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def fsync_latencies_ms(folder: Path, *, count: int = 500) -> list[float]:
    """What the disk itself takes for an fsync of a small append."""
    descriptor = os.open(folder / "fsync.probe", os.O_CREAT | os.O_WRONLY)
    try:
        taken = []
        for _ in range(count):
            os.write(descriptor, b"x" * 200)
            began = time.perf_counter()
            os.fdatasync(descriptor)
            taken.append((time.perf_counter() - began) * 1e3)
        return taken
    finally:
        os.close(descriptor)
        (folder / "fsync.probe").unlink()
