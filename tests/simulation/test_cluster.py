"""Whole brokers in a simulated cluster: seeds that once failed, and some more."""

import pytest

from goqueue.testing.whole.cluster_simulation import simulate_cluster


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
