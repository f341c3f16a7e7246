"""What the numbers of a broker's condition mean, and the times of the last minute."""

import pytest

from goqueue.core.telemetry.checks import (
    Verdict,
    check_damage,
    check_fsync,
    check_journals,
    check_loop_lag,
    check_partitions,
    check_scrub,
    check_space,
)
from goqueue.core.telemetry.recent_times import SLOT_NS, RecentTimes, TimesSummary
from goqueue.model.ports import DiskSpace
from goqueue.model.settings import GiB, HealthConfig, MiB

MS = 1_000_000
CONFIG = HealthConfig()
NOTHING = TimesSummary(0, 0, 0)


def test_the_p99_is_close_and_never_above_the_worst() -> None:
    times = RecentTimes()
    for took_ms in range(1, 1001):
        times.note(took_ms * MS, now_ns=0)

    summary = times.summary(now_ns=0)

    assert summary.count == 1000
    assert 990 * MS <= summary.p99_ns <= summary.worst_ns == 1000 * MS


def test_what_is_older_than_a_minute_is_forgotten() -> None:
    times = RecentTimes()
    times.note(900 * MS, now_ns=0)
    times.note(3 * MS, now_ns=5 * SLOT_NS)

    assert times.summary(now_ns=5 * SLOT_NS).worst_ns == 900 * MS
    assert times.summary(now_ns=6 * SLOT_NS) == TimesSummary(1, 3 * MS, 3 * MS)
    assert times.summary(now_ns=60 * SLOT_NS) == NOTHING


def test_a_slot_is_counted_anew_when_its_turn_comes_again() -> None:
    times = RecentTimes()
    times.note(900 * MS, now_ns=0)
    times.note(2 * MS, now_ns=6 * SLOT_NS)

    assert times.summary(now_ns=6 * SLOT_NS).worst_ns == 2 * MS


@pytest.mark.parametrize(
    ("total_bytes", "free_bytes", "verdict"),
    [
        (100 * GiB, 16 * GiB, Verdict.PASS),
        (100 * GiB, 15 * GiB, Verdict.WARN),
        (100 * GiB, 9 * GiB, Verdict.WARN),  # nearly full, and yet room for a long time
        (40 * GiB, 4 * GiB, Verdict.FAIL),
        (64 * MiB, 32 * MiB, Verdict.PASS),  # a small disk that is half empty
        (64 * MiB, 0, Verdict.FAIL),
        (0, 0, Verdict.FAIL),
    ],
)
def test_a_disk_is_too_full_by_share_and_by_what_is_left(
    total_bytes: int, free_bytes: int, verdict: Verdict
) -> None:
    assert check_space(DiskSpace(total_bytes, free_bytes), CONFIG, 0).verdict is verdict


@pytest.mark.parametrize(
    ("p99_ms", "verdict"),
    [(99, Verdict.PASS), (100, Verdict.WARN), (4_999, Verdict.WARN), (5_000, Verdict.FAIL)],
)
def test_flushes_are_judged_by_their_p99(p99_ms: int, verdict: Verdict) -> None:
    check = check_fsync(TimesSummary(10, p99_ms * MS, 9_000 * MS), 0, CONFIG)

    assert (check.verdict, check.took_ns) == (verdict, p99_ms * MS)


def test_a_flush_that_does_not_come_back_counts_before_it_has_ended() -> None:
    check = check_fsync(TimesSummary(10, 2 * MS, 2 * MS), 6_000 * MS, CONFIG)

    assert check.verdict is Verdict.FAIL
    assert "under way for 6000.00 ms" in check.message


def test_nothing_flushed_is_nothing_wrong() -> None:
    assert check_fsync(NOTHING, 0, CONFIG).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("p99_ms", "verdict"), [(99, Verdict.PASS), (100, Verdict.WARN), (2_000, Verdict.FAIL)]
)
def test_a_late_loop_is_judged_by_its_p99(p99_ms: int, verdict: Verdict) -> None:
    assert check_loop_lag(TimesSummary(600, p99_ms * MS, 9_000 * MS), CONFIG).verdict is verdict


def test_a_partition_that_stopped_is_told_and_the_others_are_served() -> None:
    check = check_partitions(["orders/1"], 3)

    assert check.verdict is Verdict.WARN
    assert check.message.startswith("1 of 3 partitions stopped")
    assert check_partitions(["orders/0", "orders/1"], 2).verdict is Verdict.FAIL
    assert check_partitions([], 0).verdict is Verdict.PASS


def test_a_journal_that_stopped_is_the_end() -> None:
    assert check_journals([], 4).verdict is Verdict.PASS
    assert check_journals(["__metadata/0"], 4).verdict is Verdict.FAIL


def test_what_is_damaged_is_named_and_fails_only_when_nothing_else_is_left() -> None:
    assert check_damage([], 3).verdict is Verdict.PASS
    some = check_damage(["orders/1", "orders/2"], 3)
    assert (some.verdict, "2 of 3 partitions damaged" in some.message) == (Verdict.WARN, True)
    assert "orders/1, orders/2; see docs/repair.md" in some.message
    assert check_damage(["orders/0"], 1).verdict is Verdict.FAIL


@pytest.mark.parametrize(("frames", "text"), [(1, "a batch gone bad"), (2, "2 batches gone bad")])
def test_bytes_that_have_gone_bad_are_for_people_to_look_at(frames: int, text: str) -> None:
    check = check_scrub(["orders/0"], frames)

    assert (check.verdict, check.message.startswith(text)) == (Verdict.WARN, True)
    assert check_scrub([], 0).verdict is Verdict.PASS


@pytest.mark.parametrize(("count", "text"), [(1, "p/0;"), (3, "p/0, p/1, p/2;"), (4, "p/0, p/1, p/2, …;")])
def test_of_many_the_first_three_are_named(count: int, text: str) -> None:
    assert text in check_damage([f"p/{number}" for number in range(count)], 9).message


@pytest.mark.parametrize(
    ("under_way_ms", "p99_ms", "is_told"),
    [(99, 2, False), (100, 2, True), (100, 100, False), (101, 100, True), (5_000, 200, True)],
)
def test_a_flush_under_way_is_told_when_it_is_longer_than_the_others_and_too_long(
    under_way_ms: int, p99_ms: int, is_told: bool
) -> None:
    check = check_fsync(TimesSummary(10, p99_ms * MS, p99_ms * MS), under_way_ms * MS, CONFIG)

    assert ("under way" in check.message) is is_told


def test_a_loop_that_was_not_measured_is_well() -> None:
    assert check_loop_lag(NOTHING, CONFIG).verdict is Verdict.PASS


@pytest.mark.parametrize(
    "wrong",
    [
        {"disk_warn_percent": 0},
        {"disk_warn_percent": 95},
        {"disk_fail_percent": 101},
        {"disk_enough_bytes": -1},
        {"fsync_warn_ms": 6_000},
        {"loop_lag_warn_ms": 0},
    ],
)
def test_limits_that_contradict_each_other_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        HealthConfig(**wrong)
