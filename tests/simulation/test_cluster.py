"""Whole brokers in a simulated cluster: seeds that once failed, and some more."""

from dataclasses import replace
from functools import partial

import pytest

from goqueue.broker.replication import replicated
from goqueue.core.cluster.replica import Replica
from goqueue.core.cluster.rules import ALL_RULES
from goqueue.testing.whole.cluster_simulation import simulate_cluster
from goqueue.testing.whole.partition_history import Violation

ONCE_FAILED = (4, 19, 23, 41, 52)
"""What they met then they may not meet now: each new fault of the world draws anew."""


@pytest.mark.parametrize("seed", [*ONCE_FAILED, *range(100, 112)])
def test_what_was_acknowledged_is_kept_by_three_brokers(seed: int) -> None:
    assert simulate_cluster(seed, 150)["acknowledged"] > 0


@pytest.mark.parametrize("rule", ["waits_for_disks", "cuts_by_epoch"])
def test_brokers_without_a_rule_are_caught(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    careless = partial(Replica, rules=replace(ALL_RULES, **{rule: False}))
    monkeypatch.setattr(replicated, "Replica", careless)
    with pytest.raises(Violation):
        for seed in range(1, 40):
            simulate_cluster(seed, 150)
