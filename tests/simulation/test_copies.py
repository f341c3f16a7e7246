"""Logs of replicas on a simulated machine: what is taken in stays, what is cut is gone, whatever fails."""

from collections.abc import Sequence

import pytest

from goqueue.broker.storage import partition
from goqueue.broker.storage.partition import Partition
from goqueue.log.active_segment import ActiveSegment
from goqueue.log.commit_log import CommitLog
from goqueue.log.partition_log import PartitionLog
from goqueue.testing.rooms.copy_simulation import simulate_copies
from goqueue.testing.whole.partition_history import Violation

STEPS = 120
SEEDS = range(10)
SEEDS_SEARCHED = range(120)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_taken_in_is_there_and_what_was_cut_is_gone(seed: int) -> None:
    counts = simulate_copies(seed, STEPS)

    assert counts["frames"] > 0


@pytest.mark.parametrize(
    ("seed", "steps"),
    [
        (4, 120),  # cut inside the step in which the log starts
        (12, 120),  # the sync of a cut failed, and the disk kept what the OS showed as cut
        (1_095, 150),  # a start that a recovery point named hid what was written behind a cut before it
        (1_171, 150),  # a flush under way when the cut began had made more safe than was remembered
    ],
)
def test_seeds_that_failed_once_stay_well(seed: int, steps: int) -> None:
    simulate_copies(seed, steps)


def first_violation(seeds: Sequence[int] = SEEDS_SEARCHED) -> str:
    for seed in seeds:
        try:
            simulate_copies(seed, STEPS)
        except Violation as violation:
            return str(violation)
    return ""


def test_a_commit_log_that_is_not_told_of_a_cut_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommitLog, "void", lambda *_: None)

    assert first_violation()


@pytest.mark.slow
def test_a_cut_that_does_not_bring_all_into_its_own_files_first_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Partition, "sync", lambda _: None)

    assert first_violation()


def test_recovery_points_that_vouch_for_what_is_cut_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "let_go_points", lambda *_, **__: None)

    assert first_violation()


def test_a_cut_that_is_not_synced_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ActiveSegment, "cut", lambda *_, **__: 0)

    assert first_violation()


def test_a_log_begun_anew_that_keeps_its_epochs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_anew = PartitionLog.begin_anew

    def keep_epochs(log: PartitionLog, offset: int) -> None:
        epochs = log.epochs
        begin_anew(log, offset)
        log.epochs = epochs

    monkeypatch.setattr(PartitionLog, "begin_anew", keep_epochs)

    assert first_violation()
