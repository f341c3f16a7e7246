"""Delayed messages keep their word on a simulated machine: once, never early, never when cancelled."""

import pytest

from goqueue.broker.delays.keeper import DelayKeeper
from goqueue.broker.delays.records import Noted, Record
from goqueue.broker.delays.store import DelayStore
from goqueue.core.delays.delivered import Delivered
from goqueue.testing.rooms.delay_simulation import simulate_delays
from goqueue.testing.whole.partition_history import Violation

STEPS = 80
SEEDS = range(8)
RECORDED = {
    1008: "a message written anew was also delivered from its old place, whose end had been forgotten",
    5086: "a message that was being moved parted those of one due time, and the rest seemed delivered",
    4102: "who looked for a message that was being dropped heard of an offset out of range",
    3022: "entries that came while others were read went into a run, and were not delivered",
    1164: "a cancelled message was, after the log before it had been dropped",
    40_000: "records deleted while their partition came back from a failure were delivered again",
    40_010: "so were those of which only a checkpoint knew that was lost",
}
"""Seeds that failed once, and what they found."""
RECORDED_STEPS = 120


@pytest.mark.parametrize("seed", SEEDS)
def test_every_message_is_delivered_once_and_not_before_its_time(seed: int) -> None:
    counts = simulate_delays(seed, STEPS)

    assert counts["publish"] > 0


@pytest.mark.parametrize("seed", RECORDED)
def test_a_seed_that_failed_once_does_not_fail_again(seed: int) -> None:
    simulate_delays(seed, RECORDED_STEPS)


def first_violation() -> str:
    """What is found first, seed after seed."""
    for seed in range(100):
        try:
            simulate_delays(seed, STEPS)
        except Violation as violation:
            return str(violation)
    return ""


def test_a_keeper_that_forgets_what_it_delivered_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Delivered, "covers", lambda self, due_ms, offset: False)
    monkeypatch.setattr(Delivered, "covered", lambda self, entries: entries["due"] < 0)

    assert "delivered twice" in first_violation()


def test_a_keeper_that_does_not_hold_still_for_a_move_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(self: DelayKeeper, offsets: list[int], records: list[Record]) -> None:
        self.submit(*records)  # as before, but nobody waits

    monkeypatch.setattr(DelayKeeper, "change", change)

    assert "delivered" in first_violation()


def test_a_start_that_does_not_hear_what_the_journal_tells_of_deliveries_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restore = DelayStore.restore

    def forgetful(self: DelayStore, record: Record, offset: int, *, written_ms: int) -> None:
        if not isinstance(record, Noted):
            restore(self, record, offset, written_ms=written_ms)

    monkeypatch.setattr(DelayStore, "restore", forgetful)

    assert "delivered again" in first_violation()
