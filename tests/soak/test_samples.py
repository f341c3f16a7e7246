"""The verdict of a soak: a trend counts, a peak or the warm-up does not."""

from collections.abc import Callable

from tests.soak.samples import Sample, verdicts


def samples(rss_mib: Callable[[int], float], descriptors: Callable[[int], float]) -> list[Sample]:
    return [
        Sample(at_s, rss_mib(at_s), descriptors(at_s), threads=9, loop_lag_ms=5, cpu_cores=0.1)
        for at_s in range(0, 3_600, 10)
    ]


def good(of: list[Sample]) -> dict[str, bool]:
    return {verdict.bound.name: verdict.is_good for verdict in verdicts(of)}


def test_a_process_that_warms_up_and_then_stays_is_flat() -> None:
    flat = samples(lambda at_s: min(200, 100 + at_s / 5), lambda at_s: 80 + at_s % 3)

    assert all(good(flat).values())


def test_one_peak_is_no_trend() -> None:
    assert good(samples(lambda at_s: 900 if at_s == 2_000 else 100, lambda _: 80))["rss_mib"]


def test_descriptors_that_creep_up_are_told() -> None:
    told = good(samples(lambda _: 100, lambda at_s: 82 + 35 * at_s / 600))

    assert told == {"rss_mib": True, "descriptors": False, "threads": True, "loop_lag_ms": True}


def test_a_leak_of_less_than_a_mebibyte_a_minute_is_told_after_an_hour() -> None:
    leak = samples(lambda at_s: 200 + at_s / 60 * 0.75 + (at_s * 7919 % 100) / 10, lambda _: 80)

    assert not good(leak)["rss_mib"]
