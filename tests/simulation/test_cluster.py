"""Whole brokers in a simulated cluster: seeds that once failed, and some more."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from goqueue.broker.compaction import compacting
from goqueue.broker.queue import poll
from goqueue.broker.replication import replicated
from goqueue.broker.topics.folders import Folders
from goqueue.core.cluster import controller
from goqueue.core.cluster.elections import Nodes
from goqueue.core.cluster.moves import finish_move, is_moving
from goqueue.core.cluster.replica import Replica
from goqueue.core.cluster.rules import ALL_RULES
from goqueue.core.compaction.due import look
from goqueue.log import partition_log
from goqueue.model.cluster import PartitionRecord
from goqueue.model.errors import NotLeader
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.groups import Sharing
from goqueue.testing.whole import cluster_owners, cluster_simulation
from goqueue.testing.whole.cluster_simulation import ClusterSimulation, simulate_cluster
from goqueue.testing.whole.partition_history import Violation

ONCE_FAILED = (4, 19, 23, 41, 52)
"""What they met then they may not meet now: each new fault of the world draws anew."""


@pytest.mark.parametrize(
    "seed", [*ONCE_FAILED, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 112))]
)
def test_what_was_acknowledged_is_kept_by_several_brokers(seed: int) -> None:
    counts = simulate_cluster(seed, 150)
    assert counts["acknowledged"] + counts["polled"] > 0


@pytest.mark.parametrize("rule", ["waits_for_disks", pytest.param("cuts_by_epoch", marks=pytest.mark.slow)])
def test_brokers_without_a_rule_are_caught(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    careless = partial(Replica, rules=replace(ALL_RULES, **{rule: False}))
    monkeypatch.setattr(replicated, "Replica", careless)
    with pytest.raises(Violation):
        for seed in range(1, 40):
            simulate_cluster(seed, 150)


def test_a_leader_that_denies_what_it_has_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has passed it on sends it again."""
    monkeypatch.setattr(replicated, "LeadershipLost", NotLeader)
    with pytest.raises(Violation, match="were sent once, and are twice"):
        for seed in range(1, 40):
            simulate_cluster(seed, 150)


def test_publishers_that_hear_of_what_only_their_leader_has_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    careless = partial(Replica, rules=replace(ALL_RULES, waits_to_be_seen=False))
    monkeypatch.setattr(replicated, "Replica", careless)
    monkeypatch.setattr(cluster_simulation, "WRITTEN_SHARE", 1)
    with pytest.raises(Violation, match=r"offsets of . count|was acknowledged"):
        for seed in range(1, 40):
            simulate_cluster(seed, 150)


@pytest.mark.slow
def test_what_no_disk_had_may_be_gone_with_the_power_and_with_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_simulation, "WRITTEN_SHARE", 1)
    forgiven = sum(simulate_cluster(seed, 150)["forgiven"] for seed in range(5, 9))
    assert forgiven > 0
    monkeypatch.setattr(ClusterSimulation, "_forgive", lambda _: None)
    with pytest.raises(Violation):
        for seed in (*range(175, 200), *range(5, 60)):
            simulate_cluster(seed, 150)


@pytest.mark.slow
def test_a_move_that_does_not_wait_for_who_comes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(record: PartitionRecord, nodes: Nodes, **more: int) -> PartitionRecord:
        return finish_move(
            replace(record, isr=record.replicas) if is_moving(record) else record, nodes, **more
        )

    monkeypatch.setattr(controller, "finish_move", hasty)
    with pytest.raises(Violation):
        for seed in range(1, 40):
            simulate_cluster(seed, 150)


@pytest.mark.slow
def test_folders_that_stay_though_nobody_wants_them_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def leave_them(*_: object) -> bool:
        return True

    monkeypatch.setattr(Folders, "sweep", leave_them)
    with pytest.raises(Violation, match="folders stay"):
        for seed in range(1, 40):
            simulate_cluster(seed, 150)


@pytest.mark.slow
def test_clocks_that_are_an_hour_off_break_no_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only delayed messages and timestamps go by them: these are as late, or early, as the clock."""
    hour_ms = 3_600_000
    monkeypatch.setattr(cluster_simulation, "SKEWS_MS", (-hour_ms, 0, hour_ms))
    for seed in range(1, 8):
        simulate_cluster(seed, 150)


def test_a_message_that_is_out_with_two_consumers_at_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = poll._lease

    def lease_briefly(broker: Any, journal: Any, delivery: Any, command: Any, chosen: Any, _: int) -> Any:
        return lease(broker, journal, delivery, replace(command, visibility_ms=1), chosen, 1)

    monkeypatch.setattr(poll, "_lease", lease_briefly)
    with pytest.raises(Violation, match="and came once more"):
        for seed in range(1, 20):
            simulate_cluster(seed, 150)


@pytest.mark.slow
def test_a_partition_that_two_members_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def eager(**wishes: Any) -> JoinAssigned:
        return JoinAssigned(**{**wishes, "sharing": Sharing.EAGER})

    monkeypatch.setattr(cluster_owners, "JoinAssigned", eager)
    with pytest.raises(Violation, match="both own"):
        for seed in range(1, 20):
            simulate_cluster(seed, 150)


@pytest.mark.parametrize("seed", [2, 7, 17, 24, 30])
def test_copies_that_are_compacted_each_for_itself_keep_the_newest_of_every_key(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_simulation, "COMPACTED_SHARE", 1)
    assert simulate_cluster(seed, 150)["acknowledged"] > 0


def test_a_node_that_compacts_what_does_not_count_yet_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_simulation, "COMPACTED_SHARE", 1)
    careless: Any = partial(look, end_offset=2**62)
    monkeypatch.setattr(compacting, "look", lambda *known, end_offset, **rest: careless(*known, **rest))
    with pytest.raises(Violation, match="was acknowledged"):
        for seed in (7, 16, 56):
            simulate_cluster(seed, 150)


def test_a_leader_that_sends_more_than_its_follower_lacks_of_what_is_gone_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_simulation, "COMPACTED_SHARE", 1)
    monkeypatch.setattr(partition_log, "_begun_at", lambda piece, _offset: piece)
    with pytest.raises(Violation, match="does not heal"):
        for seed in (2, 30, 89):
            simulate_cluster(seed, 150)
