"""The random search over replicas: nothing is found with all rules, and something without each of them."""

from dataclasses import fields, replace

import pytest

from goqueue.core.cluster.rules import ALL_RULES, Rules
from goqueue.testing.rooms.replica_simulation import simulate_replicas
from goqueue.testing.whole.partition_history import Violation

STEPS = 600
SEEDS_MAX = 4_000
"""The rarest violation shows in one of some hundred seeds."""

ABOUT_DISKS = {"forgets_with_session", "guards_incarnation", "knows_registrations", "needs_min_isr"}
"""Rules without which only those lose something who lose disks."""


def test_what_was_acknowledged_is_kept_and_a_partition_heals() -> None:
    acknowledged = sum(simulate_replicas(seed, STEPS)["acknowledged"] for seed in range(150))
    assert acknowledged > 1_500


@pytest.mark.parametrize("rule", [field.name for field in fields(Rules)])
def test_the_search_finds_what_a_rule_is_there_for(rule: str) -> None:
    rules = replace(ALL_RULES, **{rule: False})
    with pytest.raises(Violation):
        for seed in range(SEEDS_MAX):
            simulate_replicas(seed, STEPS, rules=rules, loses_many_disks=rule in ABOUT_DISKS)


def test_the_search_finds_a_new_disk_that_nobody_notices() -> None:
    with pytest.raises(Violation):
        for seed in range(SEEDS_MAX):
            simulate_replicas(seed, STEPS, notices_new_disks=False)


def test_a_seed_tells_the_same_story_twice() -> None:
    assert simulate_replicas(7, STEPS) == simulate_replicas(7, STEPS)
