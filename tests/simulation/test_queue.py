"""The work queue keeps its word on a simulated machine: nothing lost, doubled, or settled and seen again."""

import pytest

from goqueue.testing.rooms.queue_simulation import simulate_queue
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.world.disk import SimulatedFile

STEPS = 80
SEEDS = range(8)
SEEDS_SEARCHED = range(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_message_is_settled_once_whenever_lives_end(seed: int) -> None:
    counts = simulate_queue(seed, STEPS)

    assert counts["poll"] > 0


def first_violation() -> str:
    for seed in SEEDS_SEARCHED:
        try:
            simulate_queue(seed, STEPS)
        except Violation as violation:
            return str(violation)
    return ""


def test_a_broker_that_does_not_wait_for_the_disk_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedFile, "sync", lambda self: None)

    told = first_violation()

    assert told != ""
    assert "replay: make sim SEED=" in told
    assert "WHAT=queue" in told
