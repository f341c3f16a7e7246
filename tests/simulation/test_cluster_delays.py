"""Delayed messages over whole brokers in a simulated cluster: some seeds, and faults that are noticed."""

from collections import Counter

import pytest

from goqueue.broker.delays.keeper import DelayKeeper
from goqueue.testing.whole.cluster_delays import simulate_cluster_delays
from goqueue.testing.whole.partition_history import Violation

STEPS = 250
ONCE_FAILED = (1, 12, 19, 50, 77)
"""One was cancelled while it was on its way; one was stocked again meanwhile and came twice; a cancellation
whose answer was lost was asked for again, and told as if there had been nothing to cancel; what fell due for
a partition that nobody led yet was passed over for ever; a batch that one leader had taken as a whole was
parted by the clock of the next one when it came again.
"""


@pytest.mark.parametrize("seed", ONCE_FAILED[:2])
def test_a_seed_that_failed_once_does_not_fail_again(seed: int) -> None:
    assert simulate_cluster_delays(seed, STEPS)["delayed"] > 0


@pytest.mark.slow
def test_a_delayed_message_comes_once_and_not_early_whoever_dies() -> None:
    counts: Counter[str] = Counter()
    for seed in (*ONCE_FAILED, 2, 3):
        counts += simulate_cluster_delays(seed, STEPS)
    assert counts["delayed"] > 30
    assert counts["cancelled"] > 0
    assert counts["numbered"] > 30
    assert counts["stopped"] > 5


def is_caught() -> bool:
    for seed in range(1, 40):
        try:
            simulate_cluster_delays(seed, STEPS)
        except Violation:
            return True
    return False


@pytest.mark.slow
def test_a_keeper_that_believes_it_knows_what_is_on_its_way_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def at_once(*_: object) -> bool:
        return True

    monkeypatch.setattr(DelayKeeper, "landed", at_once)
    assert is_caught()
