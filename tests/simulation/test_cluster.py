"""Whole brokers in a simulated cluster: seeds that once failed, and some more."""

from dataclasses import replace
from functools import partial

import pytest

from goqueue.broker.replication import replicated
from goqueue.core.cluster.replica import Replica
from goqueue.core.cluster.rules import ALL_RULES
from goqueue.testing.whole.cluster_simulation import simulate_cluster
from goqueue.testing.whole.partition_history import Violation


@pytest.mark.parametrize("seed", range(100, 112))
def test_what_was_acknowledged_is_kept_by_three_brokers(seed: int) -> None:
    assert simulate_cluster(seed, 150)["acknowledged"] > 0


@pytest.mark.parametrize("seed", [4, 41])
def test_what_a_node_had_only_in_its_commit_log_survives_a_power_cut(seed: int) -> None:
    assert simulate_cluster(seed, 150)["acknowledged"] > 20


@pytest.mark.parametrize("seed", [23])
def test_a_node_that_registers_anew_while_its_disk_fails_comes_back(seed: int) -> None:
    assert simulate_cluster(seed, 150)["acknowledged"] > 20


@pytest.mark.parametrize("seed", [52])
def test_a_controller_that_hears_no_answer_when_it_takes_its_seat_decides(seed: int) -> None:
    assert simulate_cluster(seed, 150)["acknowledged"] > 20


@pytest.mark.parametrize("rule", ["waits_for_disks", "cuts_by_epoch"])
def test_brokers_without_a_rule_are_caught(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    careless = partial(Replica, rules=replace(ALL_RULES, **{rule: False}))
    monkeypatch.setattr(replicated, "Replica", careless)
    with pytest.raises(Violation):
        for seed in range(1, 40):
            simulate_cluster(seed, 150)
