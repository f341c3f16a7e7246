"""Replicas on three simulated nodes keep what was acknowledged; with a rule left out they are caught."""

from dataclasses import replace

import pytest

from goqueue.broker.replication import replicated
from goqueue.broker.replication.leader import Sender
from goqueue.broker.replication.replicated import Replicated
from goqueue.core.cluster.replica import Replica
from goqueue.core.cluster.rules import ALL_RULES, Rules
from goqueue.log.partition_log import PartitionLog
from goqueue.testing.rooms.node_simulation import simulate_nodes
from goqueue.testing.whole.partition_history import Violation

STEPS = 120
SEEDS = range(8)
SEEDS_SEARCHED = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_is_there_and_all_replicas_become_the_same(seed: int) -> None:
    counts = simulate_nodes(seed, STEPS)

    assert counts["acknowledged"] > 0


@pytest.mark.parametrize("seed", [230, 236])
def test_seeds_that_failed_once_stay_well(seed: int) -> None:
    simulate_nodes(seed, 150)


def first_violation() -> str:
    for seed in SEEDS_SEARCHED:
        try:
            simulate_nodes(seed, STEPS)
        except Violation as violation:
            return str(violation)
        except AssertionError as broken:
            return f"broken: {broken}"
    return ""


def without(monkeypatch: pytest.MonkeyPatch, rules: Rules) -> None:
    """Let all machines leave out a rule."""

    class Careless(Replica):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs, rules=rules)  # type: ignore[arg-type]

        def __setattr__(self, name: str, value: object) -> None:
            # Where followers say nothing of what is only written, who counts it has little to count.
            super().__setattr__(name, True if name == "tells_written" else value)

    monkeypatch.setattr(replicated, "Replica", Careless)


@pytest.mark.slow
def test_replicas_that_do_not_wait_for_disks_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, replace(ALL_RULES, waits_for_disks=False))

    assert first_violation()


@pytest.mark.slow
def test_replicas_that_do_not_cut_by_epoch_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, replace(ALL_RULES, cuts_by_epoch=False))

    assert first_violation()


def test_a_leader_that_goes_on_after_its_disk_has_failed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reopen_and_lead(replica: Replicated) -> None:
        await replica._around.flusher.wait_under_way()
        await replica._around.threads.run(replica.partition.reopen)
        replica.partition.resume(leader_epoch=replica.partition.leader_epoch)

    monkeypatch.setattr(Replicated, "failed", lambda replica: replica._begin(reopen_and_lead(replica)))

    assert first_violation()


def test_a_sender_that_leaves_out_what_it_had_no_room_for_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sender, "_pump", lambda _: None)

    assert first_violation()


@pytest.mark.slow
def test_a_log_that_tells_no_epochs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionLog, "epoch_end", lambda log, epoch: (epoch, log.end_offset))

    assert first_violation()
