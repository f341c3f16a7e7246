"""What a broker knows survives on a simulated machine, and a backup brings it back, whatever fails."""

import pytest

from goqueue.broker.backup import restore as restore_backup
from goqueue.core.access.rates import Bucket
from goqueue.testing.rooms.knowledge_simulation import simulate_knowledge
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.world.disk import SimulatedDisk

STEPS = 80
SEEDS = range(4)
SEEDS_SEARCHED = range(30)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_answered_is_known_and_restored(seed: int) -> None:
    counts = simulate_knowledge(seed, STEPS)

    assert counts["back up"] > 0


def test_a_backup_made_after_the_clock_was_set_back_can_be_had() -> None:
    counts = simulate_knowledge(709, 200)

    assert counts["clock set"] > 0


def first_violation() -> str:
    for seed in SEEDS_SEARCHED:
        try:
            simulate_knowledge(seed, STEPS)
        except Violation as violation:
            return str(violation)
    return ""


def test_a_disk_that_does_not_sync_names_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDisk, "sync_folder", lambda self, folder: None)

    assert "WHAT=knowledge" in first_violation()


def test_a_broker_that_does_not_ask_for_the_rate_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bucket, "wait_ns", lambda self, tokens, *, now_ns: 0)

    assert "messages were taken where" in first_violation()


def test_a_restore_that_forgets_offsets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def commit_nothing(*_: object) -> dict[object, object]:
        return {}

    monkeypatch.setattr(restore_backup, "commit_offsets", commit_nothing)

    assert "after a restore" in first_violation()
