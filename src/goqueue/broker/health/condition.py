"""What the broker knows of its own condition, in one place: for probes, for metrics, for people.

A watch measures how late the loop runs and looks at the disk every few seconds, so that a probe is
answered from memory. Only one look at the disk is under way at any time: a disk that hangs holds up a
thread, not all of them, and that the look does not come back is itself the answer.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from goqueue.broker.health.reserve import Reserve
from goqueue.broker.health.scrub import Scrub
from goqueue.core.telemetry.checks import (
    Check,
    Verdict,
    check_damage,
    check_fsync,
    check_journals,
    check_loop_lag,
    check_partitions,
    check_scrub,
    check_space,
)
from goqueue.core.telemetry.recent_times import RecentTimes
from goqueue.log.recovery import Recovered
from goqueue.model.ids import TopicPartition
from goqueue.model.ports import Clock, Disk, DiskSpace, is_disk_full

if TYPE_CHECKING:
    from goqueue.broker.broker import Broker

log = logging.getLogger(__name__)

TICK_MS = 100
"""How often the loop is measured."""
LOOK_MS = 5_000
"""How often the disk is looked at."""
_ANSWER_S = 2.0
"""A disk that takes longer to answer a look is told as one that does not."""
_STALE_NS = 30_000_000_000
_PROBE_PAUSE_NS = 10_000_000_000
_MISSED_TICKS_MAX = 600
_NS_PER_MS = 1_000_000
_PROBE_FILE = "health.probe"
_LEVEL_OF = {Verdict.PASS: logging.INFO, Verdict.WARN: logging.WARNING, Verdict.FAIL: logging.ERROR}


class Look(NamedTuple):
    """What one look at the disk found."""

    listed_ns: int
    space: DiskSpace
    space_ns: int
    probe_ns: int | None
    """How long a small write took to reach the disk, if one was made."""


@dataclass(slots=True)
class Recovery:
    """What opening the data folder found, for the log and for people."""

    partition_count: int = 0
    checked_bytes: int = 0
    cut_bytes: int = 0
    rebuilt_indexes: int = 0
    offsets_above_end: int = 0
    """Committed offsets behind the end of their partition: of messages that are gone."""

    def add(self, source: TopicPartition, recovered: Recovered) -> None:
        self.partition_count += 1
        self.checked_bytes += recovered.checked_bytes
        self.cut_bytes += recovered.cut_bytes
        self.rebuilt_indexes += recovered.rebuilt_indexes
        if recovered.cut_bytes:
            log.warning(
                "tail_cut partition=%s bytes=%d reason=%s",
                source,
                recovered.cut_bytes,
                recovered.cut_reason.replace(" ", "_"),
            )
        if recovered.rebuilt_indexes:
            log.warning("index_rebuilt partition=%s segments=%d", source, recovered.rebuilt_indexes)


class Health:
    """The numbers, and the checks as they were last made."""

    def __init__(self, clock: Clock, reserve: Reserve) -> None:
        self._clock = clock
        self.reserve = reserve
        self.recovery = Recovery()
        self.scrub = Scrub()
        self.loop_lag = RecentTimes()
        """How late the loop runs, once it is watched."""
        self.space: DiskSpace | None = None
        """The data disk when it was last looked at."""
        self.checks: Mapping[str, Check] = {}
        self.is_watched = False
        self._checked_ns = clock.monotonic_ns()
        self._probed_ns = clock.monotonic_ns() - _PROBE_PAUSE_NS
        self._looking: asyncio.Task[Look] | None = None

    @property
    def problems(self) -> list[str]:
        """Why the broker is not ready, from memory; empty when it is, or has not been looked at yet."""
        if self.is_watched and self._clock.monotonic_ns() - self._checked_ns > _STALE_NS:
            return ["health: the checks have not been made for too long"]
        return [
            f"{name}: {check.message}" for name, check in self.checks.items() if check.verdict is Verdict.FAIL
        ]

    @property
    def warnings(self) -> list[str]:
        """What somebody should look at although the broker is ready, from memory."""
        return [
            f"{name}: {check.message}" for name, check in self.checks.items() if check.verdict is Verdict.WARN
        ]

    async def check(self, broker: "Broker", *, may_probe: bool = False) -> Mapping[str, Check]:
        """Look at everything now. With `may_probe` a disk that nothing was written to of late gets a byte."""
        now_ns = self._clock.monotonic_ns()
        times = broker.flusher.times.summary(now_ns=now_ns)
        is_probing = may_probe and not times.count and now_ns - self._probed_ns >= _PROBE_PAUSE_NS
        checks = await self._check_disk(broker, is_probing=is_probing)
        now_ns = self._clock.monotonic_ns()
        times = broker.flusher.times.summary(now_ns=now_ns)
        config = broker.config.health
        checks["fsync_latency"] = check_fsync(times, broker.flusher.under_way_ns, config)
        checks["loop_lag"] = check_loop_lag(self.loop_lag.summary(now_ns=now_ns), config)
        partitions = [partition for topic in broker.topics.values() for partition in topic.partitions]
        stopped = [str(partition.source) for partition in partitions if partition.is_failed]
        checks["partitions"] = check_partitions(stopped, len(partitions))
        damaged = [f"{partition.source} ({partition.damage})" for partition in partitions if partition.damage]
        checks["damage"] = check_damage(damaged, len(partitions))
        places = [f"{source} (segment {base})" for source, base in broker.health.scrub.bad]
        checks["scrub"] = check_scrub(places, broker.health.scrub.bad_frames)
        journals = broker.journal_partitions()
        stopped = [str(partition.source) for partition in journals if partition.is_failed]
        checks["journals"] = check_journals(stopped, len(journals))
        self._tell_changes(checks)
        self.checks, self._checked_ns = checks, now_ns
        return checks

    def _tell_changes(self, checks: Mapping[str, Check]) -> None:
        """One log line when a check gets worse or better."""
        for name, check in checks.items():
            before = self.checks[name].verdict if name in self.checks else Verdict.PASS
            if check.verdict is not before:
                level = _LEVEL_OF[check.verdict]
                log.log(
                    level, "health_changed check=%s verdict=%s reason=%s", name, check.verdict, check.message
                )

    async def _check_disk(self, broker: "Broker", *, is_probing: bool) -> dict[str, Check]:
        if self._looking is None:
            if is_probing:
                self._probed_ns = self._clock.monotonic_ns()
            look = broker.threads.run(_look_at, broker.disk, self._clock, is_probing=is_probing)
            self._looking = asyncio.ensure_future(look)
        looking = self._looking
        await asyncio.wait({looking}, timeout=_ANSWER_S)
        if not looking.done():
            return {"storage": Check(Verdict.FAIL, f"the disk has not answered for {_ANSWER_S:.0f} s")}
        self._looking = None
        try:
            found = looking.result()
        except OSError as error:
            return {"storage": Check(Verdict.FAIL, f"the data folder cannot be used: {error}")}
        self.space = found.space
        if found.probe_ns is not None:
            broker.flusher.times.note(found.probe_ns, now_ns=self._clock.monotonic_ns())
        return {
            "storage": Check(Verdict.PASS, took_ns=found.listed_ns),
            "disk_space": check_space(found.space, broker.config.health, found.space_ns),
        }


def keep_watch(broker: "Broker") -> None:
    """From now on until the broker is closed: measure the loop, and look at the disk every few seconds."""
    loop = asyncio.get_running_loop()
    broker.health.is_watched = True
    broker.keep(loop.create_task(_measure_loop(broker)))
    broker.keep(loop.create_task(_check_often(broker)))


async def _check_often(broker: "Broker") -> None:
    while True:
        await broker.health.check(broker)
        await asyncio.sleep(LOOK_MS / 1000)


async def _measure_loop(broker: "Broker") -> None:
    clock, lag = broker.clock, broker.health.loop_lag
    while True:
        due_ns = clock.monotonic_ns() + TICK_MS * _NS_PER_MS
        await asyncio.sleep(TICK_MS / 1000)
        now_ns = clock.monotonic_ns()
        late_ns = max(now_ns - due_ns, 0)
        lag.note(late_ns, now_ns=now_ns)
        # While the loop stood still more ticks were due; each would have been late by what was left.
        missed = min(late_ns // (TICK_MS * _NS_PER_MS), _MISSED_TICKS_MAX)
        for tick in range(1, missed + 1):
            lag.note(late_ns - tick * TICK_MS * _NS_PER_MS, now_ns=now_ns)


def _look_at(disk: Disk, clock: Clock, *, is_probing: bool) -> Look:
    """In a thread: list the data folder, ask for the space, and perhaps write a byte. Raises OSError."""
    begun_ns = clock.monotonic_ns()
    disk.list("")
    listed_ns = clock.monotonic_ns()
    space = disk.space()
    asked_ns = clock.monotonic_ns()
    probe_ns = None
    if is_probing:
        probe_ns = _probe(disk, clock)
    return Look(listed_ns - begun_ns, space, asked_ns - listed_ns, probe_ns)


def _probe(disk: Disk, clock: Clock) -> int | None:
    """How long a byte takes to the disk; None when the disk has no room for it, which is told elsewhere."""
    begun_ns = clock.monotonic_ns()
    try:
        file = disk.open(_PROBE_FILE)
        try:
            file.append([b"\n"])
            file.sync()
        finally:
            file.close()
    except OSError as error:
        if not is_disk_full(error):
            raise
        return None
    finally:
        with suppress(OSError):
            disk.remove(_PROBE_FILE)
    return clock.monotonic_ns() - begun_ns
