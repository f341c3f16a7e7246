"""What a process takes, over time, and whether that is flat."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

WARM_UP_SHARE = 0.25
"""The first part of a soak fills caches and opens files; only what comes after it is looked at."""
_POINTS_MAX = 200
"""More are thinned out: a slope between all pairs of points takes their square."""


@dataclass(frozen=True, slots=True)
class Sample:
    at_s: float
    rss_mib: float
    descriptors: float
    threads: float
    loop_lag_ms: float
    """p99 of the last minute."""
    cpu_cores: float
    """Of the broker, since the sample before."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What is allowed from the end of the warm-up to the end of the soak."""

    name: str
    growth_max: float | None = None
    level_max: float | None = None


BOUNDS = (
    Bound("rss_mib", growth_max=24),
    Bound("descriptors", growth_max=8),
    Bound("threads", growth_max=2),
    Bound("loop_lag_ms", level_max=250),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    bound: Bound
    first: float
    last: float
    most: float
    growth: float
    is_good: bool


def verdicts(samples: Sequence[Sample], bounds: Sequence[Bound] = BOUNDS) -> list[Verdict]:
    """One a bound. Growth is the median slope times the time it was watched: a peak is none, a trend is."""
    warm = samples[int(len(samples) * WARM_UP_SHARE) :]
    assert len(warm) >= 2, "too few samples to tell anything"
    return [_verdict(warm, bound) for bound in bounds]


def _verdict(samples: Sequence[Sample], bound: Bound) -> Verdict:
    points = [(sample.at_s, float(getattr(sample, bound.name))) for sample in samples]
    values = [value for _, value in points]
    growth = _slope(points) * (points[-1][0] - points[0][0])
    is_flat = bound.growth_max is None or growth <= bound.growth_max
    is_low = bound.level_max is None or median(values) <= bound.level_max
    return Verdict(bound, values[0], values[-1], max(values), growth, is_flat and is_low)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs of points (Theil and Sen)."""
    thinned = points[:: max(1, len(points) // _POINTS_MAX)]
    return median(
        (later - earlier) / (later_s - earlier_s)
        for at, (earlier_s, earlier) in enumerate(thinned)
        for later_s, later in thinned[at + 1 :]
    )
