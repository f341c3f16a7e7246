"""Exactly-once sinks keep their word on a simulated machine: an epoch once or not at all, whatever fails."""

import pytest

from goqueue.testing.rooms.sink_simulation import simulate_sinks
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.world.disk import SimulatedFile

STEPS = 100
SEEDS = range(4)
SEEDS_SEARCHED = range(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_epoch_is_there_once_or_not_at_all(seed: int) -> None:
    counts = simulate_sinks(seed, STEPS)

    assert counts["rows checked"] > 0


def first_violation() -> str:
    for seed in SEEDS_SEARCHED:
        try:
            simulate_sinks(seed, STEPS)
        except Violation as violation:
            return str(violation)
    return ""


def test_a_broker_that_does_not_wait_for_the_disk_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedFile, "sync", lambda self: None)

    assert "WHAT=sinks" in first_violation()
