"""Transactions over whole brokers in a simulated cluster: some seeds, and faults that are noticed."""

from collections import Counter

import pytest

from goqueue.broker.transactions.verified import Question, Verified
from goqueue.testing.whole.cluster_transactions import simulate_cluster_transactions
from goqueue.testing.whole.partition_history import Violation

STEPS = 250
ONCE_FAILED = (109, 117)
"""A node did not stop that had led what could not be committed. They may not meet that now."""


@pytest.mark.parametrize("seed", [1, 2])
def test_a_transaction_is_whole_or_not_at_all_whoever_dies(seed: int) -> None:
    assert simulate_cluster_transactions(seed, STEPS)["whole"] > 0


@pytest.mark.slow
def test_transactions_are_whole_or_not_at_all_whoever_dies() -> None:
    counts: Counter[str] = Counter()
    for seed in (*range(1, 10), *ONCE_FAILED):
        counts += simulate_cluster_transactions(seed, STEPS)
    assert counts["whole"] > 50
    assert counts["none"] > 30
    assert counts["seen"] > 50
    assert counts["delayed"] > 20


def is_caught() -> bool:
    for seed in range(1, 30):
        try:
            simulate_cluster_transactions(seed, STEPS)
        except Violation:
            return True
    return False


def test_leaders_that_go_by_what_they_were_told_of_an_ended_transaction_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Verified, "forget", lambda self, partition, who: None)
    assert is_caught()


def test_leaders_that_go_by_an_answer_that_was_under_way_while_a_transaction_ended_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Question, "counts", property(lambda self: True))
    assert is_caught()
