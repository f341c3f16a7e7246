"""Whether the broker is well: what each number that it measures of itself means.

`pass` is as it should be, `warn` is for people to look at, `fail` takes the broker out of service. A limit
is passed when it is reached.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from goqueue.core.telemetry.recent_times import TimesSummary
from goqueue.model.ports import DiskSpace
from goqueue.model.settings import HealthConfig, MiB

_NS_PER_MS = 1_000_000


class Verdict(StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict
    WARN = "warn"
    FAIL = "fail"


class Check(NamedTuple):
    """One thing looked at."""

    verdict: Verdict
    message: str = ""
    took_ns: int | None = None
    """How long it takes, where that is what is looked at, or how long the look took."""


def check_space(space: DiskSpace, config: HealthConfig, took_ns: int) -> Check:
    """A disk may be nearly full and still have room for a long time: then people are warned, no more."""
    percent = space.used_percent
    facts = (
        f"the data disk is {percent} % full, {space.free_bytes // MiB} of {space.total_bytes // MiB} MiB free"
    )
    if percent >= config.disk_fail_percent and space.free_bytes < config.disk_enough_bytes:
        advice = "free some space, shorten retention or delete topics; messages can still be read"
        return Check(Verdict.FAIL, f"{facts}: {advice}", took_ns)
    return Check(Verdict.WARN if percent >= config.disk_warn_percent else Verdict.PASS, facts, took_ns)


def check_fsync(times: TimesSummary, under_way_ns: int, config: HealthConfig) -> Check:
    """By the p99 of the last minute, or by a flush that is under way for longer."""
    if under_way_ns > times.p99_ns and under_way_ns >= config.fsync_warn_ms * _NS_PER_MS:
        message = f"a flush to the disk has been under way for {_ms(under_way_ns)}"
        return _timed(under_way_ns, message, config.fsync_warn_ms, config.fsync_fail_ms)
    if not times.count:
        return Check(Verdict.PASS, "nothing was flushed to the disk in the last minute")
    message = (
        f"{times.count} flushes to the disk in the last minute, p99 {_ms(times.p99_ns)}, "
        f"longest {_ms(times.worst_ns)}"
    )
    return _timed(times.p99_ns, message, config.fsync_warn_ms, config.fsync_fail_ms)


def check_loop_lag(times: TimesSummary, config: HealthConfig) -> Check:
    if not times.count:
        return Check(Verdict.PASS, "the loop has not been measured yet")
    message = (
        f"the loop ran late by {_ms(times.p99_ns)} (p99), {_ms(times.worst_ns)} at worst, in the last minute"
    )
    return _timed(times.p99_ns, message, config.loop_lag_warn_ms, config.loop_lag_fail_ms)


def check_partitions(stopped: list[str], count: int) -> Check:
    """Some that have stopped are being opened anew, and the others are served: only all of them fail it."""
    if not stopped:
        return Check(Verdict.PASS, f"{count} partitions at work")
    message = (
        f"{len(stopped)} of {count} partitions stopped by the disk and being opened anew: {_named(stopped)}"
    )
    return Check(Verdict.FAIL if len(stopped) == count else Verdict.WARN, message)


def check_damage(damaged: Sequence[str], count: int) -> Check:
    """What is lost does not come back by itself, but the others are served: only all of them fail it."""
    if not damaged:
        return Check(Verdict.PASS, "nothing is known to be lost")
    message = (
        f"{len(damaged)} of {count} partitions damaged and not written to: {_named(damaged)}; "
        "see docs/repair.md"
    )
    return Check(Verdict.FAIL if len(damaged) == count else Verdict.WARN, message)


def check_scrub(places: Sequence[str], frames: int) -> Check:
    """Bytes that have gone bad are served to nobody, and all around them is: people should look, no more."""
    if not places:
        return Check(Verdict.PASS, "no bytes are known to have gone bad")
    count = "a batch" if frames == 1 else f"{frames} batches"
    return Check(Verdict.WARN, f"{count} gone bad on the disk, in {_named(places)}; see docs/repair.md")


def check_journals(stopped: list[str], count: int) -> Check:
    if not stopped:
        return Check(Verdict.PASS, f"{count} journals at work")
    return Check(Verdict.FAIL, f"stopped by the disk: {', '.join(stopped)}; the broker must start anew")


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _timed(took_ns: int, message: str, warn_ms: int, fail_ms: int) -> Check:
    took_ms = took_ns // _NS_PER_MS
    verdict = Verdict.FAIL if took_ms >= fail_ms else Verdict.WARN if took_ms >= warn_ms else Verdict.PASS
    return Check(verdict, message, took_ns)


def _ms(duration_ns: int) -> str:
    return f"{duration_ns / _NS_PER_MS:.2f} ms"
